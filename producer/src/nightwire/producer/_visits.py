"""Opening and closing visits in Kafka, and closing those whose writer died."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import Message, TopicPartition

from nightwire.core.accounts import write_account
from nightwire.core.kafka import Writer, consumer, drain, end_offsets, read_to_end
from nightwire.producer._ledger import Ledger
from nightwire.schemas import topics
from nightwire.schemas.records import VISIT

Clock = Callable[[], datetime]

HEADER = "visit"
"""Header of an alert's record that names its visit."""
PATIENCE = 60.0
"""How long to wait for a Kafka that is away. [s]  A single broker is back within 20."""


def utc_now() -> datetime:
    """Return the time, UTC."""
    return datetime.now(UTC)


class VisitDesk:
    """Write the records of visits, and the producer's accounts.

    Args:
        writer: The one that writes the alerts, so that its errors are theirs.
        survey: Name of the survey.
        clock: Gives the time, UTC.
    """

    def __init__(self, writer: Writer, survey: str, *, clock: Clock = utc_now) -> None:
        self._writer, self._survey, self._clock = writer, survey, clock

    def open(self, number: int) -> Ledger:
        """Announce visit *number* and return its ledger.

        Raises:
            DeliveryError: Kafka did not take an earlier record.
        """
        ledger = Ledger(self._survey, number, self._clock())
        self.announce(ledger, open_still=True)
        return ledger

    def close(self, ledger: Ledger) -> None:
        """Write the account of the visit of *ledger*, then its end, and wait until Kafka has both.

        The caller has flushed: every alert is acknowledged or refused.

        Raises:
            DeliveryError: Kafka did not take them.
        """
        write_account(self._writer, ledger.account())
        self._writer.flush()  # a visit is closed only when its account is there
        self.announce(ledger)
        self._writer.flush()

    def announce(self, ledger: Ledger, *, open_still: bool = False) -> None:
        """Queue the record of *ledger* to `visits`.

        Raises:
            DeliveryError: Kafka did not take an earlier record.
        """
        closed = None if open_still else self._clock()
        self._writer.write(topics.VISITS, VISIT.encode(ledger.record(closed)), key=ledger.key)


def known_visits(bootstrap: str, survey: str) -> dict[int, dict[str, Any]]:
    """Return the record of each visit of *survey* in Kafka, by number.

    Raises:
        KafkaException: Kafka cannot be reached.
    """
    latest: dict[int, dict[str, Any]] = {}
    for message in read_to_end(bootstrap, [topics.VISITS]):
        if (value := message.value()) is not None:
            record = VISIT.decode(value)
            if record["survey"] == survey:
                latest[record["visit"]] = record
    return latest


def abandoned(visits: Mapping[int, Mapping[str, Any]]) -> dict[int, Ledger]:
    """Return ledgers for those of *visits* that nobody closed."""
    return {
        number: Ledger(record["survey"], number, record["opened"], estimated=True)
        for number, record in visits.items()
        if record["closed"] is None
    }


def close_abandoned(bootstrap: str, desk: VisitDesk, left: Mapping[int, Ledger]) -> None:
    """Close the visits *left* open by a writer that died, with what lies in their survey's topic.

    A writer that is still at it after all overwrites this when it closes its visit.

    Raises:
        KafkaException: Kafka cannot be reached.
        DeliveryError: Kafka did not take the records.
    """
    if not left:
        return
    opened = min(ledger.opened for ledger in left.values())
    for topic in {topics.alerts(ledger.survey) for ledger in left.values()}:
        for message in _since(bootstrap, topic, opened - timedelta(seconds=1)):
            number = visit_of(message)
            if number is not None and number in left:
                left[number].delivered(message)
    for ledger in left.values():
        ledger.offered = ledger.acknowledged
        desk.close(ledger)


def visit_of(message: Message) -> int | None:
    """Return the visit that a record's header names."""
    headers: Any = message.headers() or ()
    return next((int(value) for name, value in headers if name == HEADER and value is not None), None)


def _since(bootstrap: str, topic: str, moment: datetime) -> Iterator[Message]:
    """Yield the records of *topic* that were written since *moment*, up to its present end."""
    reader = consumer(bootstrap, enable_partition_eof=True)
    try:
        ends = end_offsets(reader, [topic])
        asked = [TopicPartition(*spot, int(moment.timestamp() * 1000)) for spot in ends]
        found = reader.offsets_for_times(asked, timeout=10) if asked else []
        starts = [spot for spot in found if spot.offset >= 0]
        reader.assign(starts)
        spots = [(one.topic, one.partition) for one in starts]
        yield from drain(reader, {spot: ends[spot] for spot in spots}, patience=PATIENCE)
    finally:
        reader.close()
