"""From records to what a reader hands out: an alert, a list of alerts, or a table.

Nothing here touches Kafka.  A schema that cannot be had just now cuts a parcel short: what lies behind is
left for later, so that the order holds and nothing is called bad that is not.
"""

from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Message

from nightwire.consumers.alert.alert import ReceivedAlert
from nightwire.consumers.alert.record_decoder import RecordDecoder, known_survey, origin_of
from nightwire.consumers.reader.batch import Batch, Tools
from nightwire.consumers.reader.tables import converter, survey_name, with_metadata
from nightwire.schemas import RegistryAwayError, SchemaError


class AlertUnpacker:
    """Decode records into alerts, whole.

    Args:
        tools: What an open reader decodes with.
    """

    def __init__(self, tools: Tools) -> None:
        self._decoding = RecordDecoder(tools.decoder, survey_name=tools.survey)
        self._fresh = tools.fresh

    def one(self, messages: Sequence[Message]) -> Batch[ReceivedAlert]:
        """Return the alert of the only one of *messages*."""
        found = self.all(messages)
        return Batch(**{**vars(found), "item": found.item[0] if found.item else None})

    def all(self, messages: Sequence[Message]) -> Batch[list[ReceivedAlert]]:
        """Return the alerts of *messages*, in order."""
        found: Batch[list[ReceivedAlert]] = Batch(messages)
        received: list[ReceivedAlert] = []
        for at, message in enumerate(messages):
            try:
                received.append(self._decoding.receive(message))
            except RegistryAwayError as error:
                found.messages, found.left, found.away = messages[:at], messages[at:], error
                break
            except SchemaError as error:
                found.bad.append((message, str(error)))
        keys = [self._key(one) for one in received]
        new = self._fresh.choose(keys)
        found.item, found.count = [received[at] for at in new], len(new)
        found.keys, found.duplicates = [keys[at] for at in new], len(keys) - len(new)
        return found

    def _key(self, received: ReceivedAlert) -> Hashable:
        if self._fresh.dedup == "alert" and (alert_id := received.alert_id) is not None:
            return received.survey, alert_id
        return received.origin if self._fresh.dedup else None


@dataclass(frozen=True)
class _IdColumn:
    """Where a survey keeps its alerts' ids, and the values that are none."""

    path: str
    absent: tuple[Any, ...]

    def names(self, value: Any) -> bool:
        """Whether *value* is an id."""
        return value is not None and value not in self.absent


@dataclass(frozen=True)
class TableUnpacker:
    """Decode chosen fields of records into tables.

    Attributes:
        tools: What an open reader decodes with.
        fields: Dotted paths.
        metadata: Names of `METADATA`.
        to: ``arrow``, ``pandas`` or ``polars``.
    """

    tools: Tools
    fields: Sequence[str]
    metadata: Sequence[str]
    to: str

    def __call__(self, messages: Sequence[Message]) -> Batch[Any]:
        """Return the rows of *messages*, in order."""
        found: Batch[Any] = Batch(messages)
        surveys = self._surveys(messages)
        ids = _ids(surveys)
        extra = [path for path in dict.fromkeys(one.path for one in ids.values()) if path not in self.fields]
        columns = self.tools.decoder.columns([one.value() or b"" for one in messages], [*self.fields, *extra])
        kept = _split_faults(found, messages, columns.faults)
        rows = columns.rows[: bisect_left(columns.rows, kept)]
        keys = self._keys([messages[row] for row in rows], [surveys[row] for row in rows], columns.batch, ids)
        new = self.tools.fresh.choose(keys)
        found.count, found.keys = len(new), [keys[at] for at in new]
        found.duplicates = len(rows) - len(new)
        if new:
            batch = columns.batch.slice(0, len(rows)) if len(new) == len(rows) else columns.batch.take(new)
            found.item = self._table(batch.select(list(self.fields)), [messages[rows[at]] for at in new])
        return found

    def _table(self, batch: Any, messages: Sequence[Message]) -> Any:
        return converter(self.to)(with_metadata(batch, messages, self.metadata, self.tools.survey))

    def _surveys(self, messages: Sequence[Message]) -> list[str | None]:
        if self.tools.fresh.dedup != "alert":
            return [None] * len(messages)
        return [survey_name(one, self.tools.survey) for one in messages]

    def _keys(
        self,
        messages: Sequence[Message],
        surveys: Sequence[str | None],
        batch: Any,
        ids: Mapping[str | None, _IdColumn],
    ) -> Sequence[Hashable]:
        if self.tools.fresh.dedup is None or not messages:
            return [None] * len(messages)
        columns = {one: batch.column(one.path).to_pylist() for one in ids.values()}
        found = [columns[ids[name]][at] if name in ids else None for at, name in enumerate(surveys)]
        return [
            (name, alert_id) if name in ids and ids[name].names(alert_id) else origin_of(message)
            for message, name, alert_id in zip(messages, surveys, found, strict=True)
        ]


def _ids(surveys: Sequence[str | None]) -> dict[str | None, _IdColumn]:
    """Return where the alert's id lies, of each survey that is described."""
    described = {name: known_survey(name) for name in dict.fromkeys(surveys)}
    ids = {name: one.description.ids for name, one in described.items() if one is not None}
    return {name: _IdColumn(one.alert[0], tuple(one.absent)) for name, one in ids.items()}


def _split_faults(found: Batch[Any], messages: Sequence[Message], faults: Mapping[int, Exception]) -> int:
    """Sort *faults* into what is bad and what waits; return how many of *messages* are dealt with."""
    kept = len(messages)
    for at, error in sorted(faults.items()):
        if isinstance(error, RegistryAwayError):
            found.messages, found.left, found.away, kept = messages[:at], messages[at:], error, at
            break
        why = "the record has no value: it deletes its key" if messages[at].value() is None else str(error)
        found.bad.append((messages[at], why))
    return kept
