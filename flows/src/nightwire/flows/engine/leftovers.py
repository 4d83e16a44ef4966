"""Queues of stones that are no more: they go once all in them was read."""

import logging
from collections.abc import Collection, Iterable

from confluent_kafka import TopicPartition as TopicPartitionOffset
from confluent_kafka.admin import AdminClient

from nightwire.core.kafka import GroupOffsets, admin, consumer, read_until, watermarks
from nightwire.flows.engine.part import go_on_in_queues
from nightwire.flows.model import Flow

log = logging.getLogger("nightwire.flows")


def leftovers(flows: Iterable[Flow], topics: Collection[str]) -> list[str]:
    """Return those of *topics* that are queues of *flows*, of stones that these have not."""
    found = []
    for flow in flows:
        kept = {flow.queue(name) for name in flow.stones}
        found += [one for one in topics if one.startswith(f"flow.{flow.name}.") and one not in kept]
    return sorted(found)


def drop_leftovers(bootstrap: str, flows: Iterable[Flow]) -> list[str]:
    """Delete the queues that are left over of *flows* and hold nothing unread; return their names.

    Raises:
        KafkaException: Kafka refuses, or does not answer.
    """
    client: AdminClient = admin(bootstrap)
    dry = [one for one in leftovers(flows, client.list_topics(timeout=10).topics) if _is_dry(bootstrap, one)]
    for queue, done in client.delete_topics(dry).items() if dry else ():
        done.result(30)
        log.info("%s: nobody reads it any more, and all was read: deleted", queue)
    return dry


def _is_dry(bootstrap: str, queue: str) -> bool:
    reader, positions = consumer(bootstrap, enable_partition_eof=True), GroupOffsets(bootstrap)
    try:
        marks = watermarks(reader, queue, 0)
        at = TopicPartitionOffset(queue, 0, marks.low)
        go_on_in_queues(positions, [at])
        reader.assign([at])
        left = read_until(reader, {(queue, 0): marks.high}) if at.offset < marks.high else ()
        return not any(True for _ in left)  # behind the last record lies the mark of its transaction
    finally:
        positions.keep(())
        reader.close()
