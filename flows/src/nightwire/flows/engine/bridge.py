"""A bridge at work: events of its queue go to another site's Kafka, each once.

The position in the queue is committed over there, in the transaction of the events that it counts,
and read from there: a kill anywhere loses and doubles nothing.  Who takes the bridge over begins
with the same transactional id, and so fences off who had it.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicCollection
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.accounting import OffsetAccounts, send_message_to_dead_letters, write_account
from nightwire.core.kafka import GroupOffsets, Writer, admin, cluster_id, consumer, produce, producer
from nightwire.flows.engine.archived import first_retained
from nightwire.flows.engine.part import (
    BATCH,
    POLL,
    TRANSACTION_TIMEOUT,
    queue_accounts,
    resume_queues,
    transactional_producer,
    without_errors,
)
from nightwire.flows.engine.restarting_thread import RestartingThread
from nightwire.flows.model import Flow, FlowError, Stone
from nightwire.flows.terminals import Unavailable, secret

HEADERS = ("site", "site-partition", "site-offset")
"""Headers that say in which queue of which Kafka an event was: who reads twice knows it again.

They add up from site to site, so the `site`s are the way that an event came.
"""
CYCLE = "cycle"
"""Why an event that crossed from this Kafka to that one before does not do so again."""
log = logging.getLogger("nightwire.flows")


class Bridge(RestartingThread):
    """Runs a bridge until it is told to leave.

    Args:
        bootstrap: Address of our Kafka.
        flow: Its flow.
        stone: The bridge.
        takeover: After a crash, how long until another worker goes on. [s]
    """

    def __init__(self, bootstrap: str, flow: Flow, stone: Stone, takeover: float) -> None:
        super().__init__(f"flow-{flow.name}-{stone.name}")
        self._kafka, self._takeover = bootstrap, takeover
        self._queue, self.stone = flow.queue(stone.name), stone

    def session(self, reset_backoff: Callable[[], None]) -> None:
        """Copy events until `leaving` is set, or the bridge's options change."""
        stone = self.stone
        try:
            crossing = Crossing(self._kafka, self._queue, stone)
        except Unavailable as error:
            raise FlowError([str(error)]) from error
        source = consumer(
            self._kafka,
            group=self._queue,
            auto_offset_reset="earliest",
            session_timeout_ms=int(self._takeover * 1000),
        )
        source.subscribe([self._queue], on_assign=crossing.assigned, on_revoke=crossing.revoked)
        try:
            while self.stone is stone and not self.leaving.is_set():
                if messages := without_errors(source.consume(BATCH, POLL)):
                    crossing.carry(source, messages)
                    reset_backoff()
                self.problem = ""
        finally:
            source.close()
            crossing.close()


