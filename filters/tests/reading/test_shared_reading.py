"""Records that several readers want are read of Kafka once.  librdkafka's mock cluster."""

from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import Message

from nightwire.core.kafka import Writer, producer, watermarks
from nightwire.filters.model.offsets import OffsetRange
from nightwire.filters.reading.fetch import ExpiredCount, fetch, range_consumer
from nightwire.filters.reading.shared_reading import RecentRecords

TOPIC = "alerts.shared"


class Reading:
    """Sixty records in a partition, and which ranges were read of them."""

    def __init__(self, bootstrap: str, most: int = 1 << 20) -> None:
        writer = Writer(producer(bootstrap))
        writer.write(TOPIC, b"x", partition=0)
        writer.flush()
        self._consumer = range_consumer(bootstrap)
        self.first = watermarks(self._consumer, TOPIC, 0)[1]
        for number in range(60):
            writer.write(TOPIC, bytes([number]) * 100, partition=0)
        writer.flush()
        self.read: list[tuple[int, int]] = []
        self.recent = RecentRecords(self._read, most)

    def _read(self, work: OffsetRange, expired: ExpiredCount) -> Iterator[Sequence[Message]]:
        self.read.append((work.first - self.first, work.end - self.first))
        return fetch(self._consumer, work, expired)

    def numbers(self, first: int, end: int) -> list[int]:
        """Return the numbers of the records *first* to *end* - 1."""
        work = OffsetRange(TOPIC, 0, self.first + first, self.first + end)
        found = [one for some in self.recent.records(work, ExpiredCount()) for one in some]
        return [(one.value() or b"x")[0] for one in found]


@pytest.fixture
def reading(bootstrap: str) -> Reading:
    """Return the records."""
    return Reading(bootstrap)


def test_what_was_read_is_not_read_again(reading: Reading) -> None:
    assert reading.numbers(0, 20) == [*range(20)]
    assert reading.numbers(5, 15) == [*range(5, 15)]
    assert reading.read == [(0, 20)]


def test_what_is_missing_is_read_between_what_is_there(reading: Reading) -> None:
    reading.numbers(10, 20)
    assert reading.numbers(15, 40) == [*range(15, 40)]
    assert reading.read == [(10, 20), (20, 40)]
    assert reading.numbers(10, 40) == [*range(10, 40)]
    assert reading.numbers(0, 12) == [*range(12)]
    assert reading.read[2:] == [(0, 12)]


def test_the_oldest_goes_where_it_is_too_much(bootstrap: str) -> None:
    reading = Reading(bootstrap, most=2_500)
    for first in (0, 10, 20):
        reading.numbers(first, first + 10)
    assert reading.numbers(20, 30) == [*range(20, 30)]
    assert reading.read == [(0, 10), (10, 20), (20, 30)]
    reading.numbers(0, 10)
    assert reading.read[3:] == [(0, 10)]
