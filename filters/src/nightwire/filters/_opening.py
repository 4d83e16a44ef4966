"""Where the past begins: offsets by time, and whether everything since then is still there."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from confluent_kafka import Consumer, TopicPartition

from nightwire.core.clock import now_ms
from nightwire.core.kafka import marks
from nightwire.filters._fetch import TIMEOUT, Gone, fetch, reader
from nightwire.filters._offsets import Range, Spot


@dataclass(frozen=True)
class Opening:
    """Where a stretch of the past begins.

    Attributes:
        first: The first offset of each partition; its end where there is nothing.
        since: From when on it was asked for. [ms since 1970, UTC]
        kept: Since when everything is there, where older records have expired. [ms since 1970, UTC]
    """

    first: Mapping[Spot, int]
    since: int
    kept: int | None = None

    def __str__(self) -> str:
        said = f"since {_minute(self.since)}"
        return said if self.kept is None else f"{said}; what came before {_minute(self.kept)} has expired"


def opening(bootstrap: str, since: int, until: Mapping[Spot, int]) -> Opening:
    """Return where the records begin that Kafka took at *since* or later, of those before *until*.

    Args:
        bootstrap: Kafka's address.
        since: [ms since 1970, UTC]
        until: The offset after the last one that is wanted, of each partition.

    Raises:
        KafkaException: Kafka does not answer.
    """
    consumer = reader(bootstrap)
    try:
        wanted = [TopicPartition(*spot, since) for spot in sorted(until)]
        found = consumer.offsets_for_times(wanted, timeout=TIMEOUT) if wanted else []
        later = {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}
        first = {spot: min(later.get(spot, end), end) for spot, end in until.items()}
        kept = (_whole_since(consumer, spot, offset) for spot, offset in first.items())
        return Opening(first, since, max((one for one in kept if one is not None), default=None))
    finally:
        consumer.close()


def _whole_since(consumer: Consumer, spot: Spot, first: int) -> int | None:
    """Return since when a partition has everything, where something may be missing that came at *first*."""
    low, end = marks(consumer, *spot)
    if low == 0 or first > low:
        return None
    some = next(fetch(consumer, Range(*spot, low, end), Gone(), patience=TIMEOUT), ())
    return some[0].timestamp()[1] if some else now_ms()


def _minute(time: int) -> str:
    return f"{datetime.fromtimestamp(time / 1000, UTC):%Y-%m-%d %H:%M} UTC"
