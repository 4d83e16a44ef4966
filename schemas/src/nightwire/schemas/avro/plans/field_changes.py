"""What a survey changed in its fields: other names, other units, nulls that came to be numbers.

Data, declared in its description as tables ``[[change]]``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from nightwire.schemas.avro.plans.schema import short_name
from nightwire.schemas.errors import SchemaError


@dataclass(frozen=True)
class Change:
    """One change of a field, read both ways: from the old form to the new one, and back.

    Attributes:
        to: The field's name now.
        record: Name of the record that it lies in, without a namespace; ``*`` = any.
        former: Names that it had.
        factor: What an old value is multiplied by to get a new one.
        offset: What is then added to it.
        null: What a null means to who cannot hold one; None = nothing, it is refused.
    """

    to: str
    record: str = "*"
    former: Sequence[str] = ()
    factor: float = 1.0
    offset: float = 0.0
    null: Any = None

    @property
    def converts(self) -> bool:
        """Whether values change with the name."""
        return (self.factor, self.offset) != (1.0, 0.0)


@dataclass(frozen=True)
class Conversion:
    """``value * factor + offset``."""

    factor: float
    offset: float


class Renames:
    """The changes of a survey, by record and field."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self._by_name: dict[tuple[str, str], list[Change]] = {}
        for change in changes:
            for name in (change.to, *change.former):
                self._by_name.setdefault((change.record, name), []).append(change)

    def null(self, record: str, field: str) -> Any:
        """Return what a null of that field means; None = nothing."""
        return next((one.null for one in self._of(record, field) if one.null is not None), None)

    def other_names(self, record: str, field: str) -> Iterator[tuple[str, Conversion | None]]:
        """Yield the names of *field* in other versions, with the conversion of its values."""
        for change in self._of(record, field):
            if field == change.to:
                back = Conversion(1 / change.factor, -change.offset / change.factor)
                yield from ((name, back if change.converts else None) for name in change.former)
            else:
                yield change.to, Conversion(change.factor, change.offset) if change.converts else None
                yield from ((name, None) for name in change.former if name != field)

    def _of(self, record: str, field: str) -> Iterator[Change]:
        for where in (short_name(record), "*"):
            yield from self._by_name.get((where, field), ())


def parse_changes(tables: Sequence[Mapping[str, Any]]) -> tuple[Change, ...]:
    """Return the changes that a description's tables ``[[change]]`` declare.

    A table may stand for many: with ``each = { band = ["u", "g"] }``, ``{band}`` in names is each
    of these.

    Raises:
        SchemaError: A key is missing or unknown, or a factor is zero.
    """
    return tuple(change for table in tables for change in _expanded(table))


def _expanded(table: Mapping[str, Any]) -> Iterator[Change]:
    given = dict(table)
    each = given.pop("each", {})
    try:
        change = Change(former=tuple(given.pop("from", ())), **given)
        _check(change)
        for values in product(*each.values()):
            filled = dict(zip(each, values, strict=True))
            former = tuple(name.format(**filled) for name in change.former)
            yield replace(change, to=change.to.format(**filled), former=former)
    except (TypeError, KeyError, AttributeError) as error:
        raise SchemaError(f"[[change]]: {type(error).__name__} {error}") from error


def _check(change: Change) -> None:
    if change.factor == 0:
        raise SchemaError(f"[[change]] of {change.to}: a factor of zero cannot be undone")
    if change.converts and not change.former:
        raise SchemaError(
            f"[[change]] of {change.to}: a conversion needs the name that the field had before; "
            "the same name with another unit cannot be told apart"
        )
    if not change.former and change.null is None:
        raise SchemaError(f"[[change]] of {change.to}: it changes nothing")
