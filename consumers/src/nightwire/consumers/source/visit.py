"""The records of one visit: from its first offsets to its last, while it is open as they come."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.consumers.alert import ALERTS
from nightwire.consumers.source.plan import Plan
from nightwire.consumers.source.record_source import RecordSource, TopicError, partitions_of, position_of
from nightwire.consumers.source.start_offsets import StartOffset, start_of_range
from nightwire.consumers.source.timespec import milliseconds
from nightwire.core import kafka
from nightwire.core.kafka import TopicPartition, Watermarks
from nightwire.schemas.records import VISIT
from nightwire.schemas.topics import VISITS

HEADER = "visit"
"""Header of an alert's record: the number of its visit."""

SLACK = timedelta(seconds=1)
"""Records of an open visit are read from so long before it opened: clocks of machines differ."""


class VisitLog:
    """The records of a survey's visits in the topic `visits`, read on as they come.

    Args:
        bootstrap: Kafka's address.
        survey: Name of the survey.
    """

    def __init__(self, bootstrap: str, survey: str) -> None:
        self._survey = survey
        self._consumer = kafka.consumer(bootstrap, enable_partition_eof=True)
        self._latest: dict[int, dict[str, Any]] = {}
        ends = kafka.end_offsets(self._consumer, [VISITS])
        self._consumer.assign([TopicPartitionOffset(*one, OFFSET_BEGINNING) for one in ends])
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
        self._awaits_end = False

    def open(self) -> None:
        """Find where the visit begins, and where it ends if it has.

        Raises:
            TopicError: The topic, or the visit, does not exist; the message names those that do.
            KafkaException: Kafka cannot be reached.
        """
        partitions = partitions_of(self._consumer, self._plan.topics)
        record = self._log.latest().get(self._number)
        if record is None:
            raise TopicError(f"no visit {self._number} of {self._plan.topics[0]}; {self._known()}")
        if record["closed"] is None:
            self._begin_open(record, self.watermarks(partitions))
        else:
            self._begin_closed(self._ranges(record))

    def take(self, most: int, timeout: float) -> list[Message]:
        """Return the next records: up to *most* of those that are there, else what comes first.

        Raises:
            KafkaException: Reading cannot go on.
        """
        if self._awaits_end and (record := self._log.latest()[self._number])["closed"] is not None:
            self._read_to_end(self._ranges(record))
        return super().take(most, timeout)

    @property
    def over(self) -> bool:
        """Whether nothing more is to come."""
        return not self._awaits_end and self.at_end

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

    def _ranges(self, record: Mapping[str, Any]) -> dict[TopicPartition, tuple[int, int]]:
        """Return the first offset of the visit and the one after its last, by partition."""
        topic = self._plan.topics[0]
        return {(topic, one["partition"]): (one["first"], one["last"] + 1) for one in record["partitions"]}

    def _begin_closed(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> None:
        held = self.watermarks(ranges)
        starts = {one: start_of_range(*wanted, held[one]) for one, wanted in ranges.items()}
        self.assign(starts, {one: end for one, (_, end) in ranges.items()})

    def _begin_open(self, record: Mapping[str, Any], held: Mapping[TopicPartition, Watermarks]) -> None:
        starts = self.offsets_at(milliseconds(record["opened"] - SLACK, record["opened"]), held)
        ends = {partition: marks.high for partition, marks in held.items()}
        self.assign({partition: StartOffset(offset) for partition, offset in starts.items()}, ends)
        self._awaits_end = self._plan.follow
        if self._awaits_end:
            self._limits.clear()

    def _read_to_end(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> None:
        """The visit has closed: read to its last offsets."""
        self._awaits_end = False
        self._limits = {partition: ranges.get(partition, (0, 0))[1] for partition in self._next}
        self._ends = {
            partition: end for partition, end in self._limits.items() if self._next[partition] < end
        }

    def _takes(self, message: Message) -> bool:
        takes = super()._takes(message)
        partition, offset = position_of(message)
        end = self._limits.get(partition)
        return takes and (end is None or offset < end) and self._is_of_visit(message)

    def _is_of_visit(self, message: Message) -> bool:
        """Whether *message* is of the visit: records of visits that overlap are interleaved."""
        headers: Any = message.headers() or ()
        numbers = [value for name, value in headers if name == HEADER]
        return not numbers or numbers[-1] == b"%d" % self._number


def survey_in(plan: Plan, survey: str | None) -> str:
    """Return the survey whose visits are meant.

    Raises:
        TopicError: Neither *survey* nor the topic names one.
    """
    topic = plan.topics[0]
    if survey is None and not topic.startswith(ALERTS):
        raise TopicError(f"visits lie in topics alerts.<survey>; of which survey is {topic}?  Name it")
    return survey or topic.removeprefix(ALERTS)
