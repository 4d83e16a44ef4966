"""Schema resolution: how data of one schema is read as another, by Avro's rules and ours.

Avro 1.11, "Schema Resolution".  Added, and never silently wrong: a null where the reader wants a
float or a double is NaN; a field that was not written and has no default is null, or NaN, where the
reader can hold that; a survey's changes give a field another name or unit.  What a reader cannot
hold is refused value by value, and a pair of which no alert could be read is refused at once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nightwire.schemas.avro.plans.defaults import default_value, logical_reader, mark_logical
from nightwire.schemas.avro.plans.field_changes import Change, Conversion, Renames
from nightwire.schemas.avro.plans.program import Converter, Draft, Program
from nightwire.schemas.avro.plans.schema import (
    Types,
    kind,
    logical_name,
    read_names,
    readable_fields,
    short_name,
    type_name,
)
from nightwire.schemas.errors import SchemaError

PROMOTIONS: Mapping[str, frozenset[str]] = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}
REALS = ("float", "double")
NUMBERS = ("int", "long", *REALS)
INSTANTS = frozenset({"long-timestamp-millis", "long-timestamp-micros"})


@dataclass(frozen=True)
class Mismatch:
    """Why a field cannot be read: its dotted path, and the reason."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path or 'the record'}: {self.why}"


@dataclass(frozen=True)
class Resolution:
    """What came of reading one schema as another.

    Attributes:
        plan: How to read it; refuses at once where there are mismatches.
        mismatches: Why no alert can be read; empty where they can.
        conditions: What is refused where it occurs: alerts without it can be read.
    """

    plan: Program
    mismatches: Sequence[Mismatch] = ()
    conditions: Sequence[Mismatch] = ()


def own_plan(parsed: Any) -> Program:
    """Return the plan that reads what a schema wrote as the same schema."""
    own = _Own(Draft(), Types(parsed))
    return own.draft.program(own.node(parsed))


def resolve(writer: Any, reader: Any, changes: Sequence[Change] = (), *, strict: bool = False) -> Resolution:
    """Return how what *writer* wrote is read as *reader*; both parsed by fastavro.

    Args:
        writer: The schema that was written with.
        reader: The schema that is read as.
        changes: What the survey changed between the two.
        strict: Whether to leave out what nightwire adds to Avro, so that a value which only some
            readers of Avro could take is a mismatch.

    Raises:
        SchemaError: A default is no value of its field's type.
    """
    pair = _Pair(Types(writer), Types(reader), changes, strict=strict)
    root = pair.node(writer, reader, "")
    conditions = list(dict.fromkeys(pair.conditions))
    return Resolution(pair.draft.program(root), list(dict.fromkeys(pair.mismatches)), conditions)


class _Own:
    """Nodes of types that are read as they were written, or with *skip* passed over."""

    def __init__(self, draft: Draft, types: Types, *, skip: bool = False) -> None:
        self.draft = draft
        self._types = types
        self._skip = skip
        self._records: dict[str, int] = {}

    def node(self, schema: Any) -> int:
        schema = self._types.definition(schema)
        op = kind(schema)
        if op == "record" and schema["name"] in self._records:
            return self._records[schema["name"]]
        at = self.draft.add(op)
        if op == "record":
            self._records[schema["name"]] = at
        if not self._skip:
            mark_logical(self.draft, at, schema, logical_reader(schema))
        self.draft.nodes[at].update(self._more(op, schema))
        return at

    def _more(self, op: str, schema: Any) -> Mapping[str, Any]:
        match op:
            case "fixed":
                return {"size": schema["size"]}
            case "enum" if self._skip:
                return {"op": "int"}
            case "enum":
                return {"symbols": list(schema["symbols"])}
            case "array":
                return {"items": self.node(schema["items"])}
            case "map":
                return {"values": self.node(schema["values"])}
            case "union":
                return {"branches": [self.node(branch) for branch in schema]}
            case "record":
                fields = [
                    {"name": None if self._skip else name, "type": self.node(one["type"])}
                    for one, name in zip(schema["fields"], read_names(schema), strict=True)
                ]
                return {"name": schema["name"], "fields": fields}
        return {}


@dataclass
class _Record:
    """A pair of records that is resolved already: its node, and its mismatches."""

    at: int
    mismatches: list[Mismatch] = field(default_factory=list)


