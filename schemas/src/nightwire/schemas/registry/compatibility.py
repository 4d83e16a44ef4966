"""Whether what was written with one Avro schema can be read with another (Avro 1.12, "Schema Resolution")."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from nightwire.schemas.avro.plans.schema import parse

LEVELS = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
"""Compatibility levels, as Confluent names them."""

PROMOTIONS: Mapping[str, frozenset[str]] = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}
"""Writer's type: the reader's types that it is read as."""

NAMED = ("record", "error", "enum", "fixed")


def incompatibilities(level: str, new: Any, earlier: Sequence[Any]) -> list[str]:
    """Return why *new* may not follow the *earlier* versions (oldest first) at a level; empty if it may.

    BACKWARD: the new one reads what the last one wrote.  FORWARD: the last one reads what the new one
    writes.  FULL: both.  TRANSITIVE: the same for all earlier ones.
    """
    against = earlier if level.endswith("_TRANSITIVE") else earlier[-1:]
    found: list[str] = []
    for old in against:
        if level.startswith(("BACKWARD", "FULL")):
            found += [f"the new schema cannot read the old: {why}" for why in unreadable(new, old)]
        if level.startswith(("FORWARD", "FULL")):
            found += [f"the old schema cannot read the new: {why}" for why in unreadable(old, new)]
    return found


def unreadable(reader: Any, writer: Any) -> list[str]:
    """Return why *reader* cannot read what *writer* wrote, a line per place; empty if it can.

    Raises:
        SchemaError: One of them is not an Avro schema.
    """
    return list(_Comparison(parse(reader), parse(writer)).run())


class _Comparison:
    """One walk through two schemas side by side."""

    def __init__(self, reader: Any, writer: Any) -> None:
        self._reader, self._writer = reader, writer
        self._names: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        _collect(reader, self._names[0])
        _collect(writer, self._names[1])
        self._seen: set[tuple[str, str]] = set()

    def run(self) -> Iterator[str]:
        return self._compare(self._reader, self._writer, "")

    def _compare(self, reader: Any, writer: Any, at: str) -> Iterator[str]:
        if isinstance(reader, str):
            reader = self._names[0].get(reader, reader)
        if isinstance(writer, str):
            writer = self._names[1].get(writer, writer)
        if isinstance(writer, list):
            for branch in writer:
                yield from self._compare(reader, branch, at)
        elif isinstance(reader, list):
            if not any(self._fits(branch, writer) for branch in reader):
                yield f"{at or 'it'}: {_name(writer)} is not among {', '.join(map(_name, reader))}"
        else:
            yield from self._compare_single(reader, writer, at)

    def _fits(self, reader: Any, writer: Any) -> bool:
        before = set(self._seen)
        fits = not any(True for _ in self._compare(reader, writer, ""))
        self._seen = before
        return fits

    def _compare_single(self, reader: Any, writer: Any, at: str) -> Iterator[str]:
        kind, written = _kind(reader), _kind(writer)
        if kind != written:
            if kind not in PROMOTIONS.get(written, ()):
                yield f"{at or 'it'}: {_name(writer)} cannot be read as {_name(reader)}"
            return
        if kind in NAMED and not _same_name(reader, writer):
            yield f"{at or 'it'}: {_name(writer)} is not {_name(reader)}"
            return
        if compare := self._compound().get(kind):
            yield from compare(reader, writer, at)

    def _compound(self) -> Mapping[str, Callable[[Any, Any, str], Iterator[str]]]:
        return {
            "record": self._records,
            "error": self._records,
            "enum": _enums,
            "fixed": _fixed,
            "array": lambda reader, writer, at: self._compare(reader["items"], writer["items"], at),
            "map": lambda reader, writer, at: self._compare(reader["values"], writer["values"], at),
        }

    def _records(self, reader: Any, writer: Any, at: str) -> Iterator[str]:
        pair = (reader["name"], writer["name"])
        if pair in self._seen:
            return
        self._seen.add(pair)
        written = {field["name"]: field for field in writer["fields"]}
        for field in reader["fields"]:
            path = f"{at}.{field['name']}" if at else field["name"]
            names = [field["name"], *field.get("aliases", ())]
            match = next((written[name] for name in names if name in written), None)
            if match is not None:
                yield from self._compare(field["type"], match["type"], path)
            elif "default" not in field:
                yield f"{path}: it was not written, and has no default"


def _enums(reader: Any, writer: Any, at: str) -> Iterator[str]:
    strange = [symbol for symbol in writer["symbols"] if symbol not in reader["symbols"]]
    if strange and "default" not in reader:
        yield f"{at or 'it'}: {', '.join(strange)} not among the symbols, and there is no default"


def _fixed(reader: Any, writer: Any, at: str) -> Iterator[str]:
    if reader["size"] != writer["size"]:
        yield f"{at or 'it'}: {writer['size']} bytes cannot be read as {reader['size']}"


def _same_name(reader: Any, writer: Any) -> bool:
    """Whether the names are equal but for the namespace, or an alias of the reader's says so."""
    names = {name.rsplit(".", 1)[-1] for name in (reader["name"], *reader.get("aliases", ()))}
    return writer["name"].rsplit(".", 1)[-1] in names


def _kind(schema: Any) -> str:
    return str(schema["type"]) if isinstance(schema, dict) else str(schema)


def _name(schema: Any) -> str:
    return str(schema.get("name", schema["type"])) if isinstance(schema, dict) else str(schema)


def _collect(schema: Any, found: dict[str, Any]) -> None:
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, found)
    elif isinstance(schema, dict):
        if schema.get("type") in NAMED:
            found[schema["name"]] = schema
        for field in schema.get("fields", ()):
            _collect(field["type"], found)
        for part in ("items", "values"):
            _collect(schema.get(part), found)
