"""A terminal at work: events of its queue leave Kafka one after the other, at least once.

It has a consumer group of its own, so a slow one stops no other.  What is not taken is tried again;
what was tried for too long, or is refused for good, goes to dead letters.
"""

import logging
import time
from collections.abc import Callable

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.accounting import (
    OffsetAccounts,
    send_message_to_dead_letters,
    write_account,
)
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
from nightwire.flows.engine.part import accounts_of, go_on_in_queues, place, records
from nightwire.flows.engine.past import still_there
from nightwire.flows.engine.restarting import Restarting
from nightwire.flows.model import Flow, Stone, seconds
from nightwire.flows.terminals import Limits, Refused, Terminal, Unavailable, open_terminal, view
from nightwire.schemas import AlertDecoder, DecodeError, SchemaError, SchemaRegistry

log = logging.getLogger("nightwire.flows")

GIVE_UP = "1d"
"""For how long one event is tried where nobody says."""
HEARTBEATS = 12
"""So many while another worker waits to take over."""
KEEP = 0.2
"""Time between two commits. [s]"""
LEAST_ATTEMPTS = 3
"""So often an event is tried, however long it has waited."""
POLL = 0.05
"""Longest wait for events. [s]"""


class WayOut(Restarting):
    """Runs a terminal until it is told to leave.

    Args:
        bootstrap: Kafka's address.
        flow: Its flow.
        stone: The terminal.
        limits: What the worker allows.
        takeover: After a crash, how long until another worker goes on. [s]
        registry: Knows the schemas of events.
    """

    def __init__(
        self,
        bootstrap: str,
        flow: Flow,
        stone: Stone,
        *,
        limits: Limits,
        takeover: float,
        registry: SchemaRegistry,
    ) -> None:
        super().__init__(f"flow-{flow.name}-{stone.name}")
        self._kafka, self._flow, self._limits, self._takeover = bootstrap, flow.name, limits, takeover
        self._queue, self._decoder = flow.queue(stone.name), AlertDecoder(registry)
        self.stone = stone
        self._limiter = LogLimiter()

    def session(self, worked: Callable[[], None]) -> None:
        """Hand over events until it is time to leave."""
        source = consumer(
            self._kafka,
            group=self._queue,
            auto_offset_reset="earliest",
            session_timeout_ms=int(self._takeover * 1000),
            heartbeat_interval_ms=int(self._takeover * 1000 / HEARTBEATS),
        )
        held = Held(self._kafka, self._queue, source)
        source.subscribe([self._queue], on_assign=held.assigned, on_revoke=held.revoked)
        try:
            while not self.leaving.is_set():
                stone, terminal = self.stone, open_terminal(self.stone, self._limits)
                try:
                    while self.stone is stone and not self.leaving.is_set():
                        self._step(held, terminal, stone)
                        worked()
                finally:
                    terminal.close()
        finally:
            source.close()
            held.positions.keep(())

    def _step(self, held: "Held", terminal: Terminal, stone: Stone) -> None:
        """Hand over the next event, if there is one; where it is not taken, it comes again."""
        if not (found := records([one] if (one := held.source.poll(POLL)) is not None else [])):
            held.keep()
            self.problem = "" if held.joined else self.problem  # nothing waits for it here
            return None
        message, attempts, backoff = found[0], 0, Backoff(0.5, 30.0)
        while self._wanted(held, message, stone):
            attempts += 1
            why = self._attempt(terminal, message)
            if why is None:
                self.problem = ""
                return held.count(message, delivered=1)
            self.problem = str(why)
            age = (now_ms() - message.timestamp()[1]) / 1000
            late = attempts >= LEAST_ATTEMPTS and age > seconds(stone.options.get("give_up", GIVE_UP))
            if late or isinstance(why, Refused | DecodeError):
                return held.bury(message, f"{why}, attempt {attempts}")
            self.retries += 1
            if self._limiter.allows(str(why)):
                log.warning("%s: %s; trying again", self.name, why)
            self._pause(held, message, stone, backoff.next())
        return held.back(message)

    def _wanted(self, held: "Held", message: Message, stone: Stone) -> bool:
        return place(message) in held.next and self.stone is stone and not self.leaving.is_set()

    def _attempt(self, terminal: Terminal, message: Message) -> Exception | None:
        """Hand *message* over; return why it was not taken."""
        try:
            event = event_of(message)
            terminal.deliver(view(event.value, event.identity, self._flow, self._decoder, event.written))
        except (Unavailable, Refused, SchemaError) as error:
            return error
        except Exception as error:
            log.debug("%s", self.name, exc_info=True)
            return Unavailable(f"{type(error).__name__}: {error}")  # else nothing behind it ever leaves
        return None

    def _pause(self, held: "Held", message: Message, stone: Stone, pause: float) -> None:
        """Wait before the next attempt, as a member of the group that is alive."""
        held.keep()
        until = time.monotonic() + pause
        here = [TopicPartitionOffset(*place(message))]
        held.source.pause(here)
        while time.monotonic() < until and self._wanted(held, message, stone):
            if held.source.poll(POLL) is not None:
                held.back(message)  # the partition went and came again, unpaused
        if place(message) in held.next:
            held.source.resume(here)