class Crossing:
    """What a bridge does between two Kafkas.

    Args:
        bootstrap: Address of ours.
        queue: The bridge's topic.
        stone: The bridge.
    """

    def __init__(self, bootstrap: str, queue: str, stone: Stone) -> None:
        self._bootstrap, self._queue, self._there = bootstrap, (queue, 0), stone.options["kafka"]
        self._site, self._client = str(cluster_id(bootstrap)), identity_there(stone)
        self._name = f"{queue}.{_topic_id(bootstrap, queue)}"
        self._place = (stone.options["topic"], 0)  # what is committed has to be of a topic that is there
        self._positions, self._writer = GroupOffsets(bootstrap), Writer(producer(bootstrap))
        self._member = consumer(self._there, group=self._name, client=self._client)
        self._other = str(self._member.list_topics(self._place[0], timeout=15).cluster_id)
        if self._other == self._site:
            raise FlowError([f"bridge {stone.name} leads to this Kafka itself: end in a topic"])
        self._accounts = OffsetAccounts(queue)
        self._holds = self._told = False
        self._next = 0

    def assigned(self, source: Consumer, partitions: list[TopicPartitionOffset]) -> None:
        """Fence off who had the bridge; read on here, and write on where it stopped over there."""
        if not partitions:
            return  # another worker has the bridge: it is not to be fenced off
        self._sink, self._holds = self._fencing(), True
        known = source.committed(partitions, timeout=15)
        resume_queues(self._positions, known)
        for one in known:
            low, high = source.get_watermark_offsets(one, timeout=10)
            one.offset = first_retained(one, low)
            self._accounts = queue_accounts(self._bootstrap, one.topic, one.offset, high)
        [there] = self._member.committed([TopicPartitionOffset(*self._place)], timeout=15)
        self._next = max(0, there.offset)
        source.assign(known)

    def revoked(self, source: Consumer, _partitions: list[TopicPartitionOffset]) -> None:
        """Let the queue go."""
        self._holds = False
        source.unassign()

    def carry(self, source: Consumer, messages: list[Message]) -> None:
        """Write those of *messages* over there that are not there yet; then say so here."""
        if self._holds:
            known = [one for one in messages if (one.offset() or 0) < self._next]
            self._settle(source, known)
            self._cross(source, messages[len(known) :])

    def close(self) -> None:
        """Leave the other Kafka."""
        self._positions.keep(())
        self._member.close()

    def _cross(self, source: Consumer, messages: list[Message]) -> None:
        """Write *messages* over there; those that are too large for it go to dead letters."""
        if not messages:
            return
        try:
            self._transact(messages)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
                raise
            self._sink = self._fencing()  # the old one has gaps in its sequence numbers now
            if half := len(messages) // 2:
                self._cross(source, messages[:half])
                self._cross(source, messages[half:])
                return
            send_message_to_dead_letters(self._writer, messages[0], stage=self._queue[0], reason=str(error))
            self._settle(source, messages, dead=True)
        else:
            self._settle(source, messages)

    def _settle(self, source: Consumer, messages: list[Message], *, dead: bool = False) -> None:
        """Count and commit here what is over there, or *dead*: of that nothing is said there."""
        if not messages:
            return
        for one in messages:
            again = not dead and crossed(one, self._site, self._other)
            self._accounts.count(
                self._queue,
                one.offset() or 0,
                delivered=not (dead or again),
                dead_lettered=dead,
                rejected={CYCLE: 1} if again else None,
            )
        for account in self._accounts.changed():
            write_account(self._writer, account)
        self._writer.flush()
        self._next = max(self._next, (messages[-1].offset() or 0) + 1)
        after = TopicPartitionOffset(*self._queue, (messages[-1].offset() or 0) + 1)
        source.commit(offsets=[after], asynchronous=False)

    def _transact(self, messages: list[Message]) -> None:
        """Write *messages* and the position after them as one.

        Raises:
            KafkaException: Nothing of that is written; says so where a record was too large.
        """
        refused, sink = list[KafkaError](), self._sink
        sink.begin_transaction()
        try:
            for one in messages:
                if not crossed(one, self._site, self._other):
                    self._write(sink, one, refused)
                elif not self._told:
                    self._told = True
                    log.warning("%s: a cycle over sites: what crossed here before is rejected", self._name)
            sink.flush(TRANSACTION_TIMEOUT / 1000)
            here = [TopicPartitionOffset(*self._place, (messages[-1].offset() or 0) + 1)]
            sink.send_offsets_to_transaction(here, self._member.consumer_group_metadata())
            sink.commit_transaction()
        except KafkaException as error:
            with suppress(KafkaException):
                sink.abort_transaction(10)
            large = [one for one in refused if one.code() == KafkaError.MSG_SIZE_TOO_LARGE]
            raise (KafkaException(large[0]) if large else error) from error

    def _write(self, sink: Producer, message: Message, refused: list[KafkaError]) -> None:
        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                refused.append(error)

        headers = [*(message.headers() or ()), *self._headers(message)]
        key = message.key()
        produce(sink, self._place[0], message.value(), key, on_delivery=delivered, headers=headers)
        sink.poll(0)

    def _fencing(self) -> Producer:
        return transactional_producer(self._there, self._name, self._client)

    def _headers(self, message: Message) -> list[tuple[str, bytes]]:
        values = (self._site, message.partition(), message.offset())
        return [(name, str(value).encode()) for name, value in zip(HEADERS, values, strict=True)]


def crossed(message: Message, here: str, there: str) -> bool:
    """Return whether *message*, at site *here*, went *there* before, as its headers say."""
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    way = [*((value or b"").decode(errors="replace") for name, value in headers if name == HEADERS[0]), here]
    return (here, there) in pairwise(way)


def _topic_id(bootstrap: str, topic: str) -> str:
    """Return what tells *topic* apart from all others, one of its name that was deleted too."""
    client = admin(bootstrap)
    return str(client.describe_topics(TopicCollection([topic]))[topic].result(30).topic_id)


def identity_there(stone: Stone) -> dict[str, Any]:
    """Return librdkafka's properties of who comes to the other Kafka: our own are not for it.

    Raises:
        Unavailable: The worker has not the variable that holds the password.
    """
    given = stone.options
    tls = "SSL" if given.get("tls", "user" in given) else "PLAINTEXT"
    if "user" not in given:
        return {"security.protocol": tls}
    return {
        "security.protocol": f"SASL_{tls}",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": given["user"],
        "sasl.password": secret(given.get("password", "")),
    }
