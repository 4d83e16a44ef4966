"""The topic `visits`: visits are opened and closed in it."""

from collections.abc import Callable
from datetime import UTC, datetime

from confluent_kafka import Message

from nightwire.core.accounting import account_record
from nightwire.core.kafka import Record, Writer
from nightwire.producer.visits.counts import VisitCounts
from nightwire.producer.visits.writer_id import WRITER_HEADER, WriterId
from nightwire.schemas import topics
from nightwire.schemas.records import VISIT

Clock = Callable[[], datetime]

VISIT_HEADER = "visit"
"""Header of an alert's record that names its visit."""
REPLAY_HEADER = "replay"
"""Header of the records of a replay, alerts and visits, that names it."""
PATIENCE = 60.0
"""How long to wait for a Kafka that is away. [s]  A single broker is back within 20 s."""


def utc_now() -> datetime:
    """Return the time, UTC."""
    return datetime.now(UTC)


class VisitTopic:
    """Write the records of visits, and the producer's accounts.

    Args:
        writer: Writes the alerts too, so that a lost alert is an error here.
        survey: Name of the survey.
        clock: Gives the time, UTC.
        writer_id: The process that opens these visits; else this one.
        replay: The replay that they belong to, which has their account.
    """

    def __init__(
        self,
        writer: Writer,
        survey: str,
        *,
        clock: Clock = utc_now,
        writer_id: WriterId | None = None,
        replay: int | None = None,
    ) -> None:
        self._writer, self._survey, self._clock = writer, survey, clock
        self._headers = [(WRITER_HEADER, bytes(writer_id or WriterId.own()))]
        if replay is not None:
            self._headers.append((REPLAY_HEADER, str(replay).encode()))

    def open(
        self,
        number: int,
        *,
        opened: datetime | None = None,
        on_delivered: Callable[[Message], None] | None = None,
    ) -> VisitCounts:
        """Write that visit *number* is open, and return its counts.

        Args:
            number: Its number.
            opened: When it was opened, UTC; else now.
            on_delivered: Is called with the acknowledged record.

        Raises:
            DeliveryError: Kafka did not take an earlier record.
        """
        counts = VisitCounts(self._survey, number, opened or self._clock())
        self._write(self._record(counts, None), on_delivered)
        return counts

    def close(self, counts: VisitCounts) -> None:
        """Write the account in *counts*, then the end of the visit, and wait until Kafka has both.

        The caller has flushed: every alert is acknowledged or refused.

        Raises:
            DeliveryError: Kafka did not take them.
        """
        for record in self.closing(counts):
            self._write(record)
            self._writer.flush()  # a visit is closed only when its account is in Kafka

    def closing(self, counts: VisitCounts) -> list[Record]:
        """Return the records that close the visit of *counts*: the account, then the end."""
        return [account_record(counts.account()), self._record(counts, self._clock())]

    def end(self, counts: VisitCounts) -> None:
        """Queue the end of a visit that has no account of its own.

        Raises:
            DeliveryError: Kafka did not take an earlier record.
        """
        self._write(self._record(counts, self._clock()))

    def _record(self, counts: VisitCounts, closed: datetime | None) -> Record:
        return Record(topics.VISITS, VISIT.encode(counts.record(closed)), counts.key, self._headers)

    def _write(self, record: Record, on_delivered: Callable[[Message], None] | None = None) -> None:
        self._writer.write(
            record.topic, record.value, key=record.key, headers=record.headers, on_delivered=on_delivered
        )
