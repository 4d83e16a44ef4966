"""The options of the Spark source `nightwire`, checked, and the wanted columns.  Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import pyarrow as pa

from nightwire.schemas import AlertTable, Codec, Column, SchemaError, survey, surveys

ALERTS = "alerts."
MODES = ("FAILFAST", "DROPMALFORMED")
NAMES = ("survey", "topic", "fields", "bootstrap", "registry", "starting", "batch", "tasks", "mode")


@dataclass(frozen=True)
class AlertOptions:
    """The options of the source, checked.

    Attributes:
        survey: Whose alerts.
        topic: Where they lie.
        fields: Canonical names and dotted paths.
        bootstrap: Kafka's address; None: the environment's, else the embedded stack's.
        registry: Of the schema registry; None as above.
        starting: ``earliest``, ``latest``, or a time [ms since 1970, UTC].
        batch: Most records of a batch.
        tasks: Tasks of a batch.
        drop: Whether records that cannot be read are left out; else they are an error.
    """

    survey: str
    topic: str
    fields: tuple[str, ...]
    bootstrap: str | None
    registry: str | None
    starting: str | int
    batch: int
    tasks: int
    drop: bool


def parse_options(given: Mapping[str, str], starting: str) -> AlertOptions:
    """Return the options.

    Args:
        given: By Spark, names in lower case.
        starting: Where to start if nothing is said.

    Raises:
        ValueError: One is unknown or faulty; says which.
    """
    given = {name.lower(): value for name, value in given.items()}
    if unknown := sorted(set(given) - set(NAMES)):
        raise ValueError(f"unknown option {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    topic = given.get("topic") or ALERTS + given.get("survey", "")
    name = given.get("survey") or topic.removeprefix(ALERTS)
    if name not in surveys():
        raise ValueError(f"option survey: {name!r} is none; there are: {', '.join(surveys())}")
    mode = given.get("mode", MODES[0]).upper()
    if mode not in MODES:
        raise ValueError(f"option mode: {mode!r} is none of {', '.join(MODES)}")
    fields = tuple(
        one.strip() for one in given.get("fields", ",".join(DEFAULT_FIELDS)).split(",") if one.strip()
    )
    if not fields:
        raise ValueError("option fields: it names none; give names with commas between them, or leave it out")
    return AlertOptions(
        survey=name,
        topic=topic,
        fields=fields,
        bootstrap=given.get("bootstrap"),
        registry=given.get("registry"),
        starting=_starting(given.get("starting", starting)),
        batch=_count(given, "batch", 2500),
        tasks=_count(given, "tasks", 2),
        drop=mode == "DROPMALFORMED",
    )


def _count(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name, str(default))
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f"option {name}: {text!r} is no whole number above 0")
    return int(text)


def _starting(text: str) -> str | int:
    if text in ("earliest", "latest"):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"option starting: {text!r} is neither earliest nor latest nor a time like 2026-11-21T04:30:00"
        ) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


DEFAULT_FIELDS = (
    "id", "object_id", "visit", "mjd_tai", "band", "ra", "dec", "flux", "flux_error", "snr", "magnitude",
)  # fmt: skip
"""Fields where none are named."""


class WantedColumns:
    """The columns that are wanted of a survey's alerts.

    Args:
        fields: Canonical names and dotted paths.
        name: Of the survey.
        schema: Avro's, as which all alerts are read.

    Raises:
        ValueError: Two fields would have one name as columns.
    """

    def __init__(self, fields: Sequence[str], name: str, schema: Mapping[str, Any]) -> None:
        self.fields = fields
        self.schema = schema
        self.survey = survey(name)
        self.paths = AlertTable.fields(fields, self.survey, schema)
        self.names = [field.replace(".", "_") for field in fields]
        if twice := sorted({one for one in self.names if self.names.count(one) > 1}):
            raise ValueError(f"fields: more than one would be the column {', '.join(twice)}")

    @cached_property
    def arrow(self) -> Any:
        """The Arrow schema of the columns.

        Raises:
            SchemaError: There is no such field; names those there are.
        """
        own = [path for path in self.fields if path in self.paths]
        codec = Codec(self.schema)
        kinds = {one.name: one.type for one in codec.columns([], own).schema}
        table = AlertTable(codec.columns([], self.paths), self.survey)
        types = [kinds[one] if one in kinds else _type(self._made(table, one, codec)) for one in self.fields]
        return pa.schema(list(zip(self.names, types, strict=True)))

    def columns(self, batch: Any) -> list[Any]:
        """Return the columns of alerts whose *paths* are in *batch*, as Arrow arrays."""
        table = AlertTable(batch, self.survey)
        there = frozenset(self.paths)
        return [
            batch.column(one).cast(kind.type) if one in there else _arrow(table[one], kind.type)
            for one, kind in zip(self.fields, self.arrow, strict=True)
        ]

    @staticmethod
    def _made(table: AlertTable, field: str, codec: Codec) -> Column:
        try:
            return table[field]
        except KeyError:
            codec.columns([], [field])  # says what fields there are
            raise SchemaError(f"{field}: the survey has nothing to make it of") from None


KINDS = {"f": pa.float64(), "i": pa.int64(), "b": pa.bool_()}


def _type(column: Column) -> Any:
    """Return the Arrow type of a canonical column; text where NumPy has objects."""
    kind = KINDS.get(column.values.dtype.kind, pa.string())
    return kind if column.offsets is None else pa.list_(kind)


def _arrow(column: Column, kind: Any) -> Any:
    if column.offsets is None:
        return pa.array(column.values, kind, mask=column.null)
    items = pa.array(column.values, kind.value_type, mask=column.null)
    return pa.ListArray.from_arrays(pa.array(column.offsets, pa.int32()), items)
