"""Visit numbers that no two simulators share: the order of the topic `visits` decides.

A simulator writes the record that opens the visit of a number, and reads the topic up to that
record. The number belongs to the process whose record comes first; another takes the next number.
Where the first visit was closed already, its last record is written again, since the latest of a
key counts.
"""

from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Self

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.kafka import TRANSIENT_ERRORS, Writer, consumer, headers_of
from nightwire.producer.visits.counts import VisitCounts
from nightwire.producer.visits.visit_topic import PATIENCE, REPLAY_HEADER, VisitTopic
from nightwire.producer.visits.writer_id import WRITER_HEADER, WriterId
from nightwire.schemas import topics
from nightwire.schemas.records import VISIT


class VisitIdAllocator:
    """Opens visits whose numbers no other process has.

    Args:
        bootstrap: Kafka's address.
        survey: Name of the survey.
        visit_topic: Writes the records, as *writer_id*.
        writer: The writer of *visit_topic*.
        writer_id: This process.
    """

    def __init__(
        self, bootstrap: str, survey: str, visit_topic: VisitTopic, writer: Writer, writer_id: WriterId
    ) -> None:
        self._survey, self._visit_topic = survey, visit_topic
        self._writer, self._writer_id = writer, writer_id
        self._reader = consumer(bootstrap)
        self._reader.assign([TopicPartitionOffset(topics.VISITS, 0, OFFSET_BEGINNING)])
        self._highest = 0

    def claim(self, wanted: int, opened: datetime) -> VisitCounts:
        """Open visit *wanted*, or the first free number above, and return its counts.

        Raises:
            DeliveryError: Kafka did not take a record.
            KafkaException: Kafka stopped answering.
        """
        while True:
            number = max(wanted, self._highest + 1)
            mine: list[Message] = []
            counts = self._visit_topic.open(number, opened=opened, on_delivered=mine.append)
            self._writer.flush()
            earlier = self._earlier_records(number, mine[0].offset() or 0)
            if not earlier:
                return counts
            self._restore(earlier[-1])

    def close(self) -> None:
        """Stop reading."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _earlier_records(self, number: int, offset: int) -> list[Message]:
        """Return other processes' records of *number* before our record at *offset*."""
        earlier: list[Message] = []
        while True:
            message = _next(self._reader.poll)
            value = message.value()
            visit = None if value is None else VISIT.decode(value)
            if visit is not None and visit["survey"] == self._survey:
                headers = headers_of(message)
                if REPLAY_HEADER not in headers:  # a replay repeats the numbers of visits long past
                    self._highest = max(self._highest, visit["visit"])
                if visit["visit"] == number and headers.get(WRITER_HEADER) != bytes(self._writer_id):
                    earlier.append(message)
            if (message.offset() or 0) >= offset:
                return earlier

    def _restore(self, message: Message) -> None:
        """Write *message* again where it closed its visit, since our record hides it."""
        value = message.value() or b""
        if VISIT.decode(value)["closed"] is not None:  # else its writer closes it later
            headers = list(headers_of(message).items())
            self._writer.write(topics.VISITS, value, key=message.key(), headers=headers)


def _next(poll: Callable[[float], Message | None]) -> Message:
    """Return the next message.

    Raises:
        KafkaException: An error that is not transient, or no message for `PATIENCE` seconds.
    """
    for _attempt in range(int(PATIENCE)):
        message = poll(1.0)
        if message is None:
            continue
        error = message.error()
        if error is None:
            return message
        if error.code() not in TRANSIENT_ERRORS:
            raise KafkaException(error)
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer for {PATIENCE:g} s"))