class _Pair:
    """Resolves two schemas into the nodes of a plan."""

    def __init__(self, writer: Types, reader: Types, changes: Sequence[Change], *, strict: bool) -> None:
        self.draft = Draft()
        self.mismatches: list[Mismatch] = []
        self.conditions: list[Mismatch] = []
        self._writer = writer
        self._reader = reader
        self._renames = Renames(changes)
        self._strict = strict
        self._skipped = _Own(self.draft, writer, skip=True)
        self._records: dict[tuple[str, str], _Record] = {}

    def node(self, writer: Any, reader: Any, path: str, null: Any = None) -> int:
        """Add the nodes that read *writer* as *reader*; what cannot be is a mismatch, and refused.

        *null* is what a null means to a reader that cannot hold one.
        """
        writer, reader = self._writer.definition(writer), self._reader.definition(reader)
        if kind(writer) == "union":
            return self._from_union(writer, reader, path, null)
        if kind(reader) == "union":
            return self._to_union(writer, reader, path)
        if kind(writer) == "null" and kind(reader) != "null":
            return self._from_null(reader, path, null)
        if why := _mismatch(writer, reader):
            return self._refuse(writer, path, why)
        return self._same_kind(writer, reader, path)

    def _from_null(self, reader: Any, path: str, null: Any) -> int:
        if null is not None:
            value = default_value(self._reader, reader, null)
            return self.draft.add("constant", constant=self.draft.constant(value))
        if kind(reader) in REALS and not self._strict:
            return self.draft.add("nan")
        return self._refuse("null", path, f"a null is no {type_name(reader)}")

    def _refuse(self, writer: Any, path: str, why: str) -> int:
        self.mismatches.append(Mismatch(path, why))
        return self.draft.add("refuse", why=why, of=self._skipped.node(writer))

    def _from_union(self, writer: Any, reader: Any, path: str, null: Any) -> int:
        """Add a union; a branch that cannot be read is refused where it occurs."""
        at = self.draft.add("union")
        branches, mismatches, before = [], [], len(self.mismatches)
        for branch in writer:
            branches.append(self.node(branch, reader, path, null))
            mismatches.append(self.mismatches[before:])
            del self.mismatches[before:]
        self.draft.nodes[at]["branches"] = branches
        refused = [mismatch for found in mismatches for mismatch in found]
        (self.mismatches if self._strict or all(mismatches) else self.conditions).extend(refused)
        self._make_refusals(writer, branches, mismatches)
        return at

    def _make_refusals(
        self, writer: Any, branches: list[int], mismatches: Sequence[Sequence[Mismatch]]
    ) -> None:
        for number, found in enumerate(mismatches):
            if found and self.draft.nodes[branches[number]]["op"] != "refuse":
                why = "; ".join(str(mismatch) for mismatch in found)
                of = self._skipped.node(writer[number])
                branches[number] = self.draft.add("refuse", why=why, of=of)

    def _to_union(self, writer: Any, reader: Any, path: str) -> int:
        matching = [one for one in self._reader.branches(reader) if _mismatch(writer, one) is None]
        # a timestamp is rather a timestamp than the double before it
        if logical_name(writer) is not None:
            matching.sort(key=lambda one: logical_name(one) != logical_name(writer))
        before = len(self.mismatches)
        for branch in matching:
            at = self._same_kind(writer, branch, path)
            # the mismatches of an only one say most
            if len(self.mismatches) == before or len(matching) == 1:
                return at
            del self.mismatches[before:]
        wanted = " or ".join(type_name(branch) for branch in self._reader.branches(reader))
        return self._refuse(writer, path, f"a {type_name(writer)} is no {wanted}")

    def _same_kind(self, writer: Any, reader: Any, path: str) -> int:
        match kind(writer):
            case "record":
                return self._record(writer, reader, path)
            case "array":
                return self.draft.add("array", items=self.node(writer["items"], reader["items"], path))
            case "map":
                return self.draft.add("map", values=self.node(writer["values"], reader["values"], path))
            case "enum":
                return self._enum(writer, reader, path)
        return self._simple(writer, reader)

    def _simple(self, writer: Any, reader: Any) -> int:
        more: dict[str, Any] = {}
        if kind(writer) == "fixed":
            more["size"] = writer["size"]
        elif kind(writer) != kind(reader):
            more["as"] = kind(reader)
        at = self.draft.add(kind(writer), **more)
        names = {logical_name(writer), logical_name(reader)}
        logical = writer if len(names) == 1 or names == INSTANTS else reader
        mark_logical(self.draft, at, logical, logical_reader(logical))
        return at

    def _enum(self, writer: Any, reader: Any, path: str) -> int:
        strange = [one for one in writer["symbols"] if one not in reader["symbols"]]
        if self._strict and strange and "default" not in reader:
            why = f"{', '.join(strange)} not among the symbols, and there is no default"
            self.mismatches.append(Mismatch(path, why))
        symbols = [one if one in reader["symbols"] else reader.get("default") for one in writer["symbols"]]
        return self.draft.add("enum", symbols=symbols, writer_symbols=list(writer["symbols"]))

    def _record(self, writer: Any, reader: Any, path: str) -> int:
        known = self._records.get((writer["name"], reader["name"]))
        if known is not None:
            self.mismatches += known.mismatches
            return known.at
        at = self.draft.add("record", name=reader["name"])
        known = self._records[writer["name"], reader["name"]] = _Record(at)
        before = len(self.mismatches)
        self.draft.nodes[at].update(self._fields(writer, reader, path))
        known.mismatches = self.mismatches[before:]
        return at

    def _fields(self, writer: Any, reader: Any, path: str) -> Mapping[str, Any]:
        wanted = {one["name"]: one for one in readable_fields(reader)}
        order, fields = list(wanted), []
        for one, name in zip(writer["fields"], read_names(writer), strict=True):
            target, conversion = self._target(name, reader, wanted) if name else (None, None)
            if target is None:
                fields.append({"name": None, "type": self._skipped.node(one["type"])})
                continue
            del wanted[target["name"]]
            here = f"{path}.{target['name']}".lstrip(".")
            fields.append(
                {"name": target["name"], "type": self._field(reader, one, target, conversion, here)}
            )
        absent = [{"name": name, "constant": self._absent(reader, wanted[name], path)} for name in wanted]
        plain = [one["name"] for one in fields if one["name"] is not None] + list(wanted)
        return {"fields": fields, "absent": absent} | ({} if order == plain else {"order": order})

    def _field(self, record: Any, written: Any, wanted: Any, conversion: Conversion | None, path: str) -> int:
        if conversion is not None:
            return self._converted(written["type"], wanted["type"], conversion, path)
        null = self._renames.null(record["name"], wanted["name"])
        return self.node(written["type"], wanted["type"], path, null)

    def _target(self, written: str, reader: Any, wanted: Mapping[str, Any]) -> tuple[Any, Conversion | None]:
        """Return the reader's field for the *written* field, and its conversion."""
        if written in wanted:
            return wanted[written], None
        for one in wanted.values():
            if written in one.get("aliases", ()):
                return one, None
        for name, conversion in self._renames.other_names(reader["name"], written):
            if name in wanted:
                return wanted[name], conversion
        return None, None

    def _converted(self, writer: Any, reader: Any, conversion: Conversion, path: str) -> int:
        """Add the nodes of a number that gets another unit, and then the reader's type."""
        numbers = [one for one in self._writer.branches(writer) if kind(one) != "null"]
        targets = [one for one in self._reader.branches(reader) if kind(one) != "null"]
        if [kind(one) in NUMBERS for one in (*numbers, *targets)] != [True, True]:
            return self._refuse(
                writer, path, f"a {type_name(writer)} cannot be converted to {type_name(reader)}"
            )
        plain = [kind(one) for one in self._writer.branches(writer)]
        real = [one if one == "null" else "double" for one in map(kind, self._reader.branches(reader))]
        of = self.node(plain if "null" in plain else plain[0], real if "null" in real else real[0], path)
        at = self.draft.add("scale", of=of, factor=conversion.factor, offset=conversion.offset)
        if kind(targets[0]) not in REALS:
            self.draft.nodes[at]["logical"] = self.draft.converter(_rounded(logical_reader(targets[0])))
        return at

    def _absent(self, record: Any, wanted: Mapping[str, Any], path: str) -> int:
        """Return the constant of a field that was not written."""
        branches = [kind(branch) for branch in self._reader.branches(wanted["type"])]
        null = self._renames.null(record["name"], wanted["name"])
        value = None
        if "default" in wanted:
            if not self._strict:  # which only asks whether there is one
                value = default_value(self._reader, wanted["type"], wanted["default"])
        elif self._strict or not ("null" in branches or null is not None or branches[0] in REALS):
            here = f"{path}.{wanted['name']}".lstrip(".")
            self.mismatches.append(Mismatch(here, "it was not written, and has no default"))
        elif "null" not in branches:
            value = math.nan if null is None else default_value(self._reader, wanted["type"], null)
        return self.draft.constant(value)


