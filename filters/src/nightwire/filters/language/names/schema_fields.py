"""The fields of an Avro schema, as paths.  Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Steps = tuple[str, ...]

DEEPEST = 6
"""Depth of records within records: no survey has more, and one that holds itself has no end."""


@dataclass(frozen=True)
class SchemaFields:
    """The paths of a schema's fields, as steps.

    *leaves* are all but records; *presence* are fields that tell whether their record is there.
    """

    leaves: Sequence[Steps]
    presence: Sequence[Steps]

    def mentioned(self, names: frozenset[str]) -> Iterator[str]:
        """Yield the dotted paths of the fields that a source may read that mentions *names*."""
        yield from (".".join(steps) for steps in self.leaves if names.issuperset(steps))
        yield from (".".join(steps) for steps in self.presence if names.issuperset(steps[:-1]))


def schema_fields(schema: Any) -> SchemaFields:
    """Return the fields of an Avro schema."""
    found = list(_walk(schema, {}, (), nullable=False))
    records: dict[Steps, list[tuple[Steps, bool]]] = {}
    for steps, nullable in found:
        for depth in range(1, len(steps)):
            records.setdefault(steps[:depth], []).append((steps, nullable))
    presence = [one for parent, inside in records.items() for one in _presence_fields(parent, inside)]
    return SchemaFields([steps for steps, _ in found], presence)


def _presence_fields(parent: Steps, inside: Sequence[tuple[Steps, bool]]) -> list[Steps]:
    """Return the first field of a record that is never null, else all its fields."""
    own = [(steps, nullable) for steps, nullable in inside if len(steps) == len(parent) + 1]
    sure = [steps for steps, nullable in own if not nullable]
    return sure[:1] or [steps for steps, _ in own]


def _walk(
    schema: Any, named: dict[str, Any], steps: Steps, *, nullable: bool
) -> Iterator[tuple[Steps, bool]]:
    if isinstance(schema, list):
        nullable = "null" in schema
        for branch in schema:
            if branch != "null":
                yield from _walk(branch, named, steps, nullable=nullable)
    elif isinstance(schema, str):
        known = named.get(schema.rpartition(".")[2])
        yield from ((steps, nullable),) if known is None else _walk(known, named, steps, nullable=nullable)
    elif schema["type"] == "record":
        yield from _record(schema, named, steps)
    elif schema["type"] == "array":
        yield from _walk(schema["items"], named, steps, nullable=nullable)
    elif isinstance(schema["type"], dict | list):
        yield from _walk(schema["type"], named, steps, nullable=nullable)
    else:
        yield steps, nullable


def _record(schema: Mapping[str, Any], named: dict[str, Any], steps: Steps) -> Iterator[tuple[Steps, bool]]:
    if len(steps) > DEEPEST:
        return
    named[str(schema["name"]).rpartition(".")[2]] = schema
    for one in schema["fields"]:
        yield from _walk(one["type"], named, (*steps, one["name"]), nullable=False)
