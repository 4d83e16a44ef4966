"""Records out of Kafka: from where they were asked for, to the end or for ever."""

import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from nightwire.consumers._moments import milliseconds
from nightwire.consumers._plan import Plan
from nightwire.consumers._positions import Newest, Span, Spot, Start, at_time, tails
from nightwire.core import kafka

log = logging.getLogger("nightwire.consumers")

PATIENCE = 30.0
"""Longest wait for an answer about offsets. [s]"""

PASSING = kafka.PASSING | {
    KafkaError._MAX_POLL_EXCEEDED,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REBALANCE_IN_PROGRESS,
}
"""Errors after which librdkafka goes on by itself."""


class TopicError(Exception):
    """A topic that was asked for does not exist; the message names those that do."""


class Source:
    """Records by assignment: each reader sees all, nothing is committed.

    Args:
        consumer: Has ``enable.partition.eof`` set.
        plan: What to read, and from where.
    """

    def __init__(self, consumer: Consumer, plan: Plan) -> None:
        self._consumer, self._plan = consumer, plan
        self._ends: dict[Spot, int] = {}  # what is still to be read when the end is the end
        self._limits: dict[Spot, int] = {}
        self._next: dict[Spot, int] = {}
        self._tail: Newest[Message] | None = None  # while the newest are being found
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
            self._tail = Newest(self._plan.last)
        self.assign({spot: Start(offset) for spot, offset in starts.items()}, spans)

    def poll(self, timeout: float) -> Message | None:
        """Return the next record, or None when none came within *timeout* [s] or before the end.

        Raises:
            KafkaException: Reading cannot go on.
        """
        if self._tail is not None and not self._ends:
            self._go_live(self._tail)
        if self._backlog:
            return self._backlog.popleft()
        message = self._consumer.poll(timeout)
        if message is None:
            return None
        if (error := message.error()) is not None:
            self._fault(message, error)
            return None
        return self._taken(message)

    @property
    def at_end(self) -> bool:
        """Whether all has been read that was there at the beginning."""
        return not (self._ends or self._backlog or self._tail)

    def done(self, message: Message) -> None:
        """Say that the caller has finished with *message*."""

    def commit(self) -> None:
        """Keep the position of what is done."""

    def close(self) -> None:
        """Leave Kafka."""
        self._consumer.close()

    def spans(self, spots: Iterable[Spot]) -> dict[Spot, Span]:
        """Return the oldest offset and the one after the newest, of each partition."""
        found: dict[Spot, Span] = {}
        for spot in spots:
            span = self._consumer.get_watermark_offsets(TopicPartition(*spot), timeout=PATIENCE, cached=False)
            if span is None:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no offsets of {spot[0]}[{spot[1]}]"))
            found[spot] = (span[0], span[1])
        return found

    def fresh(self, spans: Mapping[Spot, Span]) -> dict[Spot, int]:
        """Return where reading begins for whoever was never here."""
        if self._plan.since is not None:
            return self._at(milliseconds(self._plan.since, datetime.now(UTC)), spans)
        side = 0 if self._plan.begins == "beginning" else 1
        return {spot: span[side] for spot, span in spans.items()}

    def assign(self, starts: Mapping[Spot, Start], spans: Mapping[Spot, Span]) -> None:
        """Read from *starts*, and say so where records are gone."""
        for (topic, partition), start in starts.items():
            self._lost(topic, partition, start.expired)
        self._limits = {spot: span[1] for spot, span in spans.items()}
        self._ends = {
            spot: self._limits[spot] for spot, at in starts.items() if at.offset < self._limits[spot]
        }
        self._go_to({spot: start.offset for spot, start in starts.items()})

    def _go_to(self, offsets: Mapping[Spot, int]) -> None:
        self._next = dict(offsets)
        self._consumer.assign([TopicPartition(*spot, offset) for spot, offset in offsets.items()])

    def _at(self, moment: int, spans: Mapping[Spot, Span]) -> dict[Spot, int]:
        asked = [TopicPartition(*spot, moment) for spot in spans]
        answers = self._consumer.offsets_for_times(asked, timeout=PATIENCE) if asked else []
        found = {(answer.topic, answer.partition): answer.offset for answer in answers}
        return {spot: at_time(found[spot], span) for spot, span in spans.items()}

    def _go_live(self, tail: Newest[Message]) -> None:
        """The newest are found: hand them out, then go on where their partitions ended."""
        self._backlog.extend(tail.in_order())
        self._tail = None
        self._go_to(self._limits)

    def _taken(self, message: Message) -> Message | None:
        """Note how far reading has come; return *message* if it is to be handed out now."""
        spot, offset = (str(message.topic()), message.partition() or 0), message.offset() or 0
        self._next[spot] = offset + 1
        end = self._limits.get(spot)
        if end is not None and offset >= end - 1:
            self._ends.pop(spot, None)
        if self._tail is not None:
            if end is not None and offset < end:  # later ones are read again when it goes on
                self._tail.offer(spot[0], message.timestamp()[1], spot[1], offset, message)
            return None
        return message if self._plan.follow or end is None or offset < end else None

    def _fault(self, message: Message, error: KafkaError) -> None:
        topic, partition = str(message.topic()), message.partition() or 0
        if error.code() == KafkaError._PARTITION_EOF:
            if (message.offset() or 0) >= self._limits.get((topic, partition), 0):
                self._ends.pop((topic, partition), None)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._go_on(topic, partition)
        elif error.code() in PASSING and not error.fatal():
            log.warning("%s: %s; going on", topic, error.str())
        else:
            raise KafkaException(error)

    def _go_on(self, topic: str, partition: int) -> None:
        """Go on with the oldest record there is, after Kafka deleted the next one."""
        ((oldest, _),) = self.spans([(topic, partition)]).values()
        self._lost(topic, partition, max(0, oldest - self._next.get((topic, partition), oldest)))
        self._go_to(self._next | {(topic, partition): oldest})  # librdkafka cannot seek in this state

    def _lost(self, topic: str, partition: int, count: int) -> None:
        if count:
            self.expired += count
            log.error("%s[%d]: %d records expired before they were read", topic, partition, count)


def partitions(consumer: Consumer, topics: Sequence[str]) -> list[Spot]:
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