def _rounded(convert: Converter | None) -> Converter:
    """Return what makes the nearest integer of a number, and of that a value of a logical type."""
    return round if convert is None else (lambda value: convert(round(value)))


def _mismatch(writer: Any, reader: Any) -> str | None:
    """Return why a type that is no union cannot be read as another; None where it can."""
    was, wanted = kind(writer), kind(reader)
    if was != wanted and wanted not in PROMOTIONS.get(was, ()):
        return f"a {type_name(writer)} is no {type_name(reader)}"
    if was == wanted and (check := NAMED_MATCHES.get(was)):
        return check(writer, reader)
    return None


def _names_differ(writer: Any, reader: Any) -> str | None:
    names = {short_name(name) for name in (reader["name"], *reader.get("aliases", ()))}
    return None if short_name(writer["name"]) in names else f"a {writer['name']} is no {reader['name']}"


def _sizes_differ(writer: Any, reader: Any) -> str | None:
    if writer["size"] != reader["size"]:
        return f"{writer['size']} bytes are not {reader['size']}"
    return _names_differ(writer, reader)


NAMED_MATCHES: Mapping[str, Callable[[Any, Any], str | None]] = {
    "record": _names_differ,
    "enum": _names_differ,
    "fixed": _sizes_differ,
}


def checked_plan(resolution: Resolution, writer: str, reader: str) -> Program:
    """Return the plan of a resolution without mismatches.

    Raises:
        SchemaError: It has some; names the fields.
    """
    if resolution.mismatches:
        why = "; ".join(str(mismatch) for mismatch in resolution.mismatches)
        raise SchemaError(f"{writer} cannot be read as {reader}: {why}")
    return resolution.plan
