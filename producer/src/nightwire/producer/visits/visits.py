"""Opening and closing visits in Kafka."""

from collections.abc import Callable
from datetime import UTC, datetime

from confluent_kafka import Message

from nightwire.core.accounting import account_record
from nightwire.core.kafka import Record, Writer
from nightwire.producer.visits import writer_id as _who
from nightwire.producer.visits.counts import VisitCounts
from nightwire.producer.visits.writer_id import WriterId
from nightwire.schemas import topics
from nightwire.schemas.records import VISIT

Clock = Callable[[], datetime]

HEADER = "visit"
"""Header of an alert's record that names its visit."""
HEADER_REPLAY = "replay"
"""Header of the records of a replay, alerts and visits, that names it."""
PATIENCE = 60.0
"""How long to wait for a Kafka that is away. [s]  A single broker is back within 20."""


def utc_now() -> datetime:
    """Return the time, UTC."""
    return datetime.now(UTC)


class VisitTopic:
    """Write the records of visits, and the producer's accounts.

    Args:
        writer: The one that writes the alerts, so that its errors are theirs.
        survey: Name of the survey.
        clock: Gives the time, UTC.
        who: Who opens these visits.
        replay: The replay that they belong to, whose account is theirs.
    """

    def __init__(
        self,
        writer: Writer,
        survey: str,
        *,
        clock: Clock = utc_now,
        who: WriterId | None = None,
        replay: int | None = None,
    ) -> None:
        self._writer, self._survey, self._clock = writer, survey, clock
        self._headers = [(_who.HEADER, bytes(who or WriterId.me()))]
        if replay is not None:
            self._headers.append((HEADER_REPLAY, str(replay).encode()))

    def open(
        self,
        number: int,
        *,
        opened: datetime | None = None,
        on_delivered: Callable[[Message], None] | None = None,
    ) -> VisitCounts:
        """Announce visit *number* and return its ledger.

        Args:
            number: Its number.
            opened: When it was opened, UTC; else now.
            on_delivered: Is called with the acknowledged record.

        Raises:
            DeliveryError: Kafka did not take an earlier record.
        """
        ledger = VisitCounts(self._survey, number, opened or self._clock())
        self._announce(self._record(ledger, None), on_delivered)
        return ledger

    def close(self, ledger: VisitCounts) -> None:
        """Write the account of the visit of *ledger*, then its end, and wait until Kafka has both.

        The caller has flushed: every alert is acknowledged or refused.

        Raises:
            DeliveryError: Kafka did not take them.
        """
        for record in self.closing(ledger):
            self._announce(record)
            self._writer.flush()  # a visit is closed only when its account is there

    def closing(self, ledger: VisitCounts) -> list[Record]:
        """Return the records that close the visit of *ledger*: its account, then its end."""
        return [account_record(ledger.account()), self._record(ledger, self._clock())]

    def end(self, ledger: VisitCounts) -> None:
        """Queue the end of a visit that has no account of its own.

        Raises:
            DeliveryError: Kafka did not take an earlier record.
        """
        self._announce(self._record(ledger, self._clock()))

    def _record(self, ledger: VisitCounts, closed: datetime | None) -> Record:
        return Record(topics.VISITS, VISIT.encode(ledger.record(closed)), ledger.key, self._headers)

    def _announce(self, record: Record, on_delivered: Callable[[Message], None] | None = None) -> None:
        self._writer.write(
            record.topic, record.value, key=record.key, headers=record.headers, on_delivered=on_delivered
        )
