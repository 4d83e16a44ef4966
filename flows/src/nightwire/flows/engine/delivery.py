"""Delivery of the events in a terminal's queue, one after the other, at least once.

Each terminal has a consumer group of its own, so a slow one stops no other.  An event that is not
taken is tried again; one tried for too long, or refused for good, goes to dead letters, unless the
terminal has no use for it: then it is rejected by name.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.accounting import OffsetAccounts, send_message_to_dead_letters, write_account
from nightwire.core.kafka import (
    GroupOffsets,
    TopicPartition,
    Writer,
    consumer,
    producer,
    retry_while_unavailable,
)
from nightwire.core.runtime import Backoff, LogLimiter, now_ms
from nightwire.flows.engine.events import event_of
from nightwire.flows.engine.queue_reading import (
    POLL,
    first_retained,
    partition_of,
    queue_accounts,
    resume_queues,
    without_errors,
)
from nightwire.flows.model import Flow, Stone, seconds
from nightwire.flows.restarting_thread import RestartingThread
from nightwire.flows.terminals import (
    EventView,
    Refused,
    Rejected,
    Terminal,
    TerminalLimits,
    Unavailable,
    open_terminal,
)
from nightwire.schemas import AlertDecoder, DecodeError, SchemaError, SchemaRegistry

log = logging.getLogger("nightwire.flows")

GIVE_UP = "1d"
"""Default time for which one event is tried."""
HEARTBEATS_PER_TAKEOVER = 12
"""Heartbeats within the session timeout."""
COMMIT_INTERVAL = 0.2
"""Time between two commits. [s]"""
LEAST_ATTEMPTS = 3
"""Attempts that every event gets, however long it has waited."""


class TerminalRunner(RestartingThread):
    """The thread of one terminal.

    Args:
        bootstrap: Kafka's address.
        flow: The terminal's flow.
        stone: The terminal.
        limits: What the worker allows.
        takeover: Session timeout: so long after a crash another worker goes on. [s]
        registry: Of the events' schemas.
    """

    def __init__(
        self,
        bootstrap: str,
        flow: Flow,
        stone: Stone,
        *,
        limits: TerminalLimits,
        takeover: float,
        registry: SchemaRegistry,
    ) -> None:
        super().__init__(f"flow-{flow.name}-{stone.name}")
        self._kafka, self._flow, self._limits, self._takeover = bootstrap, flow.name, limits, takeover
        self._queue, self._decoder = flow.queue(stone.name), AlertDecoder(registry)
        self.stone = stone
        self._limiter = LogLimiter()

    def session(self, reset_backoff: Callable[[], None]) -> None:
        """Deliver events until `leaving` is set."""
        source = consumer(
            self._kafka,
            group=self._queue,
            auto_offset_reset="earliest",
            session_timeout_ms=int(self._takeover * 1000),
            heartbeat_interval_ms=int(self._takeover * 1000 / HEARTBEATS_PER_TAKEOVER),
        )
        queue = QueueConsumer(self._kafka, self._queue, source)
        source.subscribe([self._queue], on_assign=queue.assigned, on_revoke=queue.revoked)
        try:
            while not self.leaving.is_set():
                stone, terminal = self.stone, open_terminal(self.stone, self._limits)
                try:
                    while self.stone is stone and not self.leaving.is_set():
                        self._deliver_next(queue, terminal, stone)
                        reset_backoff()
                finally:
                    terminal.close()
        finally:
            source.close()
            queue.group_offsets.keep(())

    def _deliver_next(self, queue: "QueueConsumer", terminal: Terminal, stone: Stone) -> None:
        """Deliver the next event, if there is one; seek back to it where the terminal changes."""
        if not (found := without_errors([one] if (one := queue.source.poll(POLL)) is not None else [])):
            queue.commit()
            self.problem = "" if queue.joined else self.problem  # nothing waits for it here
            return None
        message, attempts, backoff = found[0], 0, Backoff(0.5, 30.0)
        while self._may_deliver(queue, message, stone):
            attempts += 1
            why = self._attempt(terminal, message)
            if why is None or isinstance(why, Rejected):
                self.problem = ""
                return queue.count(message, {"rejected": {str(why): 1}} if why else {"delivered": 1})
            self.problem = str(why)
            age = (now_ms() - message.timestamp()[1]) / 1000
            late = attempts >= LEAST_ATTEMPTS and age > seconds(stone.options.get("give_up", GIVE_UP))
            if late or isinstance(why, Refused | DecodeError):
                return queue.send_to_dead_letters(message, f"{why}, attempt {attempts}")
            self.retries += 1
            if self._limiter.allows(str(why)):
                log.warning("%s: %s; trying again", self.name, why)
            self._pause(queue, message, stone, backoff.next())
        return queue.seek_back(message)

    def _may_deliver(self, queue: "QueueConsumer", message: Message, stone: Stone) -> bool:
        return partition_of(message) in queue.positions and self.stone is stone and not self.leaving.is_set()

    def _attempt(self, terminal: Terminal, message: Message) -> Exception | None:
        """Deliver *message*; return the error of a failed attempt."""
        try:
            event = event_of(message)
            identity, written = event.identity, event.written
            terminal.deliver(EventView.decode(event.value, identity, self._flow, self._decoder, written))
        except (Unavailable, Refused, SchemaError) as error:
            return error
        except Exception as error:
            log.debug("%s", self.name, exc_info=True)
            return Unavailable(f"{type(error).__name__}: {error}")  # else nothing behind it ever leaves
        return None

    def _pause(self, queue: "QueueConsumer", message: Message, stone: Stone, pause: float) -> None:
        """Wait for *pause* [s], polling, so that the group keeps this member."""
        queue.commit()
        until = time.monotonic() + pause
        here = [TopicPartitionOffset(*partition_of(message))]
        queue.source.pause(here)
        while time.monotonic() < until and self._may_deliver(queue, message, stone):
            if queue.source.poll(POLL) is not None:
                queue.seek_back(message)  # the partition went and came again, unpaused
        if partition_of(message) in queue.positions:
            queue.source.resume(here)


class QueueConsumer:
    """The consumer of a terminal's queue, its positions and its accounts.

    Args:
        bootstrap: Kafka's address.
        queue: The terminal's topic.
        source: The consumer.

    Attributes:
        joined: Whether the group has assigned partitions, be it none.
        positions: Next offset of each assigned partition.
    """

    def __init__(self, bootstrap: str, queue: str, source: Consumer) -> None:
        self.source, self._queue, self._kafka, self.joined = source, queue, bootstrap, False
        self._writer = Writer(producer(bootstrap))
        self._accounts = OffsetAccounts(queue)
        self.positions: dict[TopicPartition, int] = {}
        self.group_offsets = GroupOffsets(bootstrap)
        self._committed: dict[TopicPartition, int] = {}
        self._committed_at = time.monotonic()

    def assigned(self, source: Consumer, partitions: list[TopicPartitionOffset]) -> None:
        """Begin at the committed offsets; events that the accounts hold are not counted again."""
        known = retry_while_unavailable(lambda: source.committed(partitions, timeout=15), patience=20)
        resume_queues(self.group_offsets, known)
        for one in known:
            low, high = source.get_watermark_offsets(one, timeout=10)
            one.offset = first_retained(one, low)
            self.positions[one.topic, one.partition] = self._committed[one.topic, one.partition] = one.offset
            self._accounts = queue_accounts(self._kafka, self._queue, one.offset, high)
        source.assign(known)
        self.joined = True

    def revoked(self, source: Consumer, _partitions: list[TopicPartitionOffset]) -> None:
        """Commit, and give up the partitions."""
        self.commit(now=True)
        self.positions.clear()
        source.unassign()

    def count(self, message: Message, fate: Mapping[str, Any]) -> None:
        """Count *message* by its *fate*, which `OffsetAccounts.count` takes; go on behind it."""
        here, offset = partition_of(message), message.offset() or 0
        self._accounts.count(here, offset, **fate)
        self.positions[here] = offset + 1
        self.commit()

    def send_to_dead_letters(self, message: Message, why: str) -> None:
        """Send *message* to dead letters with the reason *why*."""
        send_message_to_dead_letters(self._writer, message, stage=self._queue, reason=why)
        self.count(message, {"dead_lettered": 1})

    def seek_back(self, message: Message) -> None:
        """Read *message* again, if its partition is still assigned."""
        if partition_of(message) in self.positions:
            self.source.seek(TopicPartitionOffset(*partition_of(message), message.offset() or 0))

    def commit(self, *, now: bool = False) -> None:
        """Write accounts, then commit positions, every `COMMIT_INTERVAL` or *now*."""
        new = {here: offset for here, offset in self.positions.items() if self._committed.get(here) != offset}
        if not new or (time.monotonic() - self._committed_at < COMMIT_INTERVAL and not now):
            return
        for account in self._accounts.changed():
            write_account(self._writer, account)
        self._writer.flush()
        self.source.commit(
            offsets=[TopicPartitionOffset(*here, offset) for here, offset in new.items()], asynchronous=False
        )
        self._committed |= new
        self._committed_at = time.monotonic()
