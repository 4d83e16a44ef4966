"""Records out of Kafka: from where they were asked for, to the end or for ever."""

import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.consumers.source.plan import Plan
from nightwire.consumers.source.start_offsets import NewestRecords, Span, StartOffset, at_time, tails
from nightwire.consumers.source.timespec import milliseconds
from nightwire.core import kafka
from nightwire.core.kafka import TopicPartition

log = logging.getLogger("nightwire.consumers")

PATIENCE = 30.0
"""Longest wait for an answer about offsets. [s]"""

TRANSIENT_ERRORS = kafka.TRANSIENT_ERRORS | {
    KafkaError._MAX_POLL_EXCEEDED,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REBALANCE_IN_PROGRESS,
}
"""Errors after which librdkafka goes on by itself."""


class TopicError(Exception):
    """A topic that was asked for does not exist; the message names those that do."""


class RecordSource:
    """Records by assignment: each reader sees all, nothing is committed.

    Args:
        consumer: Has ``enable.partition.eof`` set.
        plan: What to read, and from where.
    """

    def __init__(self, consumer: Consumer, plan: Plan) -> None:
        self._consumer, self._plan = consumer, plan
        self._ends: dict[TopicPartition, int] = {}  # what is still to be read when the end is the end
        self._limits: dict[TopicPartition, int] = {}
        self._next: dict[TopicPartition, int] = {}  # of each partition that is ours
        self._tail: NewestRecords[Message] | None = None  # while the newest are being found
        self._backlog: deque[Message] = deque()
        self.expired = 0

    def open(self) -> None:
        """Find where to begin.

        Raises:
            TopicError: A topic does not exist.
            KafkaException: Kafka cannot be reached.
        """
        spans = self.spans(partitions(self._consumer, self._plan.topics))
        starts = self.fresh(spans) if self._plan.last is None else tails(spans, self._plan.last)
        if self._plan.last is not None:
            self._tail = NewestRecords(self._plan.last)
        self.assign({spot: StartOffset(offset) for spot, offset in starts.items()}, spans)

    def take(self, most: int, timeout: float) -> list[Message]:
        """Return the next records: up to *most* of those that are there, else what comes first.

        Empty when none came within *timeout* [s], or before the end.

        Raises:
            KafkaException: Reading cannot go on.
        """
        if self._tail is not None and not self._ends:
            self._go_live(self._tail)
        if not self._backlog:
            self._fetch(most, timeout)
        return [self._backlog.popleft() for _ in range(min(most, len(self._backlog)))]

    def put_back(self, messages: Sequence[Message]) -> None:
        """Give back what was taken last: it is taken again before everything else."""
        self._backlog.extendleft(reversed(messages))

    @property
    def at_end(self) -> bool:
        """Whether all has been read that was there at the beginning."""
        return not (self._ends or self._backlog or self._tail)

    @property
    def over(self) -> bool:
        """Whether nothing more is to come."""
        return not self._plan.follow and self.at_end

    def done(self, marks: Mapping[TopicPartition, int]) -> None:
        """Say that the caller has finished with what lies before these offsets."""

    def commit(self) -> None:
        """Keep the position of what is done."""

    def close(self) -> None:
        """Leave Kafka."""
        self._consumer.close()

    def spans(self, spots: Iterable[TopicPartition]) -> dict[TopicPartition, Span]:
        """Return the oldest offset and the one after the newest, of each partition."""
        return {spot: kafka.watermarks(self._consumer, *spot, patience=PATIENCE) for spot in spots}

    def fresh(self, spans: Mapping[TopicPartition, Span]) -> dict[TopicPartition, int]:
        """Return where reading begins for whoever was never here."""
        if self._plan.since is not None:
            return self.at(milliseconds(self._plan.since, datetime.now(UTC)), spans)
        side = 0 if self._plan.begins == "beginning" else 1
        return {spot: span[side] for spot, span in spans.items()}

    def at(self, moment: int, spans: Mapping[TopicPartition, Span]) -> dict[TopicPartition, int]:
        """Return the first offset of each partition that was written at *moment* [ms] or later."""
        asked = [TopicPartitionOffset(*spot, moment) for spot in spans]
        answers = self._consumer.offsets_for_times(asked, timeout=PATIENCE) if asked else []
        found = {(answer.topic, answer.partition): answer.offset for answer in answers}
        return {spot: at_time(found[spot], span) for spot, span in spans.items()}

    def assign(
        self, starts: Mapping[TopicPartition, StartOffset], spans: Mapping[TopicPartition, Span]
    ) -> None:
        """Read from *starts* too, up to the ends of *spans*; say where records are gone."""
        for (topic, partition), start in starts.items():
            self._lost(topic, partition, start.expired)
        self._limits |= {spot: span[1] for spot, span in spans.items()}
        self._ends |= {
            spot: self._limits[spot] for spot, at in starts.items() if at.offset < self._limits[spot]
        }
        self._add({spot: start.offset for spot, start in starts.items()})

    def _add(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._next |= offsets
        self._consumer.incremental_assign([TopicPartitionOffset(*spot, at) for spot, at in offsets.items()])

    def _go_live(self, tail: NewestRecords[Message]) -> None:
        """The newest are found: hand them out, then go on where their partitions ended."""
        self._backlog.extend(tail.in_order())
        self._tail = None
        self._next = dict(self._limits)
        self._consumer.assign([TopicPartitionOffset(*spot, at) for spot, at in self._limits.items()])

    def _fetch(self, most: int, timeout: float) -> None:
        """Move what Kafka has sent to the backlog.

        One `poll`, then whatever else is there: `consume` with a timeout would wait for all *most*, and stall
        librdkafka's fetcher where these are more than its queue holds.
        """
        first = self._consumer.poll(timeout)
        if first is None:
            return
        fault: KafkaException | None = None
        for message in [first, *(self._consumer.consume(most - 1, 0) if most > 1 else ())]:
            if (error := message.error()) is not None:
                fault = self._fault(message, error) or fault
            elif self._takes(message):
                self._backlog.append(message)
        if fault is not None:
            raise fault

    def _takes(self, message: Message) -> bool:
        """Note how far reading has come; return whether *message* is to be handed out now."""
        spot, offset = spot_of(message)
        if spot not in self._next:  # a rebalance came between: it is another member's now
            return False
        self._next[spot] = offset + 1
        end = self._limits.get(spot)
        if end is not None and offset >= end - 1:
            self._ends.pop(spot, None)
        if self._tail is not None:
            if end is not None and offset < end:  # later ones are read again when it goes on
                self._tail.offer(spot[0], message.timestamp()[1], spot[1], offset, message)
            return False
        return self._plan.follow or end is None or offset < end

    def _fault(self, message: Message, error: KafkaError) -> KafkaException | None:
        """Go on after *error*; return it where that cannot be."""
        spot, offset = spot_of(message)
        if error.code() == KafkaError._PARTITION_EOF:
            if offset >= self._limits.get(spot, 0):
                self._ends.pop(spot, None)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._go_on(spot)
        elif error.code() in TRANSIENT_ERRORS and not error.fatal():
            log.warning("%s: %s; going on", spot[0], error.str())
        else:
            return KafkaException(error)
        return None

    def _go_on(self, spot: TopicPartition) -> None:
        """Go on with the oldest record there is, after Kafka deleted the next one."""
        if spot not in self._next:
            return
        ((oldest, _),) = self.spans([spot]).values()
        self._lost(*spot, max(0, oldest - self._next[spot]))
        if oldest >= self._limits.get(spot, oldest + 1):
            self._ends.pop(spot, None)
        self._consumer.incremental_unassign([TopicPartitionOffset(*spot)])  # it cannot seek in this state
        self._add({spot: oldest})

    def _lost(self, topic: str, partition: int, count: int) -> None:
        if count:
            self.expired += count
            log.error("%s[%d]: %d records expired before they were read", topic, partition, count)


def spot_of(message: Message) -> tuple[TopicPartition, int]:
    """Return where *message* lies: topic and partition, and its offset."""
    return (str(message.topic()), message.partition() or 0), message.offset() or 0


def marks(messages: Iterable[Message]) -> dict[TopicPartition, int]:
    """Return the offset after the last of *messages*, for each partition; they are in order."""
    return {spot: offset + 1 for spot, offset in map(spot_of, messages)}


def partitions(consumer: Consumer, topics: Sequence[str]) -> list[TopicPartition]:
    """Return the partitions of *topics*.

    Raises:
        TopicError: One does not exist.
        KafkaException: Kafka cannot be reached.
    """
    known: Any = consumer.list_topics(timeout=PATIENCE).topics
    if missing := [topic for topic in topics if topic not in known]:
        there = sorted(name for name in known if not name.startswith("_"))
        raise TopicError(f"no topic {', '.join(missing)}; there are: {', '.join(there) or 'none'}")
    return [(topic, partition) for topic in topics for partition in sorted(known[topic].partitions)]
