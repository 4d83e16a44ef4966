"""Records from columns: readers of an alert's nested fields in the columns of their parts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nightwire.schemas.survey_model.column import Column

ColumnReader = Callable[[int], Any]
"""Returns the value in a row; inside an array of records, of an item."""


class Leaf(NamedTuple):
    """A column on the way: the steps that are left to it.

    Attributes:
        steps: Names of fields, from the record that is looked at.
        depth: Lists around its values; None where its schema has no such field.
        column: Makes the column.
    """

    steps: tuple[str, ...]
    depth: int | None
    column: Callable[[], Column]


class Fields(dict[str, Any]):
    """A record's own fields, those that are read."""

    def __missing__(self, name: str) -> Any:
        """Raise a KeyError that lists the fields there are."""
        raise unread_field(name, self)


def unread_field(name: str, there: Iterable[str]) -> KeyError:
    """Return the error of asking for a field that is not there."""
    return KeyError(f"{name} is not among the fields that are read here: {', '.join(sorted(there))}")


def readers(leaves: Sequence[Leaf], *, inside: bool = False) -> Mapping[str, ColumnReader]:
    """Return what reads each field of a record.

    A record whose fields are all null is None; one whose fields are all lists is taken for a list
    of records.

    Args:
        leaves: The columns below the record.
        inside: Whether the record is an item of an array.
    """
    groups: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        groups.setdefault(leaf.steps[0], []).append(leaf._replace(steps=leaf.steps[1:]))
    return {name: _reader(group, inside) for name, group in groups.items()}


def _reader(leaves: Sequence[Leaf], inside: bool) -> ColumnReader:
    here = [leaf for leaf in leaves if not leaf.steps]
    if here:
        return _value(here[0], inside)
    depths = [leaf.depth for leaf in leaves if leaf.depth is not None]
    if depths and not inside and min(depths) > 0:
        return _array(leaves, next(leaf.column for leaf in leaves if leaf.depth))
    return _record(readers(leaves, inside=inside))


def _value(leaf: Leaf, inside: bool) -> ColumnReader:
    if leaf.depth is None:
        return lambda at: None
    if inside or leaf.depth == 0:
        return _item(leaf)
    return lambda at: leaf.column().row(at)


def _item(leaf: Leaf) -> ColumnReader:
    """Return what reads an item of a column, which is made when the first is read."""
    items: list[Any] | None = None

    def read(at: int) -> Any:
        nonlocal items
        if items is None:
            items = leaf.column().items
        return items[at]

    return read


def _record(fields: Mapping[str, ColumnReader]) -> ColumnReader:
    def read(at: int) -> dict[str, Any] | None:
        found = Fields([(name, reader(at)) for name, reader in fields.items()])
        return None if all(value is None for value in found.values()) else found

    return read


def _array(leaves: Sequence[Leaf], column: Callable[[], Column]) -> ColumnReader:
    fields = readers(leaves, inside=True)

    def read(row: int) -> list[dict[str, Any]] | None:
        span = column().span(row)
        return (
            None
            if span is None
            else [Fields([(name, get(at)) for name, get in fields.items()]) for at in span]
        )

    return read


def record_presence(columns: Sequence[Column]) -> Column:
    """Return where something is that has these *columns*: bool, never null.

    Where all of them are arrays, it is taken for an array itself: True for each item, *absent*
    where that is null.
    """
    arrays = [one for one in columns if one.offsets is not None]
    if len(arrays) == len(columns):
        first = arrays[0]
        count = len(first.values)
        return Column(np.ones(count, bool), np.zeros(count, bool), first.offsets, first.absent)
    there = np.logical_or.reduce([~one.null if one.absent is None else ~one.absent for one in columns])
    return Column(there, np.zeros(len(there), bool))
