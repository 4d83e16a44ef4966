"""Visit numbers that no two simulators share: the order of the topic `visits` decides who has one.

Who wants a number writes the record that opens the visit, and reads the topic up to that record.  Whoever's
record of that number comes first has it; the other takes the next.  Where the first was closed already, its
last record is put back, because the latest of a key is what counts.
"""

from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Self

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message, TopicPartition

from nightwire.core.kafka import TRANSIENT_ERRORS, Writer, consumer, headers_of
from nightwire.producer.visits import writer_id as _who
from nightwire.producer.visits.counts import VisitCounts
from nightwire.producer.visits.visits import HEADER_REPLAY, PATIENCE, VisitTopic
from nightwire.producer.visits.writer_id import WriterId
from nightwire.schemas import topics
from nightwire.schemas.records import VISIT


class VisitIdAllocator:
    """Open visits whose numbers nobody else has.

    Args:
        bootstrap: Kafka's address.
        survey: Name of the survey.
        desk: Writes the records, as *who*.
        writer: That the desk writes by.
        who: Who claims.
    """

    def __init__(
        self, bootstrap: str, survey: str, visit_topic: VisitTopic, writer: Writer, who: WriterId
    ) -> None:
        self._survey, self._visit_topic, self._writer, self._who = survey, visit_topic, writer, who
        self._reader = consumer(bootstrap)
        self._reader.assign([TopicPartition(topics.VISITS, 0, OFFSET_BEGINNING)])
        self._highest = 0

    def claim(self, wanted: int, opened: datetime) -> VisitCounts:
        """Open visit *wanted*, or the first above that nobody has, and return its ledger.

        Raises:
            DeliveryError: Kafka did not take a record.
            KafkaException: Kafka stopped answering.
        """
        while True:
            number = max(wanted, self._highest + 1)
            mine: list[Message] = []
            ledger = self._visit_topic.open(number, opened=opened, on_delivered=mine.append)
            self._writer.flush()
            others = self._others(number, mine[0].offset() or 0)
            if not others:
                return ledger
            self._put_back(others[-1])

    def close(self) -> None:
        """Stop reading."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _others(self, number: int, offset: int) -> list[Message]:
        """Return the records by which others opened or closed *number* before our record at *offset*."""
        others: list[Message] = []
        while True:
            message = _next(self._reader.poll)
            value, place = message.value(), message.offset() or 0
            visit = None if value is None else VISIT.decode(value)
            if visit is not None and visit["survey"] == self._survey:
                headers = headers_of(message)
                if (
                    HEADER_REPLAY not in headers
                ):  # replays have the numbers of visits long past, and their own
                    self._highest = max(self._highest, visit["visit"])
                if visit["visit"] == number and headers.get(_who.HEADER) != bytes(self._who):
                    others.append(message)
            if place >= offset:
                return others

    def _put_back(self, message: Message) -> None:
        value = message.value() or b""
        if VISIT.decode(value)["closed"] is not None:  # else its writer will close it, behind ours
            headers = list(headers_of(message).items())
            self._writer.write(topics.VISITS, value, key=message.key(), headers=headers)


def _next(poll: Callable[[float], Message | None]) -> Message:
    """Return the next message.

    Raises:
        KafkaException: There is an error that does not pass, or nothing for `PATIENCE` seconds.
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
