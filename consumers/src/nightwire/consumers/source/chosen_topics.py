"""Records of topics that somebody chooses, and chooses anew while they are read."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.consumers.source.consumer_group import GroupSource
from nightwire.consumers.source.plan import Plan
from nightwire.consumers.source.record_source import OFFSET_TIMEOUT, RecordSource
from nightwire.consumers.source.start_offsets import StartOffset, resume
from nightwire.consumers.source.timespec import milliseconds
from nightwire.core.kafka import TopicPartition, Watermarks

log = logging.getLogger("nightwire.consumers")

LOOK = 0.5
"""Time between two looks at what is chosen. [s]"""


class TopicChoice:
    """Which topics are chosen now, and which of them Kafka gives us.

    Args:
        consumer: Whose Kafka is asked.
        choose: Returns the topics that are chosen.
    """

    def __init__(self, consumer: Consumer, choose: Callable[[], Sequence[str]]) -> None:
        self._consumer, self._choose = consumer, choose
        self._looked, self._complained = -LOOK, set[str]()

    def looked(self) -> set[str] | None:
        """Return what is chosen; None where that was asked a moment ago."""
        if (now := time.monotonic()) - self._looked < LOOK:
            return None
        self._looked = now
        return set(self._choose())

    def partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Return the partitions of those *topics* that are there; say once which are not."""
        known: Any = self.known()
        for topic in set(topics) - known.keys() - self._complained:
            log.warning("%s cannot be read: there is no such topic, or it is not ours to read", topic)
            self._complained.add(topic)
        there = sorted(set(topics) & known.keys())
        return [(topic, number) for topic in there for number in sorted(known[topic].partitions)]

    def known(self) -> Mapping[str, Any]:
        """Return the topics that Kafka shows us.

        Raises:
            KafkaException: Kafka cannot be reached.
        """
        topics: Mapping[str, Any] = self._consumer.list_topics(timeout=OFFSET_TIMEOUT).topics
        return topics


class ChosenSource(RecordSource):
    """Records of the topics that are chosen, by assignment.

    Of a topic that is chosen later, all is read where it is new, else what was written since
    reading began; one that is chosen again goes on where it was left.

    Args:
        consumer: Has ``enable.partition.eof`` set.
        plan: What to read first, and from where.
        choose: Returns the topics that are chosen.
    """

    def __init__(self, consumer: Consumer, plan: Plan, choose: Callable[[], Sequence[str]]) -> None:
        super().__init__(consumer, plan)
        self._choice = TopicChoice(consumer, choose)
        self._old: frozenset[str] = frozenset()  # topics that were there when reading began
        self._from = 0  # [ms since 1970]
        self._left: dict[TopicPartition, int] = {}  # next offsets in topics that are not chosen now

    def open(self) -> None:
        """Find where to begin.

        Raises:
            KafkaException: Kafka cannot be reached.
        """
        began = datetime.now(UTC)
        self._from = milliseconds(self._plan.since or began, began)
        self._old = frozenset(self._choice.known())
        chosen = self._choice.looked() or set()  # anew: since the plan was made, one may have come
        there = {topic for topic, _ in self._choice.partitions(chosen)}
        self._plan = replace(self._plan, topics=sorted(there))
        super().open()

    def take(self, most: int, timeout: float) -> list[Message]:
        """Return the next records: up to *most* of those that are there, else what comes first.

        Raises:
            KafkaException: Reading cannot go on.
        """
        if self._tail is None and (chosen := self._choice.looked()) is not None:
            self._leave([one for one in self._next if one[0] not in chosen])
            self._join(chosen - {topic for topic, _ in self._next})
        return super().take(most, timeout)

    def _leave(self, gone: Sequence[TopicPartition]) -> None:
        self._left |= {one: self._next.pop(one) for one in gone}
        for one in gone:
            self._ends.pop(one, None)
            self._limits.pop(one, None)
        if gone:
            self._consumer.incremental_unassign([TopicPartitionOffset(*one) for one in gone])

    def _join(self, topics: set[str]) -> None:
        held = self.watermarks(self._choice.partitions(topics)) if topics else {}
        if held:
            self.assign(self._starts(held), {one: marks.high for one, marks in held.items()})

    def _starts(self, held: Mapping[TopicPartition, Watermarks]) -> dict[TopicPartition, StartOffset]:
        """Return where to go on, or to begin, in partitions that were not read until now."""
        whole = self._plan.begins == "beginning"
        old = {one: marks for one, marks in held.items() if one[0] in self._old and not whole}
        first = self.offsets_at(self._from, old)
        return {
            one: resume(self._left.get(one), marks, first.get(one, marks.low)) for one, marks in held.items()
        }


class ChosenGroupSource(GroupSource):
    """Records of the topics that are chosen, for one member of a group.

    Args:
        consumer: Has ``enable.partition.eof`` set, and a group.
        plan: From where a group begins that has no position.
        choose: Returns the topics that are chosen.
        commit_interval: Time between commits. [s]
    """

    def __init__(
        self,
        consumer: Consumer,
        plan: Plan,
        choose: Callable[[], Sequence[str]],
        *,
        commit_interval: float = 1.0,
    ) -> None:
        super().__init__(consumer, plan, commit_interval=commit_interval)
        self._choice, self._topics = TopicChoice(consumer, choose), set[str]()
        self._old: frozenset[str] = frozenset()  # topics that were there when this member joined

    def open(self) -> None:
        """Join the group.

        Raises:
            KafkaException: Kafka cannot be reached.
        """
        self._old = frozenset(self._choice.known())
        self._look()

    def initial_offsets(self, held: Mapping[TopicPartition, Watermarks]) -> dict[TopicPartition, int]:
        """Return where reading begins without a position: of a new topic, at its beginning."""
        whole = {one: marks.low for one, marks in held.items() if one[0] not in self._old}
        return super().initial_offsets(held) | whole

    def take(self, most: int, timeout: float) -> list[Message]:
        """Return the next records: up to *most* of those that are there, else what comes first.

        Raises:
            GroupError: The group does not take this member.
            KafkaException: Reading cannot go on.
        """
        self._look()
        return super().take(most, timeout)

    def _look(self) -> None:
        chosen = self._choice.looked()
        if chosen is None or chosen == self._topics:
            return
        there = {topic for topic, _ in self._choice.partitions(chosen)}
        if there and there != self._topics:
            self.subscribe(sorted(there))
        elif not there and self._topics:
            self._consumer.unsubscribe()
        self._topics = there
