"""Which fields a filter that is code may read, told by the names that its source mentions.  Pure.

A name can only be asked for where the source holds it, as an attribute or as text, unless the source makes
names as it runs or takes a record as a whole; then it may read anything.  It is a guess all the same: who
asks for something that was not read is told so, and is judged anew on whole alerts.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Steps = tuple[str, ...]

UNREAD = "among the fields that are read here"
"""What the error says of a field that was not read."""

WHOLE = frozenset(
    {
        *("items", "keys", "values", "dict", "vars", "dir", "asdict", "pop", "popitem", "copy", "deepcopy"),
        *("DataFrame", "Series", "Table", "QTable", "from_records", "from_dict", "json_normalize"),
        *(
            "format",
            "join",
            "replace",
            "lower",
            "upper",
            "title",
            "capitalize",
            "removeprefix",
            "removesuffix",
        ),
    }
)
"""Who mentions one of these may read anything: it takes records whole, or makes text."""

CANONICAL = (
    *("id", "object_id", "solar_system_id", "visit", "ra", "dec", "galactic_longitude", "galactic_latitude"),
    *("healpix", "mjd_tai", "band", "flux", "flux_error", "snr", "magnitude"),
    *("light_curve", "colour", "magnitudes", "healpix_at", "stamps"),
)
"""Names of an alert's canonical values; those of its history come beside."""

MEASURED = ("mjd_tai", "band", "flux", "flux_error", "snr", "magnitude", "ra", "dec")


@lru_cache(maxsize=4096)
def mentions(source: str, entry: str) -> frozenset[str] | None:
    """Return the names that *source* mentions; None where its function *entry* may read anything."""
    tree = ast.parse(source)
    names: set[str] = set()
    for node in ast.walk(tree):
        if _makes_names(node):
            return None
        names.update(_names(node))
    return None if names & WHOLE or _takes_whole(tree, _parameter(tree, entry)) else frozenset(names)


def canonical(mentioned: frozenset[str]) -> list[str]:
    """Return what of the canonical values is mentioned, as `AlertTable.fields` names it."""
    found = [name for name in CANONICAL if name in mentioned]
    if "history" in mentioned:
        found += [f"history.{name}" for name in MEASURED if name in mentioned or name == "mjd_tai"]
    return found


@dataclass(frozen=True)
class Fields:
    """The steps to the fields of a schema: all but records, and those that tell that a record is there."""

    leaves: Sequence[Steps]
    telling: Sequence[Steps]

    def mentioned(self, names: frozenset[str]) -> Iterator[str]:
        """Yield the dotted paths of what a source may read that mentions *names*."""
        yield from (".".join(steps) for steps in self.leaves if names.issuperset(steps))
        yield from (".".join(steps) for steps in self.telling if names.issuperset(steps[:-1]))


def fields(schema: Any) -> Fields:
    """Return the fields of an Avro schema."""
    found = list(_walk(schema, {}, (), nullable=False))
    records: dict[Steps, list[tuple[Steps, bool]]] = {}
    for steps, nullable in found:
        for depth in range(1, len(steps)):
            records.setdefault(steps[:depth], []).append((steps, nullable))
    telling = [one for parent, inside in records.items() for one in _telling(parent, inside)]
    return Fields([steps for steps, _ in found], telling)


def _telling(parent: Steps, inside: Sequence[tuple[Steps, bool]]) -> list[Steps]:
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


DEEPEST = 6
"""Records within records that are looked into: no survey has more, and one that holds itself has no end."""


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            yield name
        case ast.Constant(value=str(text)):
            yield text
            yield from text.replace(".", " ").replace(",", " ").split()


def _makes_names(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr():
            return True
        case ast.BinOp(op=ast.Add() | ast.Mod(), left=left, right=right):
            return any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in (left, right))
        case ast.keyword(arg=None):
            return True
    return False


def _parameter(tree: ast.Module, entry: str) -> str | None:
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == entry)
    return next((one.args.args[0].arg for one in functions if one.args.args), None)


def _takes_whole(tree: ast.Module, alert: str | None) -> bool:
    """Return whether somebody runs through the alert's own fields."""
    return any(
        isinstance(node, ast.For | ast.comprehension)
        and isinstance(node.iter, ast.Name)
        and node.iter.id == alert
        for node in ast.walk(tree)
    )
