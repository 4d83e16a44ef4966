"""Values that a schema implies: defaults of fields, and conversions of logical types."""

import struct
from collections.abc import Mapping
from typing import Any

from fastavro.read import LOGICAL_READERS
from fastavro.write import LOGICAL_WRITERS

from nightwire.schemas.avro.plans.program import Converter, Draft
from nightwire.schemas.avro.plans.schema import Types, kind, logical_name, type_name
from nightwire.schemas.errors import SchemaError

_FLOAT = struct.Struct("<f")


def default_to_write(types: Types, schema: Any, default: Any) -> Any:
    """Return the value that *default* stands for, as it is to be encoded.

    Raises:
        SchemaError: It is no value of that type.
    """
    return _Value(types, logical=False).of(schema, default)


def default_value(types: Types, schema: Any, default: Any) -> Any:
    """Return the value that *default* stands for, as if it had been written and were decoded.

    Raises:
        SchemaError: It is no value of that type.
    """
    return _Value(types, logical=True).of(schema, default)


class _Value:
    def __init__(self, types: Types, *, logical: bool) -> None:
        self._types = types
        self._logical = logical

    def of(self, schema: Any, default: Any) -> Any:
        for branch in self._types.branches(schema):
            if _fits(branch, default):
                value = self._plain(branch, default)
                convert = logical_reader(branch) if self._logical else None
                return convert(value) if convert else value
        raise SchemaError(f"the default {default!r:.60} is no {type_name(schema)}")

    def _plain(self, branch: Any, default: Any) -> Any:
        match kind(branch):
            case "bytes" | "fixed":
                return default.encode("latin-1")  # each character is a byte, says Avro
            case "double":
                return float(default)
            case "float":
                return _FLOAT.unpack(_FLOAT.pack(float(default)))[0] if self._logical else float(default)
            case "array":
                return [self.of(branch["items"], item) for item in default]
            case "map":
                return {key: self.of(branch["values"], item) for key, item in default.items()}
            case "record":
                return self._record(branch, default)
        return default

    def _record(self, branch: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
        values = {}
        for field in branch["fields"]:
            if field["name"] not in default and "default" not in field:
                raise SchemaError(f"the default {default!r:.60} lacks {branch['name']}.{field['name']}")
            values[field["name"]] = self.of(field["type"], default.get(field["name"], field.get("default")))
        return values


def _fits(branch: Any, default: Any) -> bool:
    """Whether *default* has the form of a default of that type."""
    match kind(branch):
        case "null":
            return default is None
        case "boolean":
            return isinstance(default, bool)
        case "int" | "long":
            return isinstance(default, int) and not isinstance(default, bool)
        case "float" | "double":
            return _is_number(default)
        case "array":
            return isinstance(default, list)
        case "map" | "record":
            return isinstance(default, Mapping)
        case "enum":
            return default in branch["symbols"]
    return isinstance(default, str)


def _is_number(default: Any) -> bool:
    if isinstance(default, str):  # "NaN", as fastavro allows
        return default.lower().lstrip("+-") in ("nan", "inf", "infinity")
    return isinstance(default, int | float) and not isinstance(default, bool)


def logical_writer(definition: Any) -> Converter | None:
    """Return what makes the underlying value of a value; None for a plain type."""
    convert = LOGICAL_WRITERS.get(logical_name(definition) or "")
    return (lambda value: convert(value, definition)) if convert else None


def logical_reader(definition: Any) -> Converter | None:
    """Return what makes a value of the underlying value; None for a plain type."""
    convert = LOGICAL_READERS.get(logical_name(definition) or "")
    return (lambda value: convert(value, definition, None)) if convert else None


def mark_logical(draft: Draft, at: int, definition: Any, convert: Converter | None) -> None:
    """Note in a node that its values are of a logical type."""
    if convert is not None:
        draft.nodes[at]["logical"] = draft.converter(convert)
        draft.nodes[at]["logical_name"] = logical_name(definition)
