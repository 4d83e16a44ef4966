"""The writer of one survey's three tables, each row once.

Packets come first: their table is the truth, and its position is the archive's.  `alerts` is
derived from it, and `index` from `alerts`; where a process died between them, or a table was
deleted, it is caught up from these, not from Kafka, which may have deleted the records.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from nightwire.archive.storage import (
    ALERTS,
    INDEX,
    ORIGIN_SCHEMA,
    PACKETS,
    OffsetRanges,
    Packet,
    SchemaStore,
    StorageError,
    Store,
    Table,
    next_offsets,
    packet_rows,
    packets_in,
)
from nightwire.archive.writing.columns import CANONICAL, COMMON, alert_rows, conform, index_rows, scalar_paths
from nightwire.core.kafka import TopicPartition
from nightwire.schemas import AlertDecoder, AlertTable, Codec, RegistryAwayError, SchemaError, wire
from nightwire.schemas import survey as survey_called
from nightwire.schemas.topics import alerts as topic_of

log = logging.getLogger("nightwire.archive")

BATCH_PACKETS = 2000
"""Packets of a commit that catches up."""
BATCH_ROWS = 100_000
"""Rows of `alerts` whose index is caught up by one commit: some 20 MB."""


class Codecs(Protocol):
    """The part of a schema registry that a writer needs."""

    def codec(self, schema_id: int) -> Codec:
        """Return the codec of a schema id."""


@dataclass(frozen=True)
class WriteResult:
    """The outcome of a write.

    Attributes:
        ranges: Each partition's position before and after.
        packets: The packets, in order.
        faults: Why a packet is no alert, by its index in *packets*.
    """

    ranges: OffsetRanges
    packets: Sequence[Packet]
    faults: Mapping[int, str] = field(default_factory=dict)


class SurveyWriter:
    """Writes the packets of one survey.

    Args:
        store: The archive's.
        survey: Its name.
        registry: That of the packets' schemas.
    """

    def __init__(self, store: Store, survey: str, registry: Codecs) -> None:
        self.topic = topic_of(survey)
        self._survey, self._registry = survey_called(survey), registry
        self._schemas = SchemaStore(store)
        self.packets, self.index, self.alerts = (
            Table(store, survey, layout) for layout in (PACKETS, INDEX, ALERTS)
        )
        self._schema_paths: dict[int, Sequence[str]] = {}
        self._container_paths: tuple[dict[str, Any], Sequence[str]] | None = None

    def position(self, number: int) -> int | None:
        """Return the next offset of a partition to archive, after all tables are caught up.

        Raises:
            StorageError: The store does not answer.
        """
        source = (self.topic, number)
        end = self.packets.position(source)
        for table in (self.alerts, self.index):  # in the order of derivation
            begin = table.position(source)
            if end is not None and begin != end:
                self._catch_up(table, source, begin, end)
        return end

    def write(self, packets: Sequence[Packet], positions: Mapping[TopicPartition, int | None]) -> WriteResult:
        """Add *packets* to all tables.

        Args:
            packets: In the order of their offsets, for each partition.
            positions: Each partition's next offset to archive.

        Raises:
            RegistryAwayError: The registry does not answer; nothing was written.
            FencedError: Another process archives the same partition.
            StorageError: There is no room; the missing tables are caught up later.
        """
        ids = {one.schema_id for one in packets if one.schema_id is not None}
        try:
            self._schemas.add(ids, self._registry.codec)
        except OSError as error:
            raise StorageError(f"{self.packets.uri}: the schema was not kept: {error}") from error
        ranges = {one: (positions[one], end) for one, end in next_offsets(packets).items()}
        rows, faults = self._rows(packets)
        self.packets.append_packets(packets, ranges)
        self.index.append(index_rows(rows), ranges)
        self.alerts.append(conform(rows, self.alerts.schema), ranges)
        return WriteResult(ranges, packets, faults)

    def _catch_up(self, table: Table, source: TopicPartition, begin: int | None, end: int) -> None:
        log.warning("%s: %s[%d] is caught up from %s to %d", table.uri, *source, begin, end)
        batches = self._index_batches if table is self.index else self._alert_batches
        for rows, position in batches(source[1], begin or 0, end):
            table.append(rows, {source: (begin, position)})
            begin = position
        if begin != end:
            if table is self.alerts:
                log.error("%s: up to %d what was archived is no longer kept whole", table.uri, end)
            none, _ = self._rows([])
            empty = index_rows(none) if table is self.index else conform(none, table.schema)
            table.append(empty, {source: (begin, end)})

    def _alert_batches(self, number: int, begin: int, end: int) -> Iterator[tuple[Any, int]]:
        """Yield rows of `alerts` from the kept packets, and the offset after them."""
        for packets, alerts, _ in self._kept_packets(number, begin, end):
            yield conform(alerts, self.alerts.schema), packets[-1].offset + 1

    def _index_batches(self, number: int, begin: int, end: int) -> Iterator[tuple[Any, int]]:
        """Yield rows of `index` from those of `alerts`, and the offset after them."""
        for rows in self.alerts.read_range(number, begin, end, BATCH_ROWS, COMMON):
            yield index_rows(rows), rows.column("offset")[-1].as_py() + 1

    def unreadable(self, number: int, begin: int, end: int) -> Iterator[tuple[Packet, str]]:
        """Yield the kept packets of a range of offsets that are no alerts, each with the reason."""
        for packets, _, faults in self._kept_packets(number, begin, end):
            for n, reason in faults.items():
                yield packets[n], reason

    def _kept_packets(
        self, number: int, begin: int, end: int
    ) -> Iterator[tuple[list[Packet], Any, dict[int, str]]]:
        """Yield the kept packets of a range of offsets, with the results of `_rows`."""
        for rows in self.packets.read_range(number, begin, end, BATCH_PACKETS):
            packets = list(packets_in(self.topic, rows))
            yield packets, *self._rows(packets)

    def _rows(self, packets: Sequence[Packet]) -> tuple[Any, dict[int, str]]:
        """Return the rows of the alerts in *packets*, and by index why a packet is no alert."""
        values = [one.value or b"" for one in packets]
        columns = AlertDecoder(self._registry).columns(values, self._column_paths(values), missing_ok=True)
        for error in columns.faults.values():
            if isinstance(error, RegistryAwayError):
                raise error
        origins = packet_rows([packets[n] for n in columns.rows], ORIGIN_SCHEMA)
        rows = alert_rows(columns.batch, self._survey, origins)
        return rows, {n: str(error) for n, error in columns.faults.items()}

    def _column_paths(self, values: Sequence[bytes]) -> list[str]:
        """Return the paths of the fields that are columns, of all schemas of *values*."""
        found = dict.fromkeys(AlertTable.fields(CANONICAL, self._survey))
        for value in values:
            found |= dict.fromkeys(self._paths_of(value))
        return list(found)

    def _paths_of(self, value: bytes) -> Sequence[str]:
        try:
            if wire.is_container(value):
                return self._paths_in_container(next(wire.read_container(value)).schema)
            schema_id, _ = wire.unframe(value)
            if schema_id not in self._schema_paths:
                self._schema_paths[schema_id] = scalar_paths(self._registry.codec(schema_id))
        except RegistryAwayError:
            raise
        except (SchemaError, StopIteration):  # a dead letter, as decoding it says
            return ()
        return self._schema_paths[schema_id]

    def _paths_in_container(self, schema: dict[str, Any]) -> Sequence[str]:
        """Return the column paths of a container's schema; that of the last one is cached."""
        if self._container_paths is None or self._container_paths[0] is not schema:
            self._container_paths = schema, scalar_paths(Codec(schema))
        return self._container_paths[1]
