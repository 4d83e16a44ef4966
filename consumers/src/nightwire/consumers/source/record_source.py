"""Records out of Kafka by assignment: from where they were asked for, to the end or for ever."""

import logging
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.consumers.source.plan import Plan
from nightwire.consumers.source.start_offsets import (
    NewestRecords,
    StartOffset,
    at_time,
    tails,
)
from nightwire.consumers.source.timespec import milliseconds
from nightwire.core import kafka
from nightwire.core.kafka import TopicPartition, Watermarks, check_rights
from nightwire.schemas import MendableError, meant

log = logging.getLogger("nightwire.consumers")

OFFSET_TIMEOUT = 30.0
"""Longest wait for an answer about offsets. [s]"""

LONGEST_DEAF = 0.5
"""A member that takes long over its backlog hears of its group after so long. [s]"""

TRANSIENT_ERRORS = kafka.TRANSIENT_ERRORS | {
    KafkaError._MAX_POLL_EXCEEDED,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REBALANCE_IN_PROGRESS,
}
"""Errors after which librdkafka goes on by itself."""


class TopicError(MendableError):
    """A topic that was asked for does not exist; the message names those that do."""


class RecordSource:
    """Records by assignment: each reader sees all, nothing is committed.

    Args:
        consumer: Has ``enable.partition.eof`` set.
        plan: What to read, and from where.
    """

    def __init__(self, consumer: Consumer, plan: Plan) -> None:
        self._consumer, self._plan = consumer, plan
        self._limits: dict[TopicPartition, int] = {}  # where each partition ended at the beginning
        self._ends: dict[TopicPartition, int] = {}  # of these, the limits that are not reached yet
        self._next: dict[TopicPartition, int] = {}  # next offset of each partition that is ours
        self._tail: NewestRecords[Message] | None = None  # while the newest are being found
        self._backlog: deque[Message] = deque()
        self._polled = 0.0
        self.expired = 0

    def open(self) -> None:
        """Find where to begin.

        Raises:
            TopicError: A topic does not exist.
            KafkaException: Kafka cannot be reached.
        """
        held = self.watermarks(partitions_of(self._consumer, self._plan.topics))
        starts = self.initial_offsets(held) if self._plan.last is None else tails(held, self._plan.last)
        if self._plan.last is not None:
            self._tail = NewestRecords(self._plan.last)
        ends = {partition: marks.high for partition, marks in held.items()}
        self.assign({partition: StartOffset(offset) for partition, offset in starts.items()}, ends)

    def take(self, most: int, timeout: float) -> list[Message]:
        """Return the next records: up to *most* of those that are there, else what comes first.

        Empty when none came within *timeout* [s], or before the end.

        Raises:
            KafkaException: Reading cannot go on.
        """
        if self._tail is not None and not self._ends:
            self._go_live(self._tail)
        now = time.monotonic()
        if not self._backlog or now - self._polled > LONGEST_DEAF:
            self._fetch(1 if self._backlog else most, 0 if self._backlog else timeout)
            self._polled = now
        return [self._backlog.popleft() for _ in range(min(most, len(self._backlog)))]

    def put_back(self, messages: Sequence[Message]) -> None:
        """Give back what was taken last: it is taken again before everything else."""
        self._backlog.extendleft(reversed(messages))

    @property
    def way(self) -> str:
        """Where records come from now."""
        return "kafka"

    @property
    def blocked(self) -> bool:
        """Whether nothing comes before what was taken is done."""
        return False

    @property
    def dropped(self) -> Mapping[str, int]:
        """Datagrams that were dropped, by reason; from Kafka none comes."""
        return {}

    @property
    def at_end(self) -> bool:
        """Whether all has been read that was there at the beginning."""
        return not (self._ends or self._backlog or self._tail)

    @property
    def over(self) -> bool:
        """Whether nothing more is to come."""
        return not self._plan.follow and self.at_end

    def mark_done(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note that the caller has finished with what lies before these *offsets*."""

    def commit(self) -> None:
        """Commit what is done."""

    def close(self) -> None:
        """Leave Kafka."""
        self._consumer.close()

    def watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Watermarks]:
        """Return what Kafka has of each partition."""
        return {
            partition: kafka.watermarks(self._consumer, *partition, patience=OFFSET_TIMEOUT)
            for partition in partitions
        }

    def initial_offsets(self, held: Mapping[TopicPartition, Watermarks]) -> dict[TopicPartition, int]:
        """Return where reading begins where no position is known."""
        if self._plan.since is not None:
            return self.offsets_at(milliseconds(self._plan.since, datetime.now(UTC)), held)
        oldest = self._plan.begins == "beginning"
        return {partition: marks.low if oldest else marks.high for partition, marks in held.items()}

    def offsets_at(
        self, time_ms: int, held: Mapping[TopicPartition, Watermarks]
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition that was written at *time_ms* or later."""
        asked = [TopicPartitionOffset(*partition, time_ms) for partition in held]
        answers = self._consumer.offsets_for_times(asked, timeout=OFFSET_TIMEOUT) if asked else []
        found = {(answer.topic, answer.partition): answer.offset for answer in answers}
        return {partition: at_time(found[partition], marks) for partition, marks in held.items()}

    def assign(
        self, starts: Mapping[TopicPartition, StartOffset], ends: Mapping[TopicPartition, int]
    ) -> None:
        """Read from *starts* too, up to *ends*; report where records are gone."""
        for partition, start in starts.items():
            self._count_expired(partition, start.expired)
        self._limits |= ends
        self._ends |= {
            partition: ends[partition]
            for partition, start in starts.items()
            if start.offset < ends[partition]
        }
        self._add({partition: start.offset for partition, start in starts.items()})

    def _add(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._next |= offsets
        self._consumer.incremental_assign(
            [TopicPartitionOffset(*partition, offset) for partition, offset in offsets.items()]
        )

    def _go_live(self, tail: NewestRecords[Message]) -> None:
        """The newest are found: hand them out, then go on where their partitions ended."""
        self._backlog.extend(tail.in_order())
        self._tail = None
        self._next = dict(self._limits)
        self._consumer.assign(
            [TopicPartitionOffset(*partition, offset) for partition, offset in self._limits.items()]
        )

    def _fetch(self, most: int, timeout: float) -> None:
        """Move what Kafka has sent to the backlog.

        One `poll`, then whatever else is there: `consume` with a timeout would wait for all *most*,
        and stall librdkafka's fetcher where these are more than its queue holds.
        """
        first = self._consumer.poll(timeout)
        if first is None:
            return
        failure: KafkaException | None = None
        for message in [first, *(self._consumer.consume(most - 1, 0) if most > 1 else ())]:
            if (error := message.error()) is not None:
                failure = self._go_on_after(message, error) or failure
            elif self._takes(message):
                self._backlog.append(message)
        if failure is not None:
            raise failure

    def _takes(self, message: Message) -> bool:
        """Note how far reading has come; return whether *message* is to be handed out now."""
        partition, offset = position_of(message)
        if partition not in self._next:  # a rebalance came between: it is another member's now
            return False
        self._next[partition] = offset + 1
        end = self._limits.get(partition)
        if end is not None and offset >= end - 1:
            self._ends.pop(partition, None)
        if self._tail is not None:
            if end is not None and offset < end:  # later ones are read again when it goes on
                self._tail.offer(partition, offset, message.timestamp()[1], message)
            return False
        return self._plan.follow or end is None or offset < end

    def _go_on_after(self, message: Message, error: KafkaError) -> KafkaException | None:
        """Go on after *error*; return it where that cannot be."""
        partition, offset = position_of(message)
        if error.code() == KafkaError._PARTITION_EOF:
            if offset >= self._limits.get(partition, 0):
                self._ends.pop(partition, None)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._resume_at_oldest(partition)
        elif error.code() in TRANSIENT_ERRORS and not error.fatal():
            log.warning("%s: %s; going on", partition[0], error.str())
        else:
            return KafkaException(error)
        return None

    def _resume_at_oldest(self, partition: TopicPartition) -> None:
        """Go on with the oldest record there is, after Kafka deleted the next one, or the topic."""
        if partition not in self._next:
            return
        oldest = self.watermarks([partition])[partition].low
        if oldest < self._next[partition]:
            log.warning("%s[%d] was made anew: from offset %d, all that there is", *partition, oldest)
        self._count_expired(partition, max(0, oldest - self._next[partition]))
        if oldest >= self._limits.get(partition, oldest + 1):
            self._ends.pop(partition, None)
        self.unassign(partition)  # it cannot seek in this state
        self._add({partition: oldest})

    def unassign(self, partition: TopicPartition) -> None:
        """Let Kafka send nothing more of *partition*."""
        self._consumer.incremental_unassign([TopicPartitionOffset(*partition)])

    def _count_expired(self, partition: TopicPartition, count: int) -> None:
        if count:
            self.expired += count
            log.error("%s[%d]: %d records expired before they were read", *partition, count)


def position_of(message: Message) -> tuple[TopicPartition, int]:
    """Return where *message* lies: its partition, and its offset."""
    return (str(message.topic()), message.partition() or 0), message.offset() or 0


def next_offsets(messages: Iterable[Message]) -> dict[TopicPartition, int]:
    """Return the offset after the last of *messages*, for each partition; they are in order."""
    return {partition: offset + 1 for partition, offset in map(position_of, messages)}


def partitions_of(consumer: Consumer, topics: Sequence[str]) -> list[TopicPartition]:
    """Return the partitions of *topics*.

    Raises:
        TopicError: One does not exist.
        KafkaException: Kafka cannot be reached, or we may not read one.
    """
    known: Any = consumer.list_topics(timeout=OFFSET_TIMEOUT).topics
    if missing := [topic for topic in topics if topic not in known]:
        check_rights(consumer, missing)
        there = sorted(name for name in known if not name.startswith("_"))
        named = f"no topic {', '.join(missing)}; there are: {', '.join(there) or 'none'}"
        raise TopicError(named + "".join(meant(one, there) for one in missing))
    return [(topic, number) for topic in topics for number in sorted(known[topic].partitions)]
