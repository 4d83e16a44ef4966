"""The comparison of an archive with its topics, record by record."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.archive.querying import Archive
from nightwire.archive.storage import ALERTS, INDEX, PACKETS, Packet, Table, packet_of
from nightwire.archive.writing import COMMON, index_rows
from nightwire.core.kafka import TopicPartition, consumer, read_until, watermarks
from nightwire.schemas import SchemaError

BATCH_OFFSETS = 1000
"""Offsets whose records are compared together."""
INDEX_BATCH_OFFSETS = 50_000
"""Offsets whose rows are compared with the index together: it is read whole for each batch."""
NO_LIMIT = 1 << 40
"""Most rows of a table: a range's rows are not split."""
INDEX_KEY = ("kind", "key", "partition", "offset")
"""The columns that identify a row of the index."""


@dataclass(frozen=True)
class Comparison:
    """The comparison of one partition.

    Attributes:
        partition: Its number.
        first: The first offset.
        last: The last one.
        records: Number of Kafka's records from *first* to *last*.
        missing: Of these, records that the archive lacks, whole or, of alerts, as a row.
        doubled: Records that it has more than once, whole or as a row.
        different: Records that differ in value, key or time.
        unreadable: Records that are no alerts: they are kept whole, without a row.
        index: Rows that the index lacks, or has too many.
        waiting: Records that are not archived yet.
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


def compare(bootstrap: str, archive: Archive, survey: str) -> Iterator[Comparison]:
    """Yield the comparison of each partition of a survey.

    Raises:
        ArchiveError: There is no such survey in the archive.
        KafkaException: Kafka does not answer.
    """
    tables = archive.tables(survey)
    packets, index, alerts = (Table(archive.store, survey, layout) for layout in (PACKETS, INDEX, ALERTS))
    with consumer(bootstrap, enable_partition_eof=True) as reader:
        known = reader.list_topics(tables.topic, timeout=10).topics[tables.topic]
        ends = {  # the position of each, in all tables
            number: min(one.position((tables.topic, number)) or 0 for one in (packets, index, alerts))
            for number in sorted(known.partitions)
        }
        tables.refresh(force=True)  # after the positions: all rows before them are there
        for number, level in ends.items():
            low, high = watermarks(reader, tables.topic, number)
            end = max(low, min(level, high))
            found = Counter[str]()
            for wanted in _batches(range(low, end), BATCH_OFFSETS):
                found.update(_compare_records(reader, archive, survey, number, wanted))
            for wanted in _batches(range(low, end), INDEX_BATCH_OFFSETS):
                found["index"] += _index_differences(index, alerts, number, wanted)
            found["waiting"] = sum(1 for _ in _records(reader, (tables.topic, number), range(end, high)))
            yield Comparison(number, low, end - 1, **found)


def _batches(whole: range, size: int) -> Iterator[range]:
    return (whole[first : first + size] for first in range(0, len(whole), size))


def _compare_records(
    reader: Consumer, archive: Archive, survey: str, number: int, wanted: range
) -> dict[str, int]:
    """Return the counts of a range of offsets, by the names of `Comparison`."""
    tables = archive.tables(survey)
    ours = {one.offset: one for one in _records(reader, (tables.topic, number), wanted)}
    kept = list(tables.read_packets(number, wanted.start, wanted.stop))
    rows = tables.offsets(number, wanted.start, wanted.stop)
    found = {one.offset: one for one in kept}
    rowless = found.keys() - set(rows)
    unreadable = sum(not _is_alert(archive, found[offset]) for offset in rowless)
    return {
        "records": len(ours),
        "missing": len(ours.keys() - found.keys()) + len(rowless) - unreadable,
        "doubled": len(kept) - len(found) + len(rows) - len(set(rows)),
        "different": sum(found.get(offset) != ours.get(offset) for offset in found),
        "unreadable": unreadable,
    }


def _index_differences(index: Table, alerts: Table, number: int, wanted: range) -> int:
    """Return the number of index rows that are missing, or too many, of a range of offsets."""
    asked = number, wanted.start, wanted.stop, NO_LIMIT
    due = _entries(map(index_rows, alerts.read_range(*asked, COMMON)))
    there = _entries(index.read_range(*asked, INDEX_KEY))
    return ((due - there) + (there - due)).total()


def _entries(tables: Iterable[Any]) -> Counter[tuple[Any, ...]]:
    found = Counter[tuple[Any, ...]]()
    for rows in tables:
        found.update(zip(*(rows.column(name).to_pylist() for name in INDEX_KEY), strict=True))
    return found


def _is_alert(archive: Archive, packet: Packet) -> bool:
    try:
        archive.decode(packet)
    except SchemaError:
        return False
    return True


def _records(reader: Consumer, partition: TopicPartition, wanted: range) -> Iterator[Packet]:
    if wanted:
        reader.assign([TopicPartitionOffset(*partition, wanted.start)])
        yield from map(packet_of, read_until(reader, {partition: wanted.stop}))
