"""Closing the visits, and the replays, whose writer died."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from nightwire.core.kafka import headers_of, read_to_end
from nightwire.producer.visits.counts import VisitCounts
from nightwire.producer.visits.visit_topic import (
    PATIENCE,
    REPLAY_HEADER,
    VISIT_HEADER,
    VisitTopic,
    utc_now,
)
from nightwire.producer.visits.writer_id import WRITER_HEADER, WriterId
from nightwire.schemas import topics
from nightwire.schemas.records import VISIT

log = logging.getLogger("nightwire.producer")


@dataclass(frozen=True)
class KnownVisit:
    """A visit in Kafka.

    Attributes:
        record: Its latest record.
        writer: The process that wrote it; None where it does not say.
        replay: The replay that it belongs to; the visit's own number where it is the replay itself.
    """

    record: Mapping[str, Any]
    writer: WriterId | None = None
    replay: int | None = None

    @property
    def number(self) -> int:
        """Its number."""
        return int(self.record["visit"])

    def is_abandoned(self, now: datetime) -> bool:
        """Return whether the visit is open at *now*, and its writer dead."""
        if self.record["closed"] is not None or self.writer is None:
            return False
        return self.writer.is_dead(now - self.record["opened"])

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
                writer = WriterId.parse(headers.get(WRITER_HEADER, b""))
                latest[record["visit"]] = KnownVisit(record, writer, _number(headers, REPLAY_HEADER))
    return latest


def abandoned(visits: Mapping[int, KnownVisit], now: datetime) -> list[KnownVisit]:
    """Return the open ones of *visits* whose writer is dead."""
    return [known for _number, known in sorted(visits.items()) if known.is_abandoned(now)]


def close_abandoned(bootstrap: str, visit_topic: VisitTopic, left: list[KnownVisit]) -> list[VisitCounts]:
    """Close the visits *left* open by a writer that died, with the alerts in their survey's topic.

    Returns:
        Their counts, each ``estimated``.

    Raises:
        KafkaException: Kafka cannot be reached.
        DeliveryError: Kafka did not take the records.
    """
    if not left:
        return []
    counts_by_visit = {
        known.number: VisitCounts(
            known.record["survey"], known.number, known.record["opened"], estimated=True
        )
        for known in left
    }
    since = min(counts.opened for counts in counts_by_visit.values()) - timedelta(seconds=1)
    for topic in {topics.alerts(counts.survey) for counts in counts_by_visit.values()}:
        for message in read_to_end(bootstrap, [topic], patience=PATIENCE, since=since):
            headers = headers_of(message)
            visit, replay = _number(headers, VISIT_HEADER), _number(headers, REPLAY_HEADER)
            for known in left:
                if known.holds(visit, replay):
                    counts_by_visit[known.number].delivered(message)
    for known in left:
        _close(visit_topic, counts_by_visit[known.number], account=known.has_account)
    return list(counts_by_visit.values())


def _close(visit_topic: VisitTopic, counts: VisitCounts, *, account: bool) -> None:
    counts.offered = counts.acknowledged
    if account:
        visit_topic.close(counts)
    else:
        visit_topic.end(counts)


def close_dead_visits(bootstrap: str, visit_topic: VisitTopic, survey: str) -> int:
    """Close the visits of *survey* that dead writers left open; return the highest number.

    Raises:
        KafkaException: Kafka cannot be reached.
        DeliveryError: Kafka did not take the records.
    """
    known = known_visits(bootstrap, survey)
    for counts in close_abandoned(bootstrap, visit_topic, abandoned(known, utc_now())):
        log.warning("visit %d had been left open: closed with %d alerts", counts.visit, counts.acknowledged)
    return max((one.number for one in known.values() if one.has_account and one.replay is None), default=0)


def _number(headers: Mapping[str, bytes], name: str) -> int | None:
    text = headers.get(name, b"")
    return int(text) if text.isdigit() else None
