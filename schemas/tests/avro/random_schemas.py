"""Schemas drawn at random, with every type of Avro 1.11, values that fit them, and evolved readers.

Names are drawn from few, so that fields of different records meet; every named type is defined once
and may be named again, so that records contain themselves.
"""

import datetime as dt
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

Schema = Any
NAMES = ["a", "b", "c", "id", "flux", "mjd"]
PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
NUMBERS = {"int": 32, "long": 64}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LOGICAL = [
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
]


class Drawn:
    """One schema on its way: which names it has given."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.count = 0
        self.named: list[str] = []

    def name(self, kind: str) -> str:
        """Return a new name."""
        self.count += 1
        return f"{kind}{self.count}"

    def record(self, depth: int) -> Schema:
        """Draw a record."""
        name = self.name("r")
        self.named.append(name)
        names = self.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
        return {"type": "record", "name": name, "fields": [self.field(name, depth) for name in names]}

    def field(self, name: str, depth: int) -> dict[str, Any]:
        """Draw a field, sometimes with a default."""
        kind = self.type(depth)
        field = {"name": name, "type": kind}
        first = kind[0] if isinstance(kind, list) else kind
        if isinstance(first, str) and first in DEFAULTS and self.draw(st.booleans()):
            field["default"] = self.draw(DEFAULTS[first])
        return field

    def type(self, depth: int) -> Schema:
        """Draw a type, a union perhaps."""
        if depth <= 0 or self.draw(st.integers(0, 2)):
            return self.single(depth)
        if not self.draw(st.integers(0, 4)):
            return ["null", self.draw(st.sampled_from(self.named))]
        count = self.draw(st.integers(1, 3))
        branches: dict[str, Schema] = {"null": "null"} if self.draw(st.booleans()) else {}
        for _ in range(count):
            branch = self.single(depth - 1)
            branches.setdefault(_kind(branch), branch)
        drawn = _at_peace(list(branches.values()))
        return self.draw(st.permutations(drawn)) if self.named_once(drawn) else drawn

    @staticmethod
    def named_once(branches: list[Schema]) -> bool:
        """Whether the order of branches may change: none defines what another names."""
        return not any(isinstance(branch, dict) and _defines(branch) for branch in branches)

    def single(self, depth: int) -> Schema:
        """Draw a type that is no union."""
        simple = ["primitive", "primitive", "logical", "enum", "fixed"]
        kind = self.draw(
            st.sampled_from(simple if depth <= 0 else [*simple, "array", "map", "record", "again"])
        )
        match kind:
            case "primitive":
                return self.draw(st.sampled_from(PRIMITIVES))
            case "logical":
                return dict(self.draw(st.sampled_from(LOGICAL)))
            case "enum":
                symbols = self.draw(st.lists(st.sampled_from("xyzw"), min_size=1, unique=True))
                return {"type": "enum", "name": self.name("e"), "symbols": symbols}
            case "fixed":
                return {"type": "fixed", "name": self.name("f"), "size": self.draw(st.integers(0, 5))}
            case "array":
                return {"type": "array", "items": self.type(depth - 1)}
            case "map":
                return {"type": "map", "values": self.type(depth - 1)}
            case "again":  # where it can end: in an array, a map or a union with null
                name = self.draw(st.sampled_from(self.named))
                again = [{"type": "array", "items": name}, {"type": "map", "values": name}]
                return self.draw(st.sampled_from(again))
        return self.record(depth - 1)


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> Schema:
    """Draw a schema of a record that holds at most *depth* levels of others."""
    return Drawn(draw).record(depth)


def values(schema: Schema, depth: int = 6) -> st.SearchStrategy[Any]:
    """Values that fit *schema*; recursion ends after *depth* levels."""
    return _Values(schema).of(schema, depth)


class _Values:
    def __init__(self, schema: Schema) -> None:
        self._named: dict[str, Schema] = {}
        _collect(schema, self._named)

    def of(self, schema: Schema, depth: int) -> st.SearchStrategy[Any]:
        if isinstance(schema, list):
            ends = depth <= 0 and "null" in schema
            return st.none() if ends else st.one_of([self.of(branch, depth) for branch in schema])
        if isinstance(schema, str):
            again = st.deferred(lambda: self.of(self._named[schema], depth - 1))
            return SCALARS.get(schema, again)
        if schema.get("logicalType") in LOGICAL_VALUES:
            return LOGICAL_VALUES[schema["logicalType"]]
        return self._compound(schema, depth)

    def _compound(self, schema: Schema, depth: int) -> st.SearchStrategy[Any]:
        most = 3 if depth > 0 else 0
        match schema["type"]:
            case "enum":
                return st.sampled_from(schema["symbols"])
            case "fixed":
                return st.binary(min_size=schema["size"], max_size=schema["size"])
            case "array":
                return st.lists(st.deferred(lambda: self.of(schema["items"], depth - 1)), max_size=most)
            case "map":
                inner = st.deferred(lambda: self.of(schema["values"], depth - 1))
                return st.dictionaries(TEXT, inner, max_size=most)
        return self._record(schema, depth)

    def _record(self, schema: Schema, depth: int) -> st.SearchStrategy[Any]:
        fields = {field["name"]: self.of(field["type"], depth) for field in schema["fields"]}
        required = [field["name"] for field in schema["fields"] if "default" not in field]
        return st.fixed_dictionaries(
            {name: fields[name] for name in required},
            optional={name: fields[name] for name in fields if name not in required},
        )


@st.composite
def pairs(draw: st.DrawFn, depth: int = 2) -> tuple[Schema, Schema]:
    """Draw a writer's schema, and a reader's that can read all of it."""
    writer = draw(schemas(depth))
    return writer, _Evolution(draw).of(writer)


class _Evolution:
    """A reader's changes: fields dropped, fields with a default added, wider numbers, aliases."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self._added = 0

    def of(self, schema: Schema) -> Schema:
        if isinstance(schema, list):
            return [self.of(branch) for branch in schema]
        if isinstance(schema, str):
            return self._wider(schema)
        match schema["type"]:
            case "array":
                return {**schema, "items": self.of(schema["items"])}
            case "map":
                return {**schema, "values": self.of(schema["values"])}
            case "record":
                return self._record(schema)
        return schema

    def _wider(self, kind: str) -> str:
        return self.draw(st.sampled_from([kind, *WIDER.get(kind, [])]))

    def _record(self, schema: Schema) -> Schema:
        fields = [self._field(field) for field in schema["fields"]]
        kept = [field for field in fields if _defines_any(field["type"]) or self.draw(st.integers(0, 4))]
        added = [self._new() for _ in range(self.draw(st.integers(0, 2)))]
        return {**schema, "fields": [*added, *kept]}

    def _field(self, field: dict[str, Any]) -> dict[str, Any]:
        evolved = {**field, "type": self.of(field["type"])}
        if self.draw(st.integers(0, 3)):
            return evolved
        return {**evolved, "name": f"{field['name']}_new", "aliases": [field["name"]]}

    def _new(self) -> dict[str, Any]:
        self._added += 1
        kind = self.draw(st.sampled_from(sorted(DEFAULTS)))
        return {"name": f"added{self._added}", "type": kind, "default": self.draw(DEFAULTS[kind])}


