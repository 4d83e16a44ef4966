"""Random alerts of every survey: schemas of what its description names, values of all kinds."""

import math
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from nightwire.schemas import Codec, survey, wire

Schema = dict[str, Any]
NOTHING: list[Any] = [None, math.nan, math.inf, -math.inf, -999.0, -99999.0, 0.0]
NUMBERS = st.one_of(st.sampled_from(NOTHING), st.floats(-400, 400), st.floats(57_000, 62_000), st.floats())
IDS = st.one_of(st.none(), st.just(0), st.integers(-(2**63), 2**63 - 1), st.integers(1, 9))
TEXTS = st.one_of(st.none(), st.sampled_from(["", "g", "r", "Y", "t", "f", "0", "1", "ZTF20aafsnpp"]))
BANDS = st.one_of(st.none(), st.integers(0, 4))
KINDS: Mapping[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "number": ("double", NUMBERS),
    "id": ("long", IDS),
    "text": ("string", TEXTS),
    "band": ("int", BANDS),
}


def kinds_of(name: str) -> dict[str, str]:
    """Return the kind of each field that a survey's description names, by its dotted path."""
    described = survey(name).description
    ids = described.ids
    kinds = dict.fromkeys([*ids.alert, *ids.solar_system_object, *ids.visit], "id")
    kinds |= dict.fromkeys(ids.object, "text" if "" in ids.absent else "id")
    for where in [described.source, *described.history]:
        kinds |= dict.fromkeys(where.paths, "number")
        kinds[f"{where.path}.{where.band}"] = "band" if "1" in where.bands else "text"
        kinds |= {f"{where.path}.{where.sign}": "text"} if where.sign else {}
    return kinds


def history_paths(name: str) -> list[str]:
    """Return where a survey keeps its histories."""
    return [one.path for one in survey(name).description.history]


def schema_of(name: str, paths: list[str]) -> Schema:
    """Return a schema of an alert that has these fields, all of which may be null."""
    kinds, records = kinds_of(name), history_paths(name)
    inner: dict[str, list[Schema]] = {}
    for path in paths:
        record, _, field = path.rpartition(".")
        inner.setdefault(record, []).append({"name": field, "type": ["null", KINDS[kinds[path]][0]]})
    fields = inner.pop("", [])
    for record, parts in inner.items():
        kind: Any = {"type": "record", "name": record, "fields": parts}
        if record in records:
            kind = {"type": "array", "items": kind}
        fields.append({"name": record, "type": ["null", kind]})
    return {"type": "record", "name": "alert", "fields": fields}


@st.composite
def alerts(draw: st.DrawFn, name: str, schema: Schema) -> dict[str, Any]:
    """Draw an alert of a schema from `schema_of`."""
    kinds = kinds_of(name)

    def record(fields: list[Schema], path: str) -> dict[str, Any]:
        return {field["name"]: value(field, f"{path}{field['name']}") for field in fields}

    def value(field: Schema, path: str) -> Any:
        kind = field["type"][1]
        if path in kinds:
            return draw(KINDS[kinds[path]][1])
        if not draw(st.integers(0, 5)):
            return None
        if kind["type"] == "record":
            return record(kind["fields"], f"{path}.")
        return [record(kind["items"]["fields"], f"{path}.") for _ in range(draw(st.integers(0, 4)))]

    return record(schema["fields"], "")


class Registry:
    """Schemas by id."""

    def __init__(self, schemas: list[Schema]) -> None:
        self._codecs = [Codec(schema) for schema in schemas]

    def codec(self, schema_id: int) -> Codec:
        """Return the codec of a schema."""
        return self._codecs[schema_id]


@st.composite
def batches(draw: st.DrawFn, name: str) -> tuple[Registry, list[bytes]]:
    """Draw messages of two versions of a survey's schema, each with fields of its own."""
    paths = list(kinds_of(name))
    lacking = draw(st.tuples(st.sets(st.sampled_from(paths)), st.sets(st.sampled_from(paths), max_size=4)))
    schemas = [schema_of(name, [path for path in paths if path not in one]) for one in lacking]
    schemas = [schema if schema["fields"] else schema_of(name, paths) for schema in schemas]
    registry = Registry(schemas)
    chosen = draw(st.lists(st.integers(0, 1), max_size=6))
    bodies = [registry.codec(one).encode(draw(alerts(name, schemas[one]))) for one in chosen]
    return registry, [wire.frame(one, body) for one, body in zip(chosen, bodies, strict=True)]
