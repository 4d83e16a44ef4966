"""Avro schemas, parsed by fastavro: names resolved, faults named."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from nightwire.schemas.errors import SchemaError

CONVERSION_ERRORS = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    IndexError,
    OverflowError,
    ArithmeticError,
)
"""What fastavro is seen to raise on schemas and values that are none."""


def parse(schema: Mapping[str, Any] | Sequence[Any] | str) -> Any:
    """Return *schema* parsed by fastavro, with names resolved.

    Raises:
        SchemaError: It is not an Avro schema; the message says what is wrong with it.
    """
    try:
        return fastavro.parse_schema(cast("Any", schema), named_schemas={})
    except UnknownType as error:
        raise SchemaError(f"not an Avro schema: unknown type {error.name!r}") from error
    except (SchemaParseException, *CONVERSION_ERRORS, RecursionError) as error:
        raise SchemaError(f"not an Avro schema: {error_text(error)}") from error


def parse_message(schema: Mapping[str, Any]) -> Any:
    """Return the *schema* of a message, parsed.

    Raises:
        SchemaError: It is not an Avro schema of a record.
    """
    parsed = parse(schema)
    if not isinstance(parsed, dict) or "fields" not in schema:
        raise SchemaError(
            f"the schema of a message is that of a record with fields, not {schema.get('type')!r}"
        )
    return parsed


def error_text(error: BaseException) -> str:
    """Return an error's type and text."""
    return f"{type(error).__name__} {error}".strip()


NAMED = frozenset({"record", "error", "enum", "fixed"})


class Types:
    """The named types of one schema, by name."""

    def __init__(self, parsed: Any) -> None:
        self.root = parsed
        self._named: dict[str, Any] = {}
        self._collect(parsed)

    def definition(self, schema: Any) -> Any:
        """Return *schema*, or the definition that it names."""
        return self._named.get(schema, schema) if isinstance(schema, str) else schema

    def branches(self, schema: Any) -> list[Any]:
        """Return the definitions of a union's branches; for what is no union, of itself alone."""
        return [self.definition(one) for one in (schema if isinstance(schema, list) else [schema])]

    def _collect(self, schema: Any) -> None:
        if isinstance(schema, list):
            for branch in schema:
                self._collect(branch)
        elif isinstance(schema, dict):
            if schema.get("type") in NAMED:
                self._named[schema["name"]] = schema
            for field in schema.get("fields", ()):
                self._collect(field["type"])
            for part in ("items", "values"):
                self._collect(schema.get(part))


def read_names(record: Mapping[str, Any]) -> list[str | None]:
    """Return the names by which a record's fields are read: None where a later one has the same.

    Avro allows no name twice; real alerts (WINTER's `sgmag1`) have some.
    """
    names = [field["name"] for field in record["fields"]]
    last = {name: at for at, name in enumerate(names)}
    return [name if last[name] == at else None for at, name in enumerate(names)]


def readable_fields(record: Mapping[str, Any]) -> list[Any]:
    """Return the fields of a record that are read, each of another name."""
    named = zip(record["fields"], read_names(record), strict=True)
    return [field for field, name in named if name is not None]


def kind(definition: Any) -> str:
    """Return the type of a definition: ``union``, ``record``, ``array``, ``long``, …"""
    if isinstance(definition, list):
        return "union"
    found = str(definition["type"] if isinstance(definition, Mapping) else definition)
    return "record" if found == "error" else found


def type_name(definition: Any) -> str:
    """Return a definition's name where it has one, else its type."""
    named = isinstance(definition, Mapping) and "name" in definition
    return str(definition["name"]) if named else kind(definition)


def short_name(name: str) -> str:
    """Return a name without its namespace, by which Avro matches types of two schemas."""
    return name.rsplit(".", 1)[-1]


def logical_name(definition: Any) -> str | None:
    """Return ``long-timestamp-micros`` and the like; None for a plain or incomplete type."""
    logical = definition.get("logicalType") if isinstance(definition, Mapping) else None
    if logical is None or (logical == "decimal" and not isinstance(definition.get("precision"), int)):
        return None
    return f"{kind(definition)}-{logical}"


def field_at(types: Types, steps: Sequence[str], path: str, schema: Any = None) -> Any:
    """Return the type of the field that *steps* lead to, through records, arrays and nulls.

    Args:
        types: Of the schema.
        steps: Names of fields.
        path: The whole path, for messages.
        schema: Where to begin, if not at the schema's root.

    Raises:
        SchemaError: There is no such field; names those there are.
    """
    schema = types.root if schema is None else schema
    for step in steps:
        schema = _field(types, schema, step, path)["type"]
    return schema


def has_field(types: Types, path: str) -> bool:
    """Whether there is a field at a dotted path."""
    try:
        field_at(types, path.split("."), path)
    except SchemaError:
        return False
    return True


