"""Whether archive and topic are the same: record by record, by ranges of offsets."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.archive.querying import Archive
from nightwire.archive.storage import ALERTS, INDEX, PACKETS, Table, WholeRecord, record_of
from nightwire.archive.writing import COMMON, index_rows
from nightwire.core.kafka import TopicPartition, consumer, read_until, watermarks
from nightwire.schemas import SchemaError

RANGE = 1000
"""Offsets that are compared at once."""
INDEX_RANGE = 50_000
"""Offsets whose rows are compared with the index at once: it is read whole for each."""
ALL = 1 << 40
"""Rows at once: those of a range come together."""
ENTRY = ("kind", "key", "partition", "offset")
"""What makes a row of the index."""


@dataclass(frozen=True)
class Compared:
    """What was found of a partition.

    Attributes:
        partition: Its number.
        first: The first offset.
        last: The last one.
        records: How many Kafka has there.
        missing: How many the archive has not, or, of alerts, has no row of.
        doubled: How many it has more than once, whole or as a row.
        different: How many differ in value, key or time.
        unreadable: How many are no alerts: whole they are kept, without a row.
        index: How many rows the index lacks, or has too many, of the alerts' rows.
        waiting: How many records are not archived yet.
    """

    partition: int
    first: int
    last: int
    records: int = 0
    missing: int = 0
    doubled: int = 0
    different: int = 0
    unreadable: int = 0
    index: int = 0
    waiting: int = 0

    @property
    def same(self) -> bool:
        """Whether archive and topic agree."""
        return not (self.missing or self.doubled or self.different or self.index)


def compare(bootstrap: str, archive: Archive, survey: str) -> Iterator[Compared]:
    """Yield what is found of each partition of a survey that Kafka has records of.

    Raises:
        ArchiveError: There is no such survey in the archive.
        KafkaException: Kafka does not answer.
    """
    tables = archive.tables(survey)
    packets, index, alerts = (Table(archive.store, survey, layout) for layout in (PACKETS, INDEX, ALERTS))
    reader = consumer(bootstrap, enable_partition_eof=True)
    try:
        known = reader.list_topics(tables.topic, timeout=10).topics[tables.topic]
        ends = {  # how far each is archived, in all tables
            number: min(one.position((tables.topic, number)) or 0 for one in (packets, index, alerts))
            for number in sorted(known.partitions)
        }
        tables.refresh(force=True)  # after the positions: it has all that lies before them
        for number, level in ends.items():
            low, high = watermarks(reader, tables.topic, number)
            end = max(low, min(level, high))
            found = Counter[str]()
            for wanted in _portions(range(low, end), RANGE):
                found.update(_compared(reader, archive, survey, number, wanted))
            for wanted in _portions(range(low, end), INDEX_RANGE):
                found["index"] += _index_errors(index, alerts, number, wanted)
            found["waiting"] = sum(1 for _ in _records(reader, (tables.topic, number), range(end, high)))
            yield Compared(number, low, end - 1, **found)
    finally:
        reader.close()


def _portions(whole: range, size: int) -> Iterator[range]:
    return (whole[at : at + size] for at in range(0, len(whole), size))


def _compared(reader: Consumer, archive: Archive, survey: str, number: int, wanted: range) -> dict[str, int]:
    """Return what was found of a range of offsets, by the names of `Compared`."""
    tables = archive.tables(survey)
    ours = {one.offset: one for one in _records(reader, (tables.topic, number), wanted)}
    kept = list(tables.records(number, wanted.start, wanted.stop))
    rows = tables.offsets(number, wanted.start, wanted.stop)
    found = {one.offset: one for one in kept}
    rowless = found.keys() - set(rows)
    unreadable = sum(not _is_alert(archive, found[at]) for at in rowless)
    return {
        "records": len(ours),
        "missing": len(ours.keys() - found.keys()) + len(rowless) - unreadable,
        "doubled": len(kept) - len(found) + len(rows) - len(set(rows)),
        "different": sum(found.get(at) != ours.get(at) for at in found),
        "unreadable": unreadable,
    }


def _index_errors(index: Table, alerts: Table, number: int, wanted: range) -> int:
    """Return how many rows of the index are missing, or too many, of a range of offsets."""
    asked = number, wanted.start, wanted.stop, ALL
    due = _entries(map(index_rows, alerts.read_range(*asked, COMMON)))
    there = _entries(index.read_range(*asked, ENTRY))
    return ((due - there) + (there - due)).total()


def _entries(tables: Iterable[Any]) -> Counter[tuple[Any, ...]]:
    found = Counter[tuple[Any, ...]]()
    for rows in tables:
        found.update(zip(*(rows.column(name).to_pylist() for name in ENTRY), strict=True))
    return found


def _is_alert(archive: Archive, record: WholeRecord) -> bool:
    try:
        archive.decode(record)
    except SchemaError:
        return False
    return True


def _records(reader: Consumer, partition: TopicPartition, wanted: range) -> Iterator[WholeRecord]:
    if wanted:
        reader.assign([TopicPartitionOffset(*partition, wanted.start)])
        yield from map(record_of, read_until(reader, {partition: wanted.stop}))
