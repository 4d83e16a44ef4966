"""The loop of an open reader: take records, unpack them, and keep what is done.  Blocks."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, TypeVar, cast

from confluent_kafka import Message

from nightwire.consumers.alert import Deduplicator
from nightwire.consumers.reader.batch import Batch, Unpack
from nightwire.consumers.reader.record_filter import RecordFilter
from nightwire.consumers.source import RecordSource, next_offsets, position_of
from nightwire.core.kafka import TopicPartition
from nightwire.core.runtime import LogLimiter
from nightwire.schemas import RegistryAwayError

log = logging.getLogger("nightwire.consumers")

Item = TypeVar("Item")

TICK = 0.2
"""Longest time without a look at the clock and at whether to stop. [s]"""

LOGGED_ONE_BY_ONE = 10
"""So many undecodable records are logged one by one, then each thousandth."""


@dataclass(frozen=True)
class BadRecord:
    """A record that holds no alert."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    reason: str

    @property
    def place(self) -> str:
        """The record's position as text: ``topic[partition]@offset``."""
        return f"{self.topic}[{self.partition}]@{self.offset}"


@dataclass(frozen=True)
class ReadPolicy:
    """When to end, how long to wait, and what to call for bad records.

    Attributes:
        limit: Stop after so many alerts.
        timeout: Longest wait for the next one. [s]
        registry_timeout: How long a registry that does not answer is asked again. [s]
        stopped: Asked several times a second whether to stop.
        on_bad: Called with each record that holds no alert, before it counts as done.
        needs_schema: Whether reading ends where no registry answers in time; else the record holds
            no alert.
    """

    limit: int | None
    timeout: float | None
    registry_timeout: float
    stopped: Callable[[], bool]
    on_bad: Callable[[BadRecord], None] | None
    needs_schema: bool = True


@dataclass
class ReadCounts:
    """What a reader counts."""

    count: int = 0
    undecodable: int = 0
    duplicates: int = 0
    filtered: int = 0
    faulted: int = 0


