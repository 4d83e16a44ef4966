"""The alerts to encode and decode: real ones where they are, else simulated ones."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nightwire.benchmarks.environment.alert_pool import make_pool
from nightwire.schemas import Codec, sim_alert_schema
from nightwire.schemas.wire import read_container

Schema = dict[str, Any]

REAL = "alerts/lsst/rubin_real_v11_0.avro"
SIMULATED = 32
HISTORIES = ("prvDiaSources", "prvDiaForcedSources")


@dataclass(frozen=True)
class Alerts:
    """Alerts of one schema.

    Attributes:
        what: Where they are from, for people.
        schema: Theirs.
        bodies: Avro bodies.
        values: The same, decoded.
    """

    what: str
    schema: Schema
    bodies: Sequence[bytes]
    values: Sequence[Mapping[str, Any]]


def find_alerts(data: Path | None) -> Alerts:
    """Return the real Rubin alerts under *data*, else simulated ones."""
    path = None if data is None else data / REAL
    if path is not None and path.exists():
        records = list(read_container(path.read_bytes()))
        what = f"{len(records)} real Rubin alerts"
        return Alerts(what, records[0].schema, [one.body for one in records], [one.record for one in records])
    schema, pool = sim_alert_schema(), make_pool(SIMULATED)
    codec = Codec(schema)
    return Alerts(f"{SIMULATED} simulated alerts", schema, [codec.encode(alert) for alert in pool], pool)


def other_version(schema: Mapping[str, Any]) -> Schema:
    """Return *schema* as a client might want it: renamed, widened, new and required fields."""
    wanted: Schema = copy.deepcopy(dict(schema))
    source = _record(wanted, "diaSource")
    for field in source["fields"]:
        if field["name"] == "psfFlux":
            field |= {"name": "flux", "aliases": ["psfFlux"]}
        elif field["type"] == ["null", "float"]:
            field |= {"type": "double"}
            field.pop("default", None)
    source["fields"].append({"name": "note", "type": ["null", "string"], "default": None})
    return wanted


def _record(schema: Any, name: str) -> Schema:
    """Return the record *name* (its last part) in *schema*."""
    for part in _records(schema):
        if part["name"].split(".")[-1] == name:
            return part
    raise LookupError(f"the schema has no record {name}")


def _records(schema: Any) -> list[Schema]:
    if isinstance(schema, list):
        return [found for branch in schema for found in _records(branch)]
    if not isinstance(schema, dict):
        return []
    inner = [field["type"] for field in schema.get("fields", ())]
    inner += [
        schema[part] for part in ("items", "values", "type") if isinstance(schema.get(part), dict | list)
    ]
    own = [schema] if schema.get("type") == "record" else []
    return own + [found for part in inner for found in _records(part)]