def _field(types: Types, schema: Any, step: str, path: str) -> Mapping[str, Any]:
    there: list[str] = []
    for branch in types.branches(schema):
        if kind(branch) == "array":
            return _field(types, branch["items"], step, path)
        if kind(branch) == "map":
            raise SchemaError(f"field {path}: {step!r} lies inside a map; ask for the whole map")
        for field in readable_fields(branch) if kind(branch) == "record" else ():
            if field["name"] == step:
                return field  # type: ignore[no-any-return]
            there.append(field["name"])
    has = f"it has {', '.join(there)}" if there else "there is no record there"
    raise SchemaError(f"unknown field {path}: no {step!r}; {has}")


def inlined(schema: Any, parts: Mapping[str, Any]) -> Any:
    """Return *schema* with each of *parts* (schemas by full name) inserted where it is named
    first.
    """
    return _inlined(schema, "", dict(parts))


def _inlined(schema: Any, space: str, rest: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(branch, space, rest) for branch in schema]
    if isinstance(schema, str):
        name = schema if "." in schema else f"{space}.{schema}".lstrip(".")
        name = name if name in rest else schema
        return _inlined(rest.pop(name), space, rest) if name in rest else schema
    space = schema.get("name", "").rpartition(".")[0] or schema.get("namespace", space)
    made = dict(schema)
    for key in ("items", "values"):
        if key in made:
            made[key] = _inlined(made[key], space, rest)
    if "fields" in made:
        made["fields"] = [{**field, "type": _inlined(field["type"], space, rest)} for field in made["fields"]]
    return made


Steps = tuple[str, ...]


def derived_schema(
    schema: Mapping[str, Any], drop: Collection[str], add: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Return *schema* without the fields *drop*, and with the fields *add* at its end.

    A type that loses fields in one place is called otherwise there, ``<name>_<path>``, since it may
    stand in other places as well.  Paths that lead nowhere are passed over.

    Args:
        schema: Of a record, as parsed JSON.
        drop: Dotted paths, through arrays of records and nulls as well.
        add: Fields of the record itself, as Avro's JSON has them; they displace those of the same
            names.

    Raises:
        SchemaError: It is not an Avro schema of a record.
    """
    dropper = _FieldDropper(schema, drop)
    made = dropper.record(dropper.types.root, ())
    names = {one["name"] for one in add}
    fields = [one for one in made["fields"] if one["name"] not in names]
    return {**made, "fields": [*fields, *map(dict, add)]}


def kept_fields(schema: Mapping[str, Any], drop: Collection[str]) -> list[str]:
    """Return the dotted paths of what of *schema* is left without the fields *drop*.

    Raises:
        SchemaError: It is not an Avro schema of a record.
    """
    dropper = _FieldDropper(schema, drop)
    return [".".join(steps) for steps in dropper.kept(dropper.types.root, ())]


class _FieldDropper:
    """Walks through a schema, and leaves fields out."""

    def __init__(self, schema: Mapping[str, Any], drop: Collection[str]) -> None:
        self.types = Types(parse_message(schema))
        self._drop: set[Steps] = {tuple(path.split(".")) for path in drop}
        self._defined: set[str] = set()

    def record(self, whole: Mapping[str, Any], steps: Steps) -> dict[str, Any]:
        """Return what is left of a record at *steps*."""
        name = "_".join((whole["name"], *steps)) if steps and self._loses_fields(steps) else whole["name"]
        self._defined.add(name)
        left = (one for one in whole["fields"] if (*steps, one["name"]) not in self._drop)
        fields = [{**one, "type": self._type(one["type"], (*steps, one["name"]))} for one in left]
        plain = {key: value for key, value in whole.items() if not key.startswith("__")}
        return {**plain, "name": name, "fields": fields}

    def kept(self, schema: Any, steps: Steps) -> Iterator[Steps]:
        """Yield the steps to what is left of a type at *steps*."""
        for branch in self.types.branches(schema):
            if kind(branch) in ("array", "map"):
                yield from self.kept(branch["items" if kind(branch) == "array" else "values"], steps)
            for one in branch["fields"] if kind(branch) == "record" else ():
                path = (*steps, one["name"])
                if path not in self._drop:
                    yield from self.kept(one["type"], path) if self._loses_fields(path) else (path,)

    def _type(self, schema: Any, steps: Steps) -> Any:
        if isinstance(schema, list):
            return [self._type(branch, steps) for branch in schema]
        whole = self.types.definition(schema)
        if isinstance(whole, dict) and whole.get("type") in NAMED:
            return self._named(whole, steps)
        for part in ("items", "values"):
            if isinstance(whole, dict) and part in whole:
                return {**whole, part: self._type(whole[part], steps)}
        return schema

    def _named(self, whole: Mapping[str, Any], steps: Steps) -> Any:
        if kind(whole) == "record" and (self._loses_fields(steps) or whole["name"] not in self._defined):
            return self.record(whole, steps)
        if whole["name"] in self._defined:
            return whole["name"]
        self._defined.add(whole["name"])
        return dict(whole)

    def _loses_fields(self, steps: Steps) -> bool:
        """Return whether something below *steps* is dropped."""
        return any(path[: len(steps)] == steps != path for path in self._drop)