WIDER = {"int": ["long", "float", "double"], "long": ["float", "double"], "float": ["double"]}

SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=8),
    "string": TEXT,
}
DEFAULTS: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": SCALARS["int"],
    "long": SCALARS["long"],
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "string": TEXT,
}
_AWARE = st.datetimes(timezones=st.just(dt.UTC))
LOGICAL_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "timestamp-micros": _AWARE,
    "timestamp-millis": _AWARE.map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)),
    "local-timestamp-micros": st.datetimes(),
    "local-timestamp-millis": st.datetimes().map(lambda time: time.replace(microsecond=0)),
    "date": st.dates(),
    "time-millis": st.times().map(lambda time: time.replace(microsecond=0)),
    "time-micros": st.times(),
    "uuid": st.uuids(),
    "decimal": st.integers(-(10**9) + 1, 10**9 - 1).map(lambda digits: Decimal(digits).scaleb(-3)),
}


def has_column(schema: Schema, named: frozenset[str] = frozenset()) -> bool:
    """Whether *schema* has an Arrow column: no union of several types, nothing recursive."""
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        return len(branches) < 2 and all(has_column(branch, named) for branch in branches)
    if isinstance(schema, str):
        return schema in SCALARS
    if schema["type"] == "record":
        return all(has_column(field["type"], named) for field in schema["fields"])
    return has_column(schema.get("items", schema.get("values", "null")), named)


def _kind(schema: Schema) -> str:
    """Return what may be in a union once."""
    if isinstance(schema, dict):
        return str(schema["name"] if "name" in schema else schema["type"])
    return str(schema)


def _at_peace(branches: list[Schema]) -> list[Schema]:
    """Return the branches without logical types that would take another branch's text."""
    texts = [branch for branch in branches if branch == "string" or _type(branch) == "enum"]
    greedy = [
        branch for branch in branches if isinstance(branch, dict) and branch.get("logicalType") in GREEDY
    ]
    return [branch for branch in branches if branch not in greedy] or texts if texts and greedy else branches


GREEDY = ("uuid", "date")


def _type(schema: Schema) -> Any:
    return schema["type"] if isinstance(schema, dict) else schema


def _defines(schema: Schema) -> bool:
    return "name" in schema or any(_defines_any(schema.get(part)) for part in ("items", "values"))


def _defines_any(schema: Schema) -> bool:
    """Whether a named type is defined in it, which others may name."""
    if isinstance(schema, list):
        return any(_defines_any(branch) for branch in schema)
    return isinstance(schema, dict) and _defines(schema)


def _collect(schema: Schema, named: dict[str, Schema]) -> None:
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, named)
    elif isinstance(schema, dict):
        if "name" in schema:
            named[schema["name"]] = schema
        for part in [
            schema.get("items"),
            schema.get("values"),
            *(f["type"] for f in schema.get("fields", ())),
        ]:
            _collect(part, named)
