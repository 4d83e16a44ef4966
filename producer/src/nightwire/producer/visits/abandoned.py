"""Closing the visits, and the replays, whose writer died."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from confluent_kafka import Message, TopicPartition

from nightwire.core.kafka import consumer, end_offsets, headers_of, read_to_end, read_until
from nightwire.producer.visits import writer_id as _who
from nightwire.producer.visits.counts import VisitCounts
from nightwire.producer.visits.visits import HEADER, HEADER_REPLAY, PATIENCE, VisitTopic, utc_now
from nightwire.producer.visits.writer_id import WriterId
from nightwire.schemas import topics
from nightwire.schemas.records import VISIT

log = logging.getLogger("nightwire.producer")


@dataclass(frozen=True)
class KnownVisit:
    """A visit in Kafka.

    Attributes:
        record: Its latest record.
        writer: Who wrote that; None where it does not say.
        replay: The replay that it belongs to, whose number is the visit's own where it is the replay itself.
    """

    record: Mapping[str, Any]
    writer: WriterId | None = None
    replay: int | None = None

    @property
    def number(self) -> int:
        """Its number."""
        return int(self.record["visit"])

    def is_abandoned(self, now: datetime) -> bool:
        """Return whether it is open, and its writer dead at *now*; nobody else's business while it is not."""
        if self.record["closed"] is not None or self.writer is None:
            return False
        return self.writer.is_gone(now - self.record["opened"])

    def holds(self, visit: int | None, replay: int | None) -> bool:
        """Return whether an alert that names *visit* and *replay* belongs to it."""
        return replay == self.replay and self.number in (visit, replay)

    @property
    def has_account(self) -> bool:
        """Whether it has an account of its own: the visits of a replay are in the replay's."""
        return self.replay in (None, self.number)


def known_visits(bootstrap: str, survey: str) -> dict[int, KnownVisit]:
    """Return each visit of *survey* in Kafka, by number.

    Raises:
        KafkaException: Kafka cannot be reached.
    """
    latest: dict[int, KnownVisit] = {}
    for message in read_to_end(bootstrap, [topics.VISITS]):
        if (value := message.value()) is not None:
            record = VISIT.decode(value)
            if record["survey"] == survey:
                headers = headers_of(message)
                who = WriterId.parse(headers.get(_who.HEADER, b""))
                latest[record["visit"]] = KnownVisit(record, who, _number(headers, HEADER_REPLAY))
    return latest


def abandoned(visits: Mapping[int, KnownVisit], now: datetime) -> list[KnownVisit]:
    """Return those of *visits* that nobody will close: open, and their writer dead."""
    return [known for _number, known in sorted(visits.items()) if known.is_abandoned(now)]


def close_abandoned(bootstrap: str, visit_topic: VisitTopic, left: list[KnownVisit]) -> list[VisitCounts]:
    """Close the visits *left* open by a writer that died, with what lies in their survey's topic.

    Returns:
        Their ledgers, each ``estimated``.

    Raises:
        KafkaException: Kafka cannot be reached.
        DeliveryError: Kafka did not take the records.
    """
    if not left:
        return []
    ledgers = {
        known.number: VisitCounts(
            known.record["survey"], known.number, known.record["opened"], estimated=True
        )
        for known in left
    }
    opened = min(ledger.opened for ledger in ledgers.values())
    for topic in {topics.alerts(ledger.survey) for ledger in ledgers.values()}:
        for message in _since(bootstrap, topic, opened - timedelta(seconds=1)):
            headers = headers_of(message)
            visit, replay = _number(headers, HEADER), _number(headers, HEADER_REPLAY)
            for known in left:
                if known.holds(visit, replay):
                    ledgers[known.number].delivered(message)
    for known in left:
        _close(visit_topic, ledgers[known.number], account=known.has_account)
    return list(ledgers.values())


def _close(visit_topic: VisitTopic, ledger: VisitCounts, *, account: bool) -> None:
    ledger.offered = ledger.acknowledged
    if account:
        visit_topic.close(ledger)
    else:
        visit_topic.end(ledger)


def close_dead_visits(bootstrap: str, visit_topic: VisitTopic, survey: str) -> int:
    """Close the visits of *survey* that a writer left open when it died; return the highest number in use.

    Raises:
        KafkaException: Kafka cannot be reached.
        DeliveryError: Kafka did not take the records.
    """
    known = known_visits(bootstrap, survey)
    for ledger in close_abandoned(bootstrap, visit_topic, abandoned(known, utc_now())):
        log.warning("visit %d had been left open: closed with %d alerts", ledger.visit, ledger.acknowledged)
    return max((one.number for one in known.values() if one.has_account and one.replay is None), default=0)


def _number(headers: Mapping[str, bytes], name: str) -> int | None:
    text = headers.get(name, b"")
    return int(text) if text.isdigit() else None


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
        yield from read_until(reader, {spot: ends[spot] for spot in spots}, patience=PATIENCE)
    finally:
        reader.close()
