"""From records to what a reader hands out: an alert, a list of alerts, or a table.

Nothing here touches Kafka.  A schema that cannot be had just now cuts a batch short: the records
behind it are left for later, so that the order holds and no record is called bad that is not.
"""

from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Message

from nightwire.consumers.alert import ReceivedAlert, RecordDecoder, known_survey, origin_of
from nightwire.consumers.reader.batch import Batch, DecodingContext
from nightwire.consumers.reader.tables import converter, survey_name, with_metadata
from nightwire.schemas import RegistryAwayError, SchemaError


class AlertUnpacker:
    """Decodes records into alerts, whole.

    Args:
        context: What an open reader decodes with.
    """

    def __init__(self, context: DecodingContext) -> None:
        self._decoder = RecordDecoder(context.decoder, survey_name=context.survey, stamps=context.stamps)
        self._deduplicator = context.deduplicator

    def one(self, messages: Sequence[Message]) -> Batch[ReceivedAlert]:
        """Return the alert of the only one of *messages*."""
        batch = self.all(messages)
        return Batch(**{**vars(batch), "item": batch.item[0] if batch.item else None})

    def all(self, messages: Sequence[Message]) -> Batch[list[ReceivedAlert]]:
        """Return the alerts of *messages*, in order."""
        batch: Batch[list[ReceivedAlert]] = Batch(messages)
        alerts: list[ReceivedAlert] = []
        for at, message in enumerate(messages):
            try:
                alerts.append(self._decoder.decode(message))
            except RegistryAwayError as error:
                batch.cut(at, error)
                break
            except SchemaError as error:
                batch.bad.append((message, str(error)))
        keys = [self._key(alert) for alert in alerts]
        new = self._deduplicator.select_new(keys)
        batch.item, batch.count = [alerts[at] for at in new], len(new)
        batch.keys, batch.duplicates = [keys[at] for at in new], len(keys) - len(new)
        return batch

    def _key(self, alert: ReceivedAlert) -> Hashable:
        if self._deduplicator.dedup == "alert" and (alert_id := alert.alert_id) is not None:
            return alert.survey, alert_id
        return alert.origin if self._deduplicator.dedup else None


@dataclass(frozen=True)
class _IdColumn:
    """The field that holds a survey's alert ids, and the values that are none."""

    path: str
    absent: tuple[Any, ...]

    def is_id(self, value: Any) -> bool:
        """Whether *value* is an id."""
        return value is not None and value not in self.absent


@dataclass(frozen=True)
class TableUnpacker:
    """Decodes chosen fields of records into tables.

    Attributes:
        context: What an open reader decodes with.
        fields: Dotted paths.
        metadata: Names of `METADATA`.
        to: ``arrow``, ``pandas`` or ``polars``.
    """

    context: DecodingContext
    fields: Sequence[str]
    metadata: Sequence[str]
    to: str

    def __call__(self, messages: Sequence[Message]) -> Batch[Any]:
        """Return the rows of *messages*, in order."""
        batch: Batch[Any] = Batch(messages)
        surveys = self._surveys(messages)
        ids = _id_columns(surveys)
        extra = [path for path in dict.fromkeys(one.path for one in ids.values()) if path not in self.fields]
        values = [one.value() or b"" for one in messages]
        columns = self.context.decoder.columns(values, [*self.fields, *extra])
        _split_faults(batch, columns.faults)
        rows = columns.rows[: bisect_left(columns.rows, len(batch.messages))]
        keys = self._keys([messages[row] for row in rows], [surveys[row] for row in rows], columns.batch, ids)
        new = self.context.deduplicator.select_new(keys)
        batch.count, batch.keys = len(new), [keys[at] for at in new]
        batch.duplicates = len(rows) - len(new)
        if new:
            all_new = len(new) == len(rows)
            kept = columns.batch.slice(0, len(rows)) if all_new else columns.batch.take(new)
            batch.item = self._table(kept.select(list(self.fields)), [messages[rows[at]] for at in new])
        return batch

    def empty(self) -> Batch[Any]:
        """Return a table without rows, for where no alert came."""
        return Batch((), self._table(self.context.no_rows(self.fields).batch, ()))

    def _table(self, columns: Any, messages: Sequence[Message]) -> Any:
        return converter(self.to)(with_metadata(columns, messages, self.metadata, self.context.survey))

    def _surveys(self, messages: Sequence[Message]) -> list[str | None]:
        if self.context.deduplicator.dedup != "alert":
            return [None] * len(messages)
        return [survey_name(one, self.context.survey) for one in messages]

    def _keys(
        self,
        messages: Sequence[Message],
        surveys: Sequence[str | None],
        columns: Any,
        ids: Mapping[str | None, _IdColumn],
    ) -> Sequence[Hashable]:
        if self.context.deduplicator.dedup is None or not messages:
            return [None] * len(messages)
        values = {one: columns.column(one.path).to_pylist() for one in ids.values()}
        alert_ids = [values[ids[name]][at] if name in ids else None for at, name in enumerate(surveys)]
        return [
            (name, alert_id) if name in ids and ids[name].is_id(alert_id) else origin_of(message)
            for message, name, alert_id in zip(messages, surveys, alert_ids, strict=True)
        ]


def _id_columns(surveys: Sequence[str | None]) -> dict[str | None, _IdColumn]:
    """Return where the alert's id lies, of each survey that is described."""
    described = {name: known_survey(name) for name in dict.fromkeys(surveys)}
    ids = {name: one.description.ids for name, one in described.items() if one is not None}
    return {name: _IdColumn(one.alert[0], tuple(one.absent)) for name, one in ids.items()}


def _split_faults(batch: Batch[Any], faults: Mapping[int, Exception]) -> None:
    """Sort the records that could not be read into those that are bad and those that wait."""
    messages = batch.messages
    for at, error in sorted(faults.items()):
        if isinstance(error, RegistryAwayError):
            batch.cut(at, error)
            break
        why = "the record has no value: it deletes its key" if messages[at].value() is None else str(error)
        batch.bad.append((messages[at], why))
