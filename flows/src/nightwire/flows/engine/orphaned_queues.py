"""Queues of removed stones: deleted once every event in them was read, or is a dead letter."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice, takewhile

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as TopicPartitionOffset
from confluent_kafka.admin import AdminClient

from nightwire.core.accounting import OffsetAccounts, send_message_to_dead_letters, write_account
from nightwire.core.kafka import (
    GroupOffsets,
    Writer,
    admin,
    all_watermarks,
    consumer,
    error_code,
    headers_of,
    read_until,
    watermarks,
)
from nightwire.core.runtime import now_ms
from nightwire.flows.engine.queue_reading import (
    BATCH,
    first_retained,
    queue_accounts,
    resume_queues,
    transactional_producer,
)
from nightwire.flows.model import Flow
from nightwire.schemas.topics import flow_state

log = logging.getLogger("nightwire.flows")

WAIT = 86_400.0
"""Time for which an event waits for its removed stone, which may come back. [s]"""
REASON = "its stone is no part of the flow any more, and nobody read it for a day"
MOST = 50_000
"""Most events of one queue that expire before the next queue's turn."""
NEWEST = 4
"""Offsets at a partition's end whose records tell who writes a topic; some are of transactions."""
GROUP_TIMEOUT = 60.0
"""Longest wait until a group has no members. [s]"""
GROUP_POLL = 0.2
"""Time between two attempts to delete a group. [s]"""


def find_orphaned_queues(
    flows: Iterable[Flow], topics: Collection[str], names: Collection[str] | None = None
) -> list[str]:
    """Return those of *topics* that are queues of removed stones.

    Args:
        flows: Flows as they are now.
        topics: Names of all topics.
        names: Names of all flows, *flows* among them: queues of other flows are orphaned too.
            None to look at queues of *flows* alone.
    """
    known = {flow.name: {flow.queue(name) for name in flow.stones} for flow in flows}
    found = []
    for topic in topics:
        kind, _, rest = topic.partition(".")
        name = rest.partition(".")[0]
        ended = names is not None and name not in names
        if kind == "flow" and (ended or (name in known and topic not in known[name])):
            found.append(topic)
    return sorted(found)


def delete_orphaned_queues(
    bootstrap: str,
    flows: Iterable[Flow],
    names: Collection[str] | None = None,
    is_orphaned: Callable[[str], bool] = bool,
) -> list[str]:
    """Delete the orphaned queues that hold nothing unread; return their names.

    Events that waited longer than `WAIT` go to dead letters first.

    Args:
        bootstrap: Kafka's address.
        flows: As for `find_orphaned_queues`.
        names: Likewise.
        is_orphaned: Whether a queue is orphaned yet, asked just before it is deleted.

    Raises:
        KafkaException: Kafka refuses, or does not answer.
    """
    client: AdminClient = admin(bootstrap)
    found = find_orphaned_queues(flows, client.list_topics(timeout=10).topics, names)
    gone = []
    for queue in found:
        try:
            if not (_drain_expired(bootstrap, queue) and is_orphaned(queue)):
                continue
        except KafkaException as error:  # somebody reads it: the other queues go on
            log.warning("%s stays: %s", queue, error)
            continue
        client.delete_topics([queue])[queue].result(30)
        log.info("%s: nobody reads it any more, and all was read: deleted", queue)
        gone.append(queue)
    return gone


def unread_counts(bootstrap: str, flow: Flow) -> dict[str, int]:
    """Return the removed stones of *flow*, and how many records at most wait for each.

    Raises:
        KafkaException: Kafka does not answer.
    """
    found = find_orphaned_queues([flow], admin(bootstrap).list_topics(timeout=10).topics)
    counted = {}
    for queue in found:
        with _unread(bootstrap, queue) as (begin, end, _, unread):
            if next(unread, None) is not None:
                counted[queue.removeprefix(f"flow.{flow.name}.")] = end - begin
    return counted


def purge(bootstrap: str, name: str, written: Collection[str], used: Collection[str]) -> list[str]:
    """Delete queues, state, groups and outputs of ended flow *name*; return the topics.

    Args:
        bootstrap: Kafka's address.
        name: The flow.
        written: Topics that its last version wrote; those of older ones are told by their records.
        used: Topics that other flows and filters read or write: they stay.

    Raises:
        KafkaException: Kafka refuses, or a worker still reads after `GROUP_TIMEOUT`.
    """
    client = admin(bootstrap)
    topics = client.list_topics(timeout=10).topics
    free = {one: [*topics[one].partitions] for one in topics if one.startswith("broker.") and one not in used}
    ours = {flow_state(name), *free.keys() & {*written, *_written_by(bootstrap, name, free)}}
    gone = sorted(one for one in topics if one.startswith(f"flow.{name}.") or one in ours)
    groups = {one.group_id for one in client.list_consumer_groups().result(30).valid}
    for group in sorted(groups & {f"flow.{name}", *gone}):
        _delete_group(client, group)
    for done in client.delete_topics(gone).values() if gone else ():
        done.result(30)
    return gone


