"""Logical types, as fastavro converts them: timestamps are datetimes in UTC, decimals are decimals."""

from typing import Any

from fastavro.read import LOGICAL_READERS
from fastavro.write import LOGICAL_WRITERS

from nightwire.schemas._program import Converter, Draft
from nightwire.schemas._types import logical_name


def writer_of(definition: Any) -> Converter | None:
    """Return what makes the underlying value of a value; None for a plain type."""
    convert = LOGICAL_WRITERS.get(logical_name(definition) or "")
    return (lambda value: convert(value, definition)) if convert else None


def reader_of(definition: Any) -> Converter | None:
    """Return what makes a value of the underlying value; None for a plain type."""
    convert = LOGICAL_READERS.get(logical_name(definition) or "")
    return (lambda value: convert(value, definition, None)) if convert else None


def mark(draft: Draft, at: int, definition: Any, convert: Converter | None) -> None:
    """Note in a node that its values are of a logical type."""
    if convert is not None:
        draft.nodes[at]["logical"] = draft.converter(convert)
        draft.nodes[at]["logical_name"] = logical_name(definition)
