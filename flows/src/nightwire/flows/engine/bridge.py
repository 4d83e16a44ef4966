"""A bridge at work: events of its queue go to another site's Kafka, each once.

The position in the queue is committed over there, in the transaction of the events that it counts,
and read from there: a kill anywhere loses and doubles nothing.  Who takes the bridge over begins
with the same transactional id, and so fences off who had it.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.accounting import OffsetAccounts, read_accounts, write_account
from nightwire.core.kafka import GroupOffsets, Writer, cluster_id, consumer, producer
from nightwire.flows.engine.events import event_of
from nightwire.flows.engine.part import BATCH, POLL, go_on_in_queues, records, transactional
from nightwire.flows.engine.restarting import Restarting
from nightwire.flows.model import Flow, Stone
from nightwire.flows.terminals import secret

log = logging.getLogger("nightwire.flows")

HEADERS = ("site", "site-partition", "site-offset")
"""Headers that say in which queue of which Kafka an event was: who reads twice knows it again."""


class Bridge(Restarting):
    """Runs a bridge until it is told to leave.

    Args:
        bootstrap: Address of our Kafka.
        flow: Its flow.
        stone: The bridge.
        takeover: After a crash, how long until another worker goes on. [s]
    """

    def __init__(self, bootstrap: str, flow: Flow, stone: Stone, takeover: float) -> None:
        super().__init__(f"flow-{flow.name}-{stone.name}")
        self._kafka, self._flow, self._takeover = bootstrap, flow.name, takeover
        self._queue, self.stone = flow.queue(stone.name), stone

    def session(self, worked: Callable[[], None]) -> None:
        """Carry events until it is time to leave, or the bridge changes."""
        crossing = Crossing(self._kafka, self._queue, self.stone, self._flow)
        source = consumer(
            self._kafka,
            group=self._queue,
            auto_offset_reset="earliest",
            session_timeout_ms=int(self._takeover * 1000),
        )
        source.subscribe([self._queue], on_assign=crossing.assigned, on_revoke=crossing.revoked)
        try:
            while crossing.stone is self.stone and not self.leaving.is_set():
                if messages := records(source.consume(BATCH, POLL)):
                    crossing.carry(source, messages)
                    self.problem = ""
                    worked()
        finally:
            source.close()


class Crossing:
    """What a bridge does between two Kafkas.

    Args:
        bootstrap: Address of ours.
        queue: The bridge's topic.
        stone: The bridge.
        flow: Name of its flow.
    """

    def __init__(self, bootstrap: str, queue: str, stone: Stone, flow: str) -> None:
        self.stone, self._bootstrap, self._queue, self._flow = stone, bootstrap, queue, flow
        self._there, self._client = stone.options["kafka"], identity_there(stone)
        self._site = cluster_id(bootstrap)
        self._group = f"{queue}.{self._site}"
        self._place = (stone.options["topic"], 0)  # a topic that is there: Kafka wants one
        self._ours, self._theirs = GroupOffsets(bootstrap), GroupOffsets(self._there, client=self._client)
        self._writer = Writer(producer(bootstrap))
        self._accounts = OffsetAccounts(queue)
        self._sink: Producer | None = None
        self._next = 0

    def assigned(self, source: Consumer, partitions: list[TopicPartitionOffset]) -> None:
        """Fence off who had the bridge, and begin where it stopped over there."""
        if not partitions:
            return
        self._sink = transactional(self._there, self._group, self._client)
        [one] = partitions
        go_on_in_queues(self._ours, [one])
        found = self._theirs.committed(self._group, [self._place]).values()
        self._next = one.offset = max(one.offset, 0, *found)
        low, _ = source.get_watermark_offsets(one, timeout=10)
        self._next = one.offset = max(low, one.offset)
        counted = read_accounts(self._bootstrap)
        self._accounts = OffsetAccounts(self._queue, counted, positions={(self._queue, 0): self._next})
        source.assign([one])

    def revoked(self, source: Consumer, _partitions: list[TopicPartitionOffset]) -> None:
        """Let the queue go."""
        self._sink = None
        source.unassign()

    def carry(self, source: Consumer, messages: list[Message]) -> None:
        """Write *messages* over there, and that they are, as one; then say so here."""
        new = [one for one in messages if (one.offset() or 0) >= self._next]
        if self._sink is None or not new:
            return
        after = (new[-1].offset() or 0) + 1
        self._transact(self._sink, new, after)
        self._next = after
        for one in new:
            self._accounts.count((self._queue, 0), one.offset() or 0, delivered=1)
        for account in self._accounts.changed():
            write_account(self._writer, account)
        self._writer.flush()
        source.commit(offsets=[TopicPartitionOffset(self._queue, 0, after)], asynchronous=False)

    def _transact(self, sink: Producer, messages: list[Message], after: int) -> None:
        sink.begin_transaction()
        try:
            writer = Writer(sink)
            for one in messages:
                headers = [*event_of(one).record_headers(self._flow, 0), *self._headers(one)]
                writer.write(self._place[0], one.value(), key=one.key(), headers=headers)
            member = consumer(self._there, group=self._group, client=self._client)
            try:
                here = [TopicPartitionOffset(*self._place, after)]
                sink.send_offsets_to_transaction(here, member.consumer_group_metadata())
            finally:
                member.close()
            sink.commit_transaction()
        except BaseException:
            with suppress(KafkaException):
                sink.abort_transaction(10)
            raise

    def _headers(self, message: Message) -> list[tuple[str, bytes]]:
        values = (self._site, message.partition(), message.offset())
        return [(name, str(value).encode()) for name, value in zip(HEADERS, values, strict=True)]


def identity_there(stone: Stone) -> dict[str, Any]:
    """Return librdkafka's properties of who comes to the other Kafka: our own are not for it.

    Raises:
        KafkaException: The worker has no such variable.
    """
    given = stone.options
    tls = "_SSL" if given.get("tls", True) else "_PLAINTEXT"
    if "user" not in given:
        return {"security.protocol": "SSL" if given.get("tls") else "PLAINTEXT"}
    return {
        "security.protocol": f"SASL{tls}",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": given["user"],
        "sasl.password": secret(given.get("password", "")),
    }
