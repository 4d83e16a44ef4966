"""The columns that a Spark user asked for: their types, and their values out of alerts."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from nightwire.schemas import AlertTable, Codec, Column, SchemaError, survey

USUAL = (
    "id", "object_id", "visit", "mjd_tai", "band", "ra", "dec", "flux", "flux_error", "snr", "magnitude",
)  # fmt: skip
"""Fields where none are named."""


class Wanted:
    """What is wanted of a survey's alerts.

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