def _written_by(bootstrap: str, name: str, topics: Mapping[str, Sequence[int]]) -> set[str]:
    """Return those of *topics*, with their partitions, whose newest records are flow *name*'s."""
    partitions = [(topic, one) for topic, numbers in topics.items() for one in numbers]
    marks = {one: at for one, at in all_watermarks(admin(bootstrap), partitions).items() if at.low < at.high}
    writers = defaultdict[str, set[bytes]](set)
    with closing(consumer(bootstrap, enable_partition_eof=True)) as reader:
        begins = [TopicPartitionOffset(*one, max(at.low, at.high - NEWEST)) for one, at in marks.items()]
        reader.assign(begins)
        for message in read_until(reader, {one: at.high for one, at in marks.items()}):
            writers[str(message.topic())].add(headers_of(message).get("flow", b""))
    return {topic for topic, found in writers.items() if found == {name.encode()}}


def _delete_group(client: AdminClient, group: str) -> None:
    """Delete *group* once its members have left."""
    until = time.monotonic() + GROUP_TIMEOUT
    while True:
        try:
            client.delete_consumer_groups([group])[group].result(30)
        except KafkaException as error:
            code = error_code(error)
            if code == KafkaError.GROUP_ID_NOT_FOUND:
                return
            if code != KafkaError.NON_EMPTY_GROUP or time.monotonic() > until:
                raise
            time.sleep(GROUP_POLL)
        else:
            return


@contextmanager
def _unread(bootstrap: str, queue: str) -> Iterator[tuple[int, int, Consumer, Iterator[Message]]]:
    """Yield the position in *queue*, its end, a consumer at the position, and the unread records.

    The end lies behind the mark of the last transaction.
    """
    reader = consumer(bootstrap, group=queue, enable_partition_eof=True)
    positions = GroupOffsets(bootstrap)
    try:
        marks = watermarks(reader, queue, 0)
        position = TopicPartitionOffset(queue, 0, -1)
        resume_queues(positions, [position])
        position.offset = first_retained(position, marks.low)
        reader.assign([position])
        unread = read_until(reader, {(queue, 0): marks.high}) if position.offset < marks.high else iter(())
        yield position.offset, marks.high, reader, unread
    finally:
        positions.keep(())
        reader.close()


def _drain_expired(bootstrap: str, queue: str) -> bool:
    """Move expired events of *queue* to dead letters; return whether nothing unread is left."""
    with _unread(bootstrap, queue) as (begin, end, reader, unread):
        if (first := next(unread, None)) is None:
            return True
        if not _is_expired(first):
            return False
        sink = transactional_producer(bootstrap, f"leftover-{queue}")  # fences another worker's
        accounts = queue_accounts(bootstrap, queue, begin, end)
        left = islice(chain([first], unread), MOST)
        while batch := [*islice(left, BATCH)]:
            expired = [*takewhile(_is_expired, batch)]
            _send_to_dead_letters(sink, reader, accounts, expired)
            if expired != batch:
                return False
        return next(unread, None) is None


def _is_expired(message: Message) -> bool:
    return now_ms() - message.timestamp()[1] >= WAIT * 1000


def _send_to_dead_letters(
    sink: Producer, reader: Consumer, accounts: OffsetAccounts, expired: Sequence[Message]
) -> None:
    """Write *expired*, events of one queue, to dead letters, and accounts and position, as one.

    Raises:
        KafkaException: Another worker does it, or the stone has come back, and reads.
    """
    if not expired:
        return
    queue, writer = str(expired[0].topic()), Writer(sink)
    sink.begin_transaction()
    for one in expired:
        send_message_to_dead_letters(writer, one, stage=queue, reason=REASON)
        accounts.count((queue, 0), one.offset() or 0, dead_lettered=1)
    for account in accounts.changed():
        write_account(writer, account)
    done = TopicPartitionOffset(queue, 0, (expired[-1].offset() or 0) + 1)
    sink.send_offsets_to_transaction([done], reader.consumer_group_metadata())
    sink.commit_transaction()
    log.warning("%s: %d events are dead letters now: %s", queue, len(expired), REASON)
