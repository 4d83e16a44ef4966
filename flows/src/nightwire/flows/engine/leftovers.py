"""Queues of stones that are no more: they go once all in them was read, or is a dead letter."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice, takewhile

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset
from confluent_kafka.admin import AdminClient

from nightwire.core.accounting import OffsetAccounts, send_message_to_dead_letters, write_account
from nightwire.core.kafka import GroupOffsets, Writer, admin, consumer, read_until, watermarks
from nightwire.core.runtime import now_ms
from nightwire.flows.engine.part import BATCH, accounts_of, go_on_in_queues, transactional
from nightwire.flows.engine.past import still_there
from nightwire.flows.model import Flow
from nightwire.schemas.topics import flow_state

log = logging.getLogger("nightwire.flows")

LATE = 86_400.0
"""For how long events wait for a stone that is no more: it may come back. [s]"""
WHY = "its stone is no part of the flow any more, and nobody read it for a day"
MOST = 50_000
"""Most events of a queue that go at once: then it is the next one's turn."""
LEAVING = 60.0
"""Longest wait until all workers have left a flow that has ended. [s]"""
LOOK = 0.2
"""Time between two looks at that. [s]"""


def leftovers(
    flows: Iterable[Flow], topics: Collection[str], names: Collection[str] | None = None
) -> list[str]:
    """Return those of *topics* that are queues of stones that are no more.

    Args:
        flows: Flows as they are now.
        topics: Names of all topics.
        names: Those of all flows, of which *flows* may be some; what is of no flow is left over.
            None where only those of *flows* are asked for.
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


def drop_leftovers(
    bootstrap: str,
    flows: Iterable[Flow],
    names: Collection[str] | None = None,
    is_still: Callable[[str], bool] = bool,
) -> list[str]:
    """Delete the queues that are left over and hold nothing unread; return their names.

    What nobody has read for `LATE` goes to dead letters first; what came later waits, since its
    stone may come back.

    Args:
        bootstrap: Kafka's address.
        flows: As for `leftovers`.
        names: Likewise.
        is_still: Whether a queue is left over yet, at the last moment: others' letters take time.

    Raises:
        KafkaException: Kafka refuses, or does not answer.
    """
    client: AdminClient = admin(bootstrap)
    found = leftovers(flows, client.list_topics(timeout=10).topics, names)
    gone = []
    for queue in found:
        try:
            if not (_is_dry(bootstrap, queue) and is_still(queue)):
                continue
        except KafkaException as error:  # somebody reads it: one such holds up no other
            log.warning("%s stays: %s", queue, error)
            continue
        client.delete_topics([queue])[queue].result(30)
        log.info("%s: nobody reads it any more, and all was read: deleted", queue)
        gone.append(queue)
    return gone


def waiting(bootstrap: str, flow: Flow) -> dict[str, int]:
    """Return the stones that *flow* no longer has, and how many records at most wait for each.

    Raises:
        KafkaException: Kafka does not answer.
    """
    found = leftovers([flow], admin(bootstrap).list_topics(timeout=10).topics)
    counted = {}
    for queue in found:
        with _unread(bootstrap, queue) as (begin, end, _, unread):
            if next(unread, None) is not None:
                counted[queue.removeprefix(f"flow.{flow.name}.")] = end - begin
    return counted


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


@contextmanager
def _unread(bootstrap: str, queue: str) -> Iterator[tuple[int, int, Consumer, Iterator[Message]]]:
    """Yield where reading *queue* stopped, where it ends, who reads there, and what is there.

    Behind the last record lies a transaction's mark.
    """
    reader = consumer(bootstrap, group=queue, enable_partition_eof=True)
    positions = GroupOffsets(bootstrap)
    try:
        marks = watermarks(reader, queue, 0)
        at = TopicPartitionOffset(queue, 0, -1)
        go_on_in_queues(positions, [at])
        at.offset = still_there(at, marks.low)
        reader.assign([at])
        unread = read_until(reader, {(queue, 0): marks.high}) if at.offset < marks.high else iter(())
        yield at.offset, marks.high, reader, unread
    finally:
        positions.keep(())
        reader.close()


def _is_dry(bootstrap: str, queue: str) -> bool:
    """Whether nothing unread is in *queue*, once what is late has gone to dead letters."""
    with _unread(bootstrap, queue) as (begin, end, reader, unread):
        if (first := next(unread, None)) is None:
            return True
        if not _is_late(first):
            return False
        burial = Burial(bootstrap, queue, reader, accounts_of(bootstrap, queue, begin, end))
        left = islice(chain([first], unread), MOST)
        while batch := [*islice(left, BATCH)]:
            late = [*takewhile(_is_late, batch)]
            burial.bury(late)
            if late != batch:
                return False
        return next(unread, None) is None


def _is_late(message: Message) -> bool:
    return now_ms() - message.timestamp()[1] >= LATE * 1000


class Burial:
    """Sends what nobody reads to dead letters.

    Args:
        bootstrap: Kafka's address.
        queue: Where it lies.
        reader: Reads it, in the group of the stone that is no more.
        accounts: Of that stone.
    """

    def __init__(self, bootstrap: str, queue: str, reader: Consumer, accounts: OffsetAccounts) -> None:
        self._queue, self._reader, self._accounts = queue, reader, accounts
        self._sink = transactional(bootstrap, f"leftover-{queue}")  # another worker's is fenced off

    def bury(self, late: Sequence[Message]) -> None:
        """Write the events *late*, count them so, and commit that they are read, as one.

        Raises:
            KafkaException: Another worker does it, or the stone has come back, and reads.
        """
        if not late:
            return
        writer = Writer(self._sink)
        self._sink.begin_transaction()
        for one in late:
            send_message_to_dead_letters(writer, one, stage=self._queue, reason=WHY)
            self._accounts.count((self._queue, 0), one.offset() or 0, dead_lettered=1)
        for account in self._accounts.changed():
            write_account(writer, account)
        done = TopicPartitionOffset(self._queue, 0, (late[-1].offset() or 0) + 1)
        self._sink.send_offsets_to_transaction([done], self._reader.consumer_group_metadata())
        self._sink.commit_transaction()
        log.warning("%s: %d events are dead letters now: %s", self._queue, len(late), WHY)
