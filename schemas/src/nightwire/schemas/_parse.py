"""Avro schemas, parsed by fastavro: names resolved, faults named."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from nightwire.schemas._errors import SchemaError

UNFIT = (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, ArithmeticError)
"""What fastavro is seen to raise on schemas and values that are none."""


def parse(schema: Mapping[str, Any] | Sequence[Any] | str) -> Any:
    """Return *schema* as fastavro wants it, its names resolved.

    Raises:
        SchemaError: It is not an Avro schema; the message says what is wrong with it.
    """
    try:
        return fastavro.parse_schema(cast("Any", schema), named_schemas={})
    except UnknownType as error:
        raise SchemaError(f"not an Avro schema: unknown type {error.name!r}") from error
    except (SchemaParseException, *UNFIT, RecursionError) as error:
        raise SchemaError(f"not an Avro schema: {words(error)}") from error


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


def words(error: BaseException) -> str:
    """Return an error's type and text."""
    return f"{type(error).__name__} {error}".strip()
