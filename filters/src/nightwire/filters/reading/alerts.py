"""Reading ranges of alerts as columns: of each alert only the fields that are asked for."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, Message

from nightwire.core.presence import ArchiveClient
from nightwire.filters.language.vector import (
    CONTAINED,
    NoColumn,
    foreign_messages,
    has_column,
    schema_id,
)
from nightwire.filters.model.messages import DEAD, Row
from nightwire.filters.model.offsets import OffsetRange
from nightwire.filters.reading.decode import concatenate, decode_columns
from nightwire.filters.reading.fetch import ExpiredCount, fetch
from nightwire.schemas import (
    AlertDecoder,
    AlertTable,
    Codec,
    DecodeError,
    SchemaError,
    SchemaRegistry,
    UnknownSchemaError,
    survey,
)
from nightwire.schemas.survey_model import MATCH_MARK


@dataclass(frozen=True)
class RangeRows:
    """A range and the alerts that were read of it: rows *first* to *end* - 1.

    Attributes:
        range: The range.
        first: First row.
        end: Row after the last.
        read: Records read.
        undecodable: Of these, so many are no alerts.
        expired: Offsets that had expired.
        read_us: Time of reading, and
        decode_us: of decoding. [µs]
    """

    range: OffsetRange
    first: int
    end: int
    read: int
    undecodable: int = 0
    expired: int = 0
    read_us: int = 0
    decode_us: int = 0


@dataclass(frozen=True)
class AlertIdentities:
    """The position, time, visit and id of each of n alerts, by row."""

    topic: Sequence[str]
    partition: Sequence[int]
    offset: Sequence[int]
    timestamp: Sequence[int]
    visit: Sequence[int | None]
    alert: Sequence[str]


class NewSchema(Exception):  # noqa: N818 - nothing is wrong but that filters may read more than was known
    """Alerts have a *schema* that was not met before; *number* is its id, or `CONTAINED`."""

    def __init__(self, number: int, schema: Mapping[str, Any]) -> None:
        self.number, self.schema = number, schema
        super().__init__(f"schema {number} is new")


@dataclass(frozen=True)
class RecordSource:
    """The source of records: a consumer for ranges, a decoder, and the schema registry.

    What Kafka has forgotten the archive has that is the *past*; None for none.
    """

    consumer: Consumer
    decoder: AlertDecoder
    registry: SchemaRegistry
    past: ArchiveClient | None = field(default=None, kw_only=True)

    def records(self, work: OffsetRange, expired: ExpiredCount) -> Iterator[Sequence[Message]]:
        """Yield the records of a range, some at a time; *expired* counts expired offsets.

        Raises:
            KafkaException: Kafka was silent too long.
        """
        return fetch(self.consumer, work, expired, past=self.past)


class MalformedAlert:
    """An alert whose columns could be read, but that is malformed elsewhere: any access fails."""

    def __init__(self, error: DecodeError) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise DecodeError(str(self._error))

    def __getitem__(self, name: str) -> Any:
        raise DecodeError(str(self._error))


@dataclass(frozen=True)
class Alerts:
    """The alerts of some ranges of one survey.

    Attributes:
        survey: Its name.
        table: Their columns.
        batch: The same as Arrow has it.
        identities: Where they lie and what they are.
        ranges: The ranges and their rows.
        undecodable: Rows for what is no alert.
        decoder: What decodes them whole.
        values: The alerts as they lay in Kafka, by row, where that was asked for; and
        schemas: the schemas that these name, by id.
    """

    survey: str
    table: AlertTable
    batch: Any
    identities: AlertIdentities
    ranges: Sequence[RangeRows]
    undecodable: Sequence[Row]
    decoder: AlertDecoder
    values: Sequence[bytes] = ()
    schemas: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    def views(self) -> list[Any]:
        """Return the alerts as filters see them, decoded whole, with what catalogues add."""
        added = {one: read for one, read in self.table.readers.items() if one.startswith(MATCH_MARK)}
        return [
            self._view(value, {name: read(row) for name, read in added.items()})
            for row, value in enumerate(self.values)
        ]

    def _view(self, value: bytes, added: Mapping[str, Any]) -> Any:
        try:
            return survey(self.survey).view({**self.decoder.decode(value).alert, **added})
        except DecodeError as error:
            return MalformedAlert(error)


def with_batch(alerts: Alerts, batch: Any) -> Alerts:
    """Return *alerts* with other columns."""
    if batch is alerts.batch:
        return alerts
    return replace(alerts, batch=batch, table=AlertTable(batch, survey(alerts.survey)))


@dataclass
class _RangeReader:
    """The alerts read so far."""

    source: RecordSource
    survey: str
    fields: Sequence[str]
    whole: bool
    known_schemas: Collection[int]
    batches: list[Any] = field(default_factory=list)
    messages: list[tuple[str, int, int, int]] = field(default_factory=list)
    ranges: list[RangeRows] = field(default_factory=list)
    undecodable: list[Row] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    checked: set[int] = field(default_factory=set)

    def read(self, work: OffsetRange) -> None:
        """Read a range."""
        expired, records, first, before = ExpiredCount(), 0, len(self.messages), len(self.undecodable)
        began, decoding = time.perf_counter(), 0.0
        for messages in self.source.records(work, expired):
            records += len(messages)
            there = time.perf_counter()
            self._add(messages)
            decoding += time.perf_counter() - there
        reading = time.perf_counter() - began - decoding
        undecodable = len(self.undecodable) - before
        counts = (first, len(self.messages), records, undecodable, expired.count)
        self.ranges.append(RangeRows(work, *counts, round(1e6 * reading), round(1e6 * decoding)))

    def _add(self, messages: Sequence[Message]) -> None:
        values = [message.value() or b"" for message in messages]
        self._check(values)
        found = decode_columns(self.source.decoder, values, self.fields)
        foreign = foreign_messages(found.batch, found.rows, self.survey)
        errors = {**found.faults, **foreign}
        reasons = {at: f"{type(error).__name__}: {error}" for at, error in errors.items()}
        reasons |= {at: "the record has no value" for at in reasons if messages[at].value() is None}
        self.undecodable += [undecodable_row(messages[at], reason) for at, reason in sorted(reasons.items())]
        rows = [row for row, at in enumerate(found.rows) if at not in foreign]
        self.batches.append(found.batch.take(pa.array(rows, pa.int64())) if foreign else found.batch)
        kept = [found.rows[row] for row in rows]
        self.messages += [(*_position(messages[at]), messages[at].timestamp()[1]) for at in kept]
        if self.whole:
            self.values += [values[at] for at in kept]

    def _check(self, values: Iterable[bytes]) -> None:
        """Raise where a schema was not met before, or has a field that no column can hold."""
        for value in values:
            number = schema_id(value)
            if number is not None and number not in self.checked:
                self.checked.add(number)
                self._check_schema(number, value)

    def _check_schema(self, number: int, value: bytes) -> None:
        try:
            contained = number == CONTAINED
            codec = None if contained else self.source.registry.codec(number)
            schema = self.source.decoder.decode(value).schema if codec is None else codec.schema
        except (UnknownSchemaError, SchemaError, DecodeError):
            return  # decoding says so, of each message
        if number not in self.known_schemas:
            raise NewSchema(number, schema)
        codec = codec or Codec(schema)
        if unfit := [path for path in self.fields if codec.has(path) and not has_column(codec, path)]:
            raise NoColumn(unfit)

    def alerts(self) -> Alerts:
        """Return all that was read."""
        batch = concatenate(self.batches, self.fields)
        table = AlertTable(batch, survey(self.survey))
        topic, part, offset, when = zip(*self.messages, strict=True) if self.messages else ((),) * 4
        ids = [str(one) for one in table["id"].items]
        numbers = {one for value in self.values if (one := schema_id(value)) is not None}
        schemas = {number: self.source.registry.codec(number).schema for number in numbers - {CONTAINED}}
        known = AlertIdentities(topic, part, offset, when, table["visit"].items, ids)
        return Alerts(
            self.survey,
            table,
            batch,
            known,
            self.ranges,
            self.undecodable,
            self.source.decoder,
            self.values,
            schemas,
        )


def read_alerts(
    source: RecordSource,
    work: Iterable[OffsetRange],
    survey: str,
    fields: Sequence[str],
    *,
    whole: bool,
    known_schemas: Collection[int],
) -> Alerts:
    """Return the alerts of the ranges *work*, all of one survey.

    Args:
        source: Where they come from.
        work: The ranges.
        survey: Whose alerts these are.
        fields: Dotted paths of what is read, those of the ids and the visit among them.
        whole: Whether the bytes are wanted, too.
        known_schemas: Ids of the schemas that were met before.

    Raises:
        NewSchema: An alert has another schema.
        NoColumn: Some of *fields* cannot be read so.
        KafkaException: Kafka was silent too long.
        RegistryAwayError: The registry was.
    """
    reader = _RangeReader(source, survey, fields, whole, known_schemas)
    for one in work:
        reader.read(one)
    return reader.alerts()


def undecodable_row(message: Message, reason: str) -> Row:
    """Return the row of a record that is no alert."""
    return (DEAD, *_position(message), *[None] * 5, reason, None)


def _position(message: Message) -> tuple[str, int, int]:
    return str(message.topic()), message.partition() or 0, message.offset() or 0