class Held:
    """The partitions that a terminal has, and what became of their events.

    Args:
        bootstrap: Kafka's address.
        queue: The terminal's topic.
        source: Reads it.
    """

    def __init__(self, bootstrap: str, queue: str, source: Consumer) -> None:
        self.source, self._queue, self._kafka, self.joined = source, queue, bootstrap, False
        self._writer = Writer(producer(bootstrap))
        self._accounts = OffsetAccounts(queue)
        self.next: dict[TopicPartition, int] = {}
        self.positions = GroupOffsets(bootstrap)
        self._kept: dict[TopicPartition, int] = {}
        self._since = time.monotonic()

    def assigned(self, source: Consumer, partitions: list[TopicPartitionOffset]) -> None:
        """Begin where the terminal stopped; what its accounts hold is not counted again."""
        known = retry_while_unavailable(lambda: source.committed(partitions, timeout=15), patience=20)
        go_on_in_queues(self.positions, known)
        for one in known:
            low, high = source.get_watermark_offsets(one, timeout=10)
            one.offset = still_there(one, low)
            self.next[one.topic, one.partition] = self._kept[one.topic, one.partition] = one.offset
            self._accounts = accounts_of(self._kafka, self._queue, one.offset, high)
        source.assign(known)
        self.joined = True

    def revoked(self, source: Consumer, _partitions: list[TopicPartitionOffset]) -> None:
        """Keep what was done, and let the partitions go."""
        self.keep(now=True)
        self.next.clear()
        source.unassign()

    def count(self, message: Message, *, delivered: int = 0, dead_lettered: int = 0) -> None:
        """Note what became of *message*."""
        here, offset = place(message), message.offset() or 0
        self._accounts.count(here, offset, delivered=delivered, dead_lettered=dead_lettered)
        self.next[here] = offset + 1
        self.keep()

    def bury(self, message: Message, why: str) -> None:
        """Send *message* to dead letters."""
        send_message_to_dead_letters(self._writer, message, stage=self._queue, reason=why)
        self.count(message, dead_lettered=1)

    def back(self, message: Message) -> None:
        """Let *message* come again."""
        if place(message) in self.next:
            self.source.seek(TopicPartitionOffset(*place(message), message.offset() or 0))

    def keep(self, *, now: bool = False) -> None:
        """Write accounts, then commit positions, each `KEEP` seconds."""
        new = {here: offset for here, offset in self.next.items() if self._kept.get(here) != offset}
        if not new or (time.monotonic() - self._since < KEEP and not now):
            return
        for account in self._accounts.changed():
            write_account(self._writer, account)
        self._writer.flush()
        self.source.commit(
            offsets=[TopicPartitionOffset(*here, offset) for here, offset in new.items()], asynchronous=False
        )
        self._kept |= new
        self._since = time.monotonic()
