"""The loop of an open reader: take records, unpack them, and keep what is done.  Blocks."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, TypeVar, cast

from confluent_kafka import Message

from nightwire.consumers.alert.deduplication import Deduplicator
from nightwire.consumers.reader.batch import Batch, Unpack
from nightwire.consumers.source.source import RecordSource, marks
from nightwire.core.kafka import TopicPartition
from nightwire.schemas import RegistryAwayError

log = logging.getLogger("nightwire.consumers")

Item = TypeVar("Item")

TICK = 0.2
"""Longest time without a look at the clock and at whether to stop. [s]"""

FIRST_ONES = 10
"""So many undecodable records are logged one by one, then each thousandth."""


@dataclass(frozen=True)
class BadRecord:
    """A record that holds no alert."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    reason: str


@dataclass(frozen=True)
class ReadPolicy:
    """When to end, how long to wait, and whom to tell.

    Attributes:
        limit: Stop after so many alerts.
        timeout: Longest wait for the next one. [s]
        patience: How long a registry that is away is asked again. [s]
        stopped: Asked several times a second whether to stop.
        on_bad: Called with each record that holds no alert, before it counts as done.
    """

    limit: int | None
    timeout: float | None
    patience: float
    stopped: Callable[[], bool]
    on_bad: Callable[[BadRecord], None] | None


@dataclass
class ReadCounts:
    """What a reader counts."""

    count: int = 0
    undecodable: int = 0
    duplicates: int = 0


class ReadLoop:
    """Reads from a source until it is over.

    `pull` and `finish` wait, and belong to one thread at a time; `hand` does not.  A parcel that was pulled
    and never handed out (its caller was cancelled) comes with the next `pull`.

    Args:
        source: Records.
        rules: When to end.
        tally: What is counted.
        fresh: Remembers what was handed out.
    """

    def __init__(
        self, source: RecordSource, rules: ReadPolicy, tally: ReadCounts, fresh: Deduplicator
    ) -> None:
        self.source = source
        self._rules, self._tally, self._fresh = rules, tally, fresh
        self._pending: dict[TopicPartition, int] = {}
        self._loose: tuple[Unpack[Any], Batch[Any]] | None = None
        self._closing = Event()

    def pull(self, unpack: Unpack[Item], size: int, wait: float) -> Batch[Item] | None:
        """Return the next parcel that holds an alert; None at the end.  What was handed out is done.

        Args:
            unpack: Makes a parcel of records.
            size: How many records at most.
            wait: Longest wait for so many, once the first is there. [s]

        Raises:
            RegistryAwayError: A schema could not be had in time; nothing was skipped.
            KafkaException: Reading cannot go on.
        """
        self.finish()
        asked = time.monotonic()
        parcel = self._left_over(unpack)
        while parcel is None or not parcel.count:
            if self._over(asked):
                self.source.commit()
                return None
            messages = self._gather(size, wait, asked)
            parcel = self._unpacked(unpack, messages) if messages else None
        return parcel

    def hand(self, parcel: Batch[Item]) -> Item:
        """Return what is in *parcel*: from now on it is the caller's."""
        self._loose = None
        self._pending = marks(parcel.messages)
        self._tally.count += parcel.count
        self._fresh.remember(parcel.keys)
        return cast("Item", parcel.item)

    def finish(self) -> None:
        """What was handed out last is done."""
        self.source.done(self._pending)
        self._pending = {}

    def stop(self) -> None:
        """End soon: whoever waits in `pull` gets nothing.  Called from any thread."""
        self._closing.set()

    def _left_over(self, unpack: Unpack[Item]) -> Batch[Item] | None:
        if self._loose is None:
            return None
        asked_as, parcel = self._loose
        if asked_as == unpack:
            return parcel
        self._loose = None
        self.source.put_back(parcel.messages)
        return None

    def _over(self, asked: float) -> bool:
        limit, timeout = self._rules.limit, self._rules.timeout
        return (
            self._stopped()
            or (limit is not None and self._tally.count >= limit)
            or self.source.over
            or (timeout is not None and time.monotonic() - asked >= timeout)
        )

    def _stopped(self) -> bool:
        return self._closing.is_set() or self._rules.stopped()

    def _gather(self, size: int, wait: float, asked: float) -> list[Message]:
        limit = self._rules.limit
        most = size if limit is None else min(size, limit - self._tally.count)
        messages = self.source.take(most, self._tick(asked))
        deadline = time.monotonic() + wait
        while messages and len(messages) < most and not self.source.over and not self._stopped():
            if (left := deadline - time.monotonic()) <= 0:
                break
            try:
                messages += self.source.take(most - len(messages), min(TICK, left))
            except BaseException:
                self.source.put_back(messages)
                raise
        return messages

    def _tick(self, asked: float) -> float:
        timeout = self._rules.timeout
        left = TICK if timeout is None else asked + timeout - time.monotonic()
        return max(0.0, min(TICK, left))

    def _unpacked(self, unpack: Unpack[Item], messages: Sequence[Message]) -> Batch[Item]:
        try:
            parcel = self._patiently(unpack, messages)
        except BaseException:
            self.source.put_back(messages)
            raise
        self.source.put_back(parcel.left)
        self._loose = unpack, parcel
        self._tally.duplicates += parcel.duplicates
        for message, reason in parcel.bad:
            self._pass_over(message, reason)
        if not parcel.count:
            self._loose = None
            self.source.done(marks(parcel.messages))
        return parcel

    def _patiently(self, unpack: Unpack[Item], messages: Sequence[Message]) -> Batch[Item]:
        """Unpack at least the first of *messages*, and wait for the registry where that takes it."""
        deadline = time.monotonic() + self._rules.patience
        while (parcel := unpack(messages)).away is not None and not parcel.messages:
            if self._stopped() or time.monotonic() >= deadline:
                first = messages[0]
                where = f"{first.topic()}[{first.partition()}]@{first.offset()}"
                raise RegistryAwayError(f"{where} waits for its schema: {parcel.away}") from parcel.away
            log.warning("waiting for the schema registry: %s", parcel.away)
            self._closing.wait(1)
        return parcel

    def _pass_over(self, message: Message, reason: str) -> None:
        bad = BadRecord(
            str(message.topic()), message.partition() or 0, message.offset() or 0, message.value(), reason
        )
        self._tally.undecodable += 1
        if self._tally.undecodable <= FIRST_ONES or self._tally.undecodable % 1000 == 0:
            where = f"{bad.topic}[{bad.partition}]@{bad.offset}"
            log.warning("%s cannot be decoded (%d so far): %s", where, self._tally.undecodable, reason)
        if self._rules.on_bad is not None:
            self._rules.on_bad(bad)
