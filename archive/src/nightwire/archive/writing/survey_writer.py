"""Records of one survey into its three tables, each row once.

Whole records come first: their table is the truth, and its position is the archive's.  Columns are
made of it, and the index of columns; where a process died between them, or one was deleted, it is
caught up from what is kept, not from Kafka, which may have forgotten it.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from nightwire.archive.storage import (
    ALERTS,
    INDEX,
    PACKETS,
    OffsetRange,
    SchemaStore,
    StorageError,
    Store,
    Table,
    WholeRecord,
    next_offsets,
    record_rows,
    records_in,
)
from nightwire.archive.writing.columns import CANONICAL, OURS, alert_rows, fitted, index_rows, scalar_paths
from nightwire.core.kafka import TopicPartition
from nightwire.schemas import (
    AlertDecoder,
    AlertTable,
    Codec,
    RegistryAwayError,
    SchemaError,
    wire,
)
from nightwire.schemas import survey as survey_called
from nightwire.schemas.topics import alerts as topic_of

log = logging.getLogger("nightwire.archive")

CHUNK = 2000
"""Whole records that are caught up at once."""
CHUNK_ROWS = 100_000
"""Rows of columns that are caught up at once: some 20 MB."""


class Codecs(Protocol):
    """What is needed of a registry."""

    def codec(self, schema_id: int) -> Codec:
        """Return the codec of a schema id."""


@dataclass(frozen=True)
class Written:
    """What became of records.

    Attributes:
        ranges: For each partition, its position before and after.
        records: The records, in order.
        faults: Those that are no alerts, by their index, and why.
    """

    ranges: Mapping[TopicPartition, OffsetRange]
    records: Sequence[WholeRecord]
    faults: Mapping[int, str] = field(default_factory=dict)


class SurveyWriter:
    """Writes one survey.

    Args:
        store: The archive's.
        survey: Its name.
        registry: Knows the schemas of what comes.
    """

    def __init__(self, store: Store, survey: str, registry: Codecs) -> None:
        self.topic = topic_of(survey)
        self._survey, self._registry = survey_called(survey), registry
        self._schemas = SchemaStore(store)
        self.packets, self.index, self.alerts = (
            Table(store, survey, layout) for layout in (PACKETS, INDEX, ALERTS)
        )
        self._paths: dict[int, Sequence[str]] = {}
        self._contained: tuple[dict[str, Any], Sequence[str]] | None = None

    def position(self, number: int) -> int | None:
        """Return the next offset to archive of a partition, after all tables are level.

        Raises:
            StorageError: The store does not answer.
        """
        source = (self.topic, number)
        end = self.packets.position(source)
        for table in (self.alerts, self.index):  # which is made of it
            begin = table.position(source)
            if end is not None and begin != end:
                self._catch_up(table, source, begin, end)
        return end

    def write(self, records: Sequence[WholeRecord], begins: Mapping[TopicPartition, int | None]) -> Written:
        """Add *records* to all tables.

        Args:
            records: In the order of their offsets, for each partition.
            begins: The position of each partition.

        Raises:
            RegistryAwayError: Nobody can be asked for a schema; nothing was written.
            FencedError: Another process archives the same.
            StorageError: There is no room; what was not written is caught up later.
        """
        ids = {one.schema_id for one in records} - {None}
        try:
            self._schemas.add([one for one in ids if one is not None], self._registry.codec)
        except OSError as error:
            raise StorageError(f"{self.packets.uri}: the schema was not kept: {error}") from error
        ranges = {one: (begins[one], end) for one, end in next_offsets(records).items()}
        whole = record_rows(records)
        rows, faults = self._rows(records, whole)
        self.packets.append(whole, ranges)
        self.index.append(index_rows(rows), ranges)
        self.alerts.append(fitted(rows, self.alerts.schema), ranges)
        return Written(ranges, records, faults)

    def _catch_up(self, table: Table, source: TopicPartition, begin: int | None, end: int) -> None:
        log.warning("%s: %s[%d] is caught up from %s to %d", table.uri, *source, begin, end)
        made = self._indexed if table is self.index else self._decoded
        for rows, upto in made(source[1], begin or 0, end):
            table.append(rows, {source: (begin, upto)})
            begin = upto
        if begin != end:
            if table is self.alerts:
                log.error("%s: up to %d what was archived is no longer kept whole", table.uri, end)
            none, _ = self._rows([], record_rows([]))
            empty = index_rows(none) if table is self.index else fitted(none, table.schema)
            table.append(empty, {source: (begin, end)})

    def _decoded(self, number: int, begin: int, end: int) -> Iterator[tuple[Any, int]]:
        """Yield the columns of the whole records that are kept, and the offset after them."""
        for records, alerts, _ in self._kept(number, begin, end):
            yield fitted(alerts, self.alerts.schema), records[-1].offset + 1

    def _indexed(self, number: int, begin: int, end: int) -> Iterator[tuple[Any, int]]:
        """Yield the index of the alerts whose columns are kept, and the offset after it."""
        for rows in self.alerts.read_range(number, begin, end, CHUNK_ROWS, OURS):
            yield index_rows(rows), rows.column("offset")[-1].as_py() + 1

    def unreadable(self, number: int, begin: int, end: int) -> Iterator[tuple[WholeRecord, str]]:
        """Yield the kept records of a range of offsets that are no alerts, and why not."""
        for records, _, faults in self._kept(number, begin, end):
            for at, reason in faults.items():
                yield records[at], reason

    def _kept(
        self, number: int, begin: int, end: int
    ) -> Iterator[tuple[list[WholeRecord], Any, dict[int, str]]]:
        """Yield the records that are kept of a range of offsets, and what `_rows` says of them."""
        for rows in self.packets.read_range(number, begin, end, CHUNK):
            records = list(records_in(self.topic, rows))
            yield records, *self._rows(records, rows)

    def _rows(self, records: Sequence[WholeRecord], whole: Any) -> tuple[Any, dict[int, str]]:
        """Return the rows of the alerts in *records*, and why others are none."""
        values = [one.value or b"" for one in records]
        fields = self._fields(values)
        columns = AlertDecoder(self._registry).columns(values, fields, missing_ok=True)
        for error in columns.faults.values():
            if isinstance(error, RegistryAwayError):
                raise error
        places = whole.select(["partition", "offset", "timestamp", "schema_id"])
        places = places.take(pa.array(list(columns.rows), pa.int64()))
        rows = alert_rows(columns.batch, self._survey, places)
        return rows, {at: str(error) for at, error in columns.faults.items()}

    def _fields(self, values: Sequence[bytes]) -> list[str]:
        """Return the fields that are columns, of all schemas of *values*."""
        found = dict.fromkeys(AlertTable.fields(CANONICAL, self._survey))
        for value in values:
            found |= dict.fromkeys(self._paths_of(value))
        return list(found)

    def _paths_of(self, value: bytes) -> Sequence[str]:
        try:
            if wire.is_container(value):
                return self._paths_in_container(next(wire.read_container(value)).schema)
            name, _ = wire.unframe(value)
            if name not in self._paths:
                self._paths[name] = scalar_paths(self._registry.codec(name))
        except RegistryAwayError:
            raise
        except (SchemaError, StopIteration):  # a dead letter, as decoding it says
            return ()
        return self._paths[name]

    def _paths_in_container(self, schema: dict[str, Any]) -> Sequence[str]:
        """Return the columns of a container's schema; those of the same text share one."""
        if self._contained is None or self._contained[0] is not schema:
            self._contained = schema, scalar_paths(Codec(schema))
        return self._contained[1]
