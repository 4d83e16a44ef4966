"""Which visits are closed, as the topic `visits` says."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer

from nightwire.core.kafka import watermarks
from nightwire.filters.model.filter_set import FilterSet
from nightwire.filters.model.offsets import OffsetRange, Visit, VisitEnds
from nightwire.filters.reading.fetch import TIMEOUT, ExpiredCount, fetch, range_consumer
from nightwire.schemas import DecodeError, records
from nightwire.schemas.topics import FILTERS, VISITS


class VisitFollower:
    """Follows the compacted topic `visits`.

    Args:
        bootstrap: Kafka's address.
    """

    def __init__(self, bootstrap: str) -> None:
        self._consumer: Consumer = range_consumer(bootstrap)
        self._next = 0
        self._last = -1

    def end(self) -> int:
        """Return the topic's end.

        Raises:
            KafkaException: Kafka does not answer.
        """
        return watermarks(self._consumer, VISITS, 0)[1]

    def closed_since(self, position: int) -> bool:
        """Return whether a visit was closed at or after *position*.

        Raises:
            KafkaException: Kafka does not answer.
        """
        self._next = max(self._next, position)
        if (end := self.end()) > self._next:
            found = [offset for offset, record in self._records(self._next, end) if is_closed(record)]
            self._last, self._next = max([self._last, *found]), end
        return self._last >= position

    def closed(self, first: int, end: int) -> dict[Visit, VisitEnds]:
        """Return the visits that records *first* to *end* - 1 close.

        Raises:
            KafkaException: Kafka does not answer.
        """
        return closed_visits(record for _, record in self._records(first, end)) if end > first else {}

    def _records(self, first: int, end: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
        wanted = OffsetRange(VISITS, 0, first, end)
        for messages in fetch(self._consumer, wanted, ExpiredCount(), patience=TIMEOUT):
            for message in messages:
                try:
                    yield message.offset() or 0, records.VISIT.decode(message.value() or b"")
                except DecodeError:
                    continue  # a tombstone, or nobody's record: it closes nothing


def closed_visits(visit_records: Iterable[Mapping[str, Any]]) -> dict[Visit, VisitEnds]:
    """Return the visits that the records of `visits` close, with their last offsets.  Pure."""
    return {
        (record["survey"], record["visit"]): {one["partition"]: one["last"] for one in record["partitions"]}
        for record in visit_records
        if is_closed(record)
    }


def is_closed(record: Mapping[str, Any]) -> bool:
    """Return whether a record of `visits` says that its visit is closed."""
    return record["closed"] is not None


class FilterFollower:
    """Follows the compacted topic `filters`.

    Args:
        bootstrap: Kafka's address.
    """

    def __init__(self, bootstrap: str) -> None:
        self._consumer: Consumer = range_consumer(bootstrap)
        self._next = 0
        self.filters = FilterSet()

    def refresh(self) -> int:
        """Read new records; return the topic's end offset, which is the set's version.

        Raises:
            KafkaException: Kafka does not answer.
        """
        low, end = watermarks(self._consumer, FILTERS, 0)
        if end > max(low, self._next):
            wanted = OffsetRange(FILTERS, 0, max(low, self._next), end)
            fresh = [message for some in fetch(self._consumer, wanted, patience=TIMEOUT) for message in some]
            for message in fresh:  # all of them or, when Kafka fell silent, none
                self.filters.take(message.key(), message.value())
            self._next = end
        return max(self._next, end)
