"""What a survey changed in its fields: other names, other units.  Data, declared in its description."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nightwire.schemas._errors import SchemaError
from nightwire.schemas._types import short


@dataclass(frozen=True)
class Change:
    """One change of a field, read both ways: from the old form to the new one, and back.

    Attributes:
        to: The field's name now.
        record: Name of the record that it lies in, without a namespace; ``*`` = any.
        former: Names that it had.
        factor: What an old value is multiplied by to get a new one.
        offset: What is then added to it.
    """

    to: str
    record: str = "*"
    former: Sequence[str] = ()
    factor: float = 1.0
    offset: float = 0.0

    @property
    def converts(self) -> bool:
        """Whether values change with the name."""
        return (self.factor, self.offset) != (1.0, 0.0)

    def holds_in(self, record: str) -> bool:
        """Whether the change is one of a record of that name."""
        return self.record in ("*", short(record))


@dataclass(frozen=True)
class Conversion:
    """``value * factor + offset``."""

    factor: float
    offset: float


def parse_changes(tables: Sequence[Mapping[str, Any]]) -> tuple[Change, ...]:
    """Return the changes that a description's tables ``[[change]]`` declare.

    Raises:
        SchemaError: A key is missing or unknown, or a factor is zero.
    """
    try:
        changes = tuple(Change(former=tuple(one.get("from", ())), **_others(one)) for one in tables)
    except TypeError as error:
        raise SchemaError(f"[[change]]: {error}") from error
    if any(change.factor == 0 for change in changes):
        raise SchemaError("[[change]]: a factor of zero cannot be undone")
    if mute := [change.to for change in changes if change.converts and not change.former]:
        raise SchemaError(
            f"[[change]] of {', '.join(mute)}: a conversion needs the name that the field had before"
        )
    return changes


def _others(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key != "from"}


def same_field(
    changes: Sequence[Change], record: str, written: str, wanted: str
) -> tuple[bool, Conversion | None]:
    """Return whether the field *written* is the one *wanted* under another name, and what converts it."""
    for change in changes:
        if not change.holds_in(record):
            continue
        if written in change.former and wanted == change.to:
            return True, Conversion(change.factor, change.offset) if change.converts else None
        if written == change.to and wanted in change.former:
            back = Conversion(1 / change.factor, -change.offset / change.factor)
            return True, back if change.converts else None
        if written in change.former and wanted in change.former:
            return True, None
    return False, None