class ReadLoop:
    """Reads from a source until it is over.

    `next_batch` and `finish` wait, and belong to one thread at a time; `hand_out` does not.  A
    batch that was never handed out (its caller was cancelled) comes with the next `next_batch`.

    Args:
        source: Records.
        policy: When to end.
        counts: What is counted.
        deduplicator: Remembers what was handed out.
        record_filter: Judges records before they are unpacked; None lets all pass.
    """

    def __init__(
        self,
        source: RecordSource,
        policy: ReadPolicy,
        counts: ReadCounts,
        deduplicator: Deduplicator,
        record_filter: RecordFilter | None = None,
    ) -> None:
        self.source = source
        self._policy, self._counts, self._deduplicator = policy, counts, deduplicator
        self._filter = record_filter
        # offsets after what is handed out and not done
        self._handed_out: dict[TopicPartition, int] = {}
        self._ready: tuple[Unpack[Any], Batch[Any]] | None = None  # made, and not handed out
        self._closing, self._limiter = Event(), LogLimiter()

    def next_batch(self, unpack: Unpack[Item], size: int, wait: float) -> Batch[Item] | None:
        """Return the next batch that holds an alert; None at the end.  What was handed out is done.

        Args:
            unpack: Makes a batch of records.
            size: How many alerts at most.
            wait: Longest wait for so many, once the first is there. [s]

        Raises:
            RegistryAwayError: A schema could not be had in time; nothing was skipped.
            KafkaException: Reading cannot go on.
        """
        self.finish()
        asked = time.monotonic()
        batch = self._take_ready(unpack)
        while batch is None or not batch.count:
            if self._over(asked):
                self.source.commit()
                return None
            most = self._most(size)
            messages = self._collect(most, wait, asked)
            batch = self._unpacked(unpack, messages, most) if messages else None
        return batch

    def hand_out(self, batch: Batch[Item]) -> Item:
        """Return what is in *batch*: from now on it is the caller's."""
        self._ready = None
        self._handed_out = next_offsets(batch.messages)
        self._counts.count += batch.count
        self._deduplicator.remember(batch.keys)
        return cast("Item", batch.item)

    def finish(self) -> None:
        """What was handed out last is done."""
        self.source.mark_done(self._handed_out)
        self._handed_out = {}

    def stop(self) -> None:
        """End soon: whoever waits in `next_batch` gets nothing.  Called from any thread."""
        self._closing.set()

    def _take_ready(self, unpack: Unpack[Item]) -> Batch[Item] | None:
        if self._ready is None:
            return None
        made_by, batch = self._ready
        if made_by == unpack:
            return batch
        self._ready = None
        told = {position_of(message) for message, _ in batch.bad}
        self.source.put_back([one for one in batch.messages if position_of(one) not in told])
        self._count(batch, -1)
        return None

    def _over(self, asked: float) -> bool:
        limit, timeout = self._policy.limit, self._policy.timeout
        return (
            self._stopped()
            or (limit is not None and self._counts.count >= limit)
            or self.source.over
            or (timeout is not None and time.monotonic() - asked >= timeout)
        )

    def _stopped(self) -> bool:
        return self._closing.is_set() or self._policy.stopped()

    def _most(self, size: int) -> int:
        limit = self._policy.limit
        return size if limit is None else min(size, limit - self._counts.count)

    def _collect(self, most: int, wait: float, asked: float) -> list[Message]:
        """Return records for *most* alerts, or for those that came within *wait*. [s]"""
        records = most if self._filter is None else self._filter.wanted(most)
        messages = self.source.take(records, self._tick(asked))
        deadline = time.monotonic() + wait
        while messages and len(messages) < records and not self.source.over and not self._stopped():
            if self.source.blocked or (left := deadline - time.monotonic()) <= 0:
                break
            try:
                if self._filter is not None and self._filter.passing(messages) >= most:
                    break
                messages += self.source.take(records - len(messages), min(TICK, left))
            except BaseException:
                self.source.put_back(messages)
                raise
        return messages

    def _tick(self, asked: float) -> float:
        timeout = self._policy.timeout
        left = TICK if timeout is None else asked + timeout - time.monotonic()
        return max(0.0, min(TICK, left))

    def _unpacked(self, unpack: Unpack[Item], messages: Sequence[Message], most: int) -> Batch[Item]:
        try:
            batch = self._unpack_while_unavailable(unpack, messages, most)
        except BaseException:
            self.source.put_back(messages)
            raise
        self.source.put_back(batch.waiting)
        self._ready = unpack, batch
        self._count(batch, 1)
        for message, reason in batch.bad:
            self._skip(message, reason)
        if not batch.count:
            self._ready = None
            self.source.mark_done(next_offsets(batch.messages))
        return batch

    def _count(self, batch: Batch[Any], sign: int) -> None:
        """Count what *batch* leaves out; no longer where *sign* is -1: it is judged again."""
        self._counts.duplicates += sign * batch.duplicates
        self._counts.filtered += sign * batch.filtered
        self._counts.faulted += sign * batch.faulted

    def _unpack_while_unavailable(
        self, unpack: Unpack[Item], messages: Sequence[Message], most: int
    ) -> Batch[Item]:
        """Unpack at least the first of *messages*; wait for the registry where it takes that."""
        deadline = time.monotonic() + self._policy.registry_timeout
        while (
            batch := self._filtered(unpack, messages, most)
        ).unavailable is not None and not batch.messages:
            if not self._policy.needs_schema:
                batch.pass_over()
                return batch
            if self._stopped() or time.monotonic() >= deadline:
                first = messages[0]
                where = f"{first.topic()}[{first.partition()}]@{first.offset()}"
                raise RegistryAwayError(
                    f"{where} waits for its schema: {batch.unavailable}"
                ) from batch.unavailable
            if self._limiter.allows():
                log.warning("waiting for the schema registry: %s", batch.unavailable)
            self._closing.wait(1)
        return batch

    def _filtered(self, unpack: Unpack[Item], messages: Sequence[Message], most: int) -> Batch[Item]:
        return unpack(messages) if self._filter is None else self._filter.unpacked(unpack, messages, most)

    def _skip(self, message: Message, reason: str) -> None:
        bad = BadRecord(
            str(message.topic()), message.partition() or 0, message.offset() or 0, message.value(), reason
        )
        self._counts.undecodable += 1
        count = self._counts.undecodable
        if count <= LOGGED_ONE_BY_ONE or count % 1000 == 0:
            log.warning("%s cannot be decoded (%d so far): %s", bad.place, count, reason)
        if self._policy.on_bad is not None:
            self._policy.on_bad(bad)
