"""Queues of stones that are no more: they go once all in them was read."""

import logging
import time
from collections.abc import Collection, Iterable

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as TopicPartitionOffset
from confluent_kafka.admin import AdminClient

from nightwire.core.kafka import GroupOffsets, admin, consumer, read_until, watermarks
from nightwire.flows.engine.part import go_on_in_queues
from nightwire.flows.model import Flow
from nightwire.schemas.topics import flow_state

log = logging.getLogger("nightwire.flows")

LEAVING = 60.0
"""Longest wait until all workers have left a flow that has ended. [s]"""
LOOK = 0.2
"""Time between two looks at that. [s]"""


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


def purge(bootstrap: str, name: str, written: Collection[str]) -> list[str]:
    """Delete what flow *name* left, which has ended, and the topics *written*; return their names.

    Raises:
        KafkaException: Kafka refuses, or a worker still reads after `LEAVING`.
    """
    client = admin(bootstrap)
    topics = client.list_topics(timeout=10).topics
    gone = sorted(
        one for one in topics if one.startswith(f"flow.{name}.") or one in {*written, flow_state(name)}
    )
    groups = {one.group_id for one in client.list_consumer_groups().result(30).valid}
    for group in sorted(groups & {f"flow.{name}", *gone}):
        _forget(client, group)
    for done in client.delete_topics(gone).values() if gone else ():
        done.result(30)
    return gone


def _forget(client: AdminClient, group: str) -> None:
    """Delete *group* once its members have left."""
    until = time.monotonic() + LEAVING
    while True:
        try:
            client.delete_consumer_groups([group])[group].result(30)
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.GROUP_ID_NOT_FOUND:
                return
            if code != KafkaError.NON_EMPTY_GROUP or time.monotonic() > until:
                raise
            time.sleep(LOOK)
        else:
            return


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
