"""Decoding no more of an alert than its key and its visit: a fraction of the whole."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nightwire.schemas import Codec, Survey


def wanted_fields(survey: Survey, codec: Codec) -> list[str]:
    """Return those paths to an alert's ids and visit that the schema of *codec* has."""
    ids = survey.description.ids
    paths = [*ids.alert, *ids.object, *ids.solar_system_object, *ids.visit]
    return [path for path in dict.fromkeys(paths) if has(codec.schema, path)]


def has(schema: Mapping[str, Any], path: str) -> bool:
    """Whether records of *schema* have the dotted *path*."""
    named = {name: one for one in _records(schema) for name in _names(one)}
    return _leads(schema, path.split("."), named)


def _leads(kind: Any, steps: Sequence[str], named: Mapping[str, Any]) -> bool:
    if not steps:
        return True
    for branch in kind if isinstance(kind, list) else [kind]:
        record = named.get(branch) if isinstance(branch, str) else branch
        if isinstance(record, Mapping) and record.get("type") == "record":
            fields = {field["name"]: field["type"] for field in record["fields"]}
            if steps[0] in fields and _leads(fields[steps[0]], steps[1:], named):
                return True
    return False


def _records(kind: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(kind, list):
        for branch in kind:
            yield from _records(branch)
    elif isinstance(kind, Mapping):
        if kind.get("type") == "record":
            yield kind
            for field in kind["fields"]:
                yield from _records(field["type"])
        for part in ("type", "items", "values"):
            if isinstance(kind.get(part), list | Mapping):
                yield from _records(kind[part])


def _names(record: Mapping[str, Any]) -> list[str]:
    """Return what a later use may call *record*: its name, with its namespace and without."""
    short = str(record["name"]).rpartition(".")[2]
    space = record.get("namespace")
    return [str(record["name"]), short, *([f"{space}.{short}"] if space else [])]
