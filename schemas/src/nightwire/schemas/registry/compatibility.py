"""Which schema may follow which: Confluent's compatibility levels, by Avro's resolution."""

from collections.abc import Sequence
from typing import Any

from nightwire.schemas.avro.plans.resolve import resolve
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


def incompatibilities(level: str, new: Any, earlier: Sequence[Any]) -> list[str]:
    """Return why *new* may not follow the *earlier* versions (oldest first); empty if it may.

    BACKWARD: the new one reads what the last one wrote.  FORWARD: the last one reads what the new
    one writes.  FULL: both.  TRANSITIVE: the same for all earlier ones.
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
    """Return why *reader* cannot read what *writer* wrote, a line per field; empty if it can.

    Raises:
        SchemaError: One of them is not an Avro schema.
    """
    return [str(one) for one in resolve(parse(writer), parse(reader), strict=True).mismatches]
