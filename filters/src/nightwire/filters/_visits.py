"""Which visits are closed, as the topic `visits` says."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer

from nightwire.core.kafka import marks
from nightwire.filters._caps import Ends, Visit
from nightwire.filters._fetch import TIMEOUT, Gone, fetch, reader
from nightwire.filters._offsets import Range
from nightwire.schemas import DecodeError, records
from nightwire.schemas.topics import VISITS


class VisitWatch:
    """Follows the compacted topic `visits`.

    Args:
        bootstrap: Kafka's address.
    """

    def __init__(self, bootstrap: str) -> None:
        self._consumer: Consumer = reader(bootstrap)
        self._next = 0
        self._last = -1

    def end(self) -> int:
        """Return the topic's end.

        Raises:
            KafkaException: Kafka does not answer.
        """
        return marks(self._consumer, VISITS, 0)[1]

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

    def closed(self, first: int, end: int) -> dict[Visit, Ends]:
        """Return the visits that records *first* to *end* - 1 close.

        Raises:
            KafkaException: Kafka does not answer.
        """
        return closed(record for _, record in self._records(first, end)) if end > first else {}

    def _records(self, first: int, end: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
        wanted = Range(VISITS, 0, first, end)
        for messages in fetch(self._consumer, wanted, Gone(), patience=TIMEOUT):
            for message in messages:
                try:
                    yield message.offset() or 0, records.VISIT.decode(message.value() or b"")
                except DecodeError:
                    continue  # a tombstone, or nobody's record: it closes nothing


def closed(said: Iterable[Mapping[str, Any]]) -> dict[Visit, Ends]:
    """Return the visits that the records of `visits` close, with their last offsets.  Pure."""
    return {
        (record["survey"], record["visit"]): {one["partition"]: one["last"] for one in record["partitions"]}
        for record in said
        if is_closed(record)
    }


def is_closed(record: Mapping[str, Any]) -> bool:
    """Return whether a record of `visits` says that its visit is closed."""
    return record["closed"] is not None
