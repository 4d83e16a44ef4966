"""The records of one visit: from its first offsets to its last, and while it is open as they come."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.consumers.alert.record_decoder import ALERTS
from nightwire.consumers.source.plan import Plan
from nightwire.consumers.source.source import RecordSource, TopicError, partitions, spot_of
from nightwire.consumers.source.start_offsets import Span, StartOffset, stretch
from nightwire.consumers.source.timespec import milliseconds
from nightwire.core import kafka
from nightwire.core.kafka import TopicPartition
from nightwire.schemas.records import VISIT
from nightwire.schemas.topics import VISITS

HEADER = "visit"
"""Header of an alert's record that names its visit."""

SLACK = timedelta(seconds=1)
"""An open visit is looked for from so long before it opened: clocks of machines differ."""


class VisitLog:
    """What `visits` tells of a survey's visits, now and from then on.

    Args:
        bootstrap: Kafka's address.
        survey: Name of the survey.
    """

    def __init__(self, bootstrap: str, survey: str) -> None:
        self._survey = survey
        self._consumer = kafka.consumer(bootstrap, enable_partition_eof=True)
        self._latest: dict[int, dict[str, Any]] = {}
        ends = kafka.end_offsets(self._consumer, [VISITS])
        self._consumer.assign([TopicPartitionOffset(*spot, OFFSET_BEGINNING) for spot in ends])
        for message in kafka.read_until(self._consumer, ends):
            self._note(message)

    def latest(self) -> Mapping[int, Mapping[str, Any]]:
        """Return the latest record of each visit, by number."""
        while (message := self._consumer.poll(0)) is not None:
            if message.error() is None:
                self._note(message)
        return self._latest

    def close(self) -> None:
        """Leave Kafka."""
        self._consumer.close()

    def _note(self, message: Message) -> None:
        if (value := message.value()) is not None:
            record = VISIT.decode(value)
            if record["survey"] == self._survey:
                self._latest[record["visit"]] = record


class VisitSource(RecordSource):
    """Records of one visit of a survey, and no others.

    A visit that is open is followed until it closes, or read to the present end.

    Args:
        consumer: Has ``enable.partition.eof`` set.
        plan: Names the topic ``alerts.<survey>`` and the visit.
        log: The survey's visits.
    """

    def __init__(self, consumer: Consumer, plan: Plan, log: VisitLog) -> None:
        super().__init__(consumer, plan)
        self._log = log
        self._awaited = False  # whether its end is not known yet

    def open(self) -> None:
        """Find where the visit begins, and where it ends if it has.

        Raises:
            TopicError: The topic, or the visit, does not exist; the message names those that do.
            KafkaException: Kafka cannot be reached.
        """
        spots = partitions(self._consumer, self._plan.topics)
        record = self._log.latest().get(self._number)
        if record is None:
            raise TopicError(f"no visit {self._number} of {self._plan.topics[0]}; {self._known()}")
        if record["closed"] is None:
            self._open_still(record, self.spans(spots))
        else:
            self._closed(self._ranges(record))

    def take(self, most: int, timeout: float) -> list[Message]:
        """Return the next records: up to *most* of those that are there, else what comes first.

        Raises:
            KafkaException: Reading cannot go on.
        """
        if self._awaited and (record := self._log.latest()[self._number])["closed"] is not None:
            self._end(self._ranges(record))
        return super().take(most, timeout)

    @property
    def over(self) -> bool:
        """Whether nothing more is to come."""
        return not self._awaited and self.at_end

    def close(self) -> None:
        """Leave Kafka."""
        self._log.close()
        super().close()

    @property
    def _number(self) -> int:
        return self._plan.visit or 0

    def _known(self) -> str:
        numbers = sorted(self._log.latest())
        return f"there are {len(numbers)}, {numbers[0]} to {numbers[-1]}" if numbers else "there is none yet"

    def _ranges(self, record: Mapping[str, Any]) -> dict[TopicPartition, Span]:
        topic = self._plan.topics[0]
        return {(topic, one["partition"]): (one["first"], one["last"] + 1) for one in record["partitions"]}

    def _closed(self, ranges: Mapping[TopicPartition, Span]) -> None:
        there = self.spans(ranges)
        self.assign({spot: stretch(wanted, there[spot]) for spot, wanted in ranges.items()}, ranges)

    def _open_still(self, record: Mapping[str, Any], spans: Mapping[TopicPartition, Span]) -> None:
        starts = self.at(milliseconds(record["opened"] - SLACK, record["opened"]), spans)
        self.assign({spot: StartOffset(offset) for spot, offset in starts.items()}, spans)
        self._awaited = self._plan.follow
        if self._awaited:
            self._limits.clear()

    def _end(self, ranges: Mapping[TopicPartition, Span]) -> None:
        """The visit has closed: read to its last offsets."""
        self._awaited = False
        self._limits = {spot: ranges.get(spot, (0, 0))[1] for spot in self._next}
        self._ends = {spot: end for spot, end in self._limits.items() if self._next[spot] < end}

    def _takes(self, message: Message) -> bool:
        takes = super()._takes(message)
        end = self._limits.get(spot_of(message)[0])
        within = end is None or (message.offset() or 0) < end
        return takes and within and self._is_of_visit(message)

    def _is_of_visit(self, message: Message) -> bool:
        """Whether *message* is of the visit: two that overlap in time lie among each other."""
        headers: Any = message.headers() or ()
        named = [value for name, value in headers if name == HEADER]
        return not named or named[-1] == b"%d" % self._number


def survey_in(plan: Plan, survey: str | None) -> str:
    """Return the survey whose visits are meant.

    Raises:
        TopicError: Neither *survey* nor the topic tells.
    """
    topic = plan.topics[0]
    if survey is None and not topic.startswith(ALERTS):
        raise TopicError(f"visits lie in topics alerts.<survey>; of which survey is {topic}?  Name it")
    return survey or topic.removeprefix(ALERTS)
