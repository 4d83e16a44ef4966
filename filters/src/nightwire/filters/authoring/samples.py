"""Alerts that an owner has at hand, as messages that the sandbox takes."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from nightwire.filters.language import FilterError
from nightwire.filters.reading.recent import Sample
from nightwire.schemas import AlertView, Codec, EncodeError, SchemaError, wire

SYNC = bytes(wire.SYNC_SIZE)
"""Ends the parts of our containers; nobody looks for it."""

PRIMITIVES = {bool: "boolean", str: "string", bytes: "bytes"}
MICROSECONDS = {"type": "long", "logicalType": "timestamp-micros"}


def messages(alerts: Iterable[Any]) -> list[Sample]:
    """Return *alerts* (views, or what `AlertReader` gives) as containers, each with its survey.

    Raises:
        FilterError: One is no alert, or holds what Avro cannot.
    """
    views = [_view(one) for one in alerts]
    records = [dict(one) for one in views]
    try:
        codec = Codec(_type(records, "alert")) if records else None
        head = wire.container_head(json.dumps(codec.schema).encode(), SYNC) if codec else b""
        bodies = [codec.encode(record) for record in records] if codec else []
    except (EncodeError, SchemaError) as error:
        raise FilterError(f"these alerts cannot be handed to the sandbox: {error}") from error
    return [
        (one._survey.name, head + wire.container_block(body, SYNC))  # noqa: SLF001 - no filter may ask for it
        for one, body in zip(views, bodies, strict=True)
    ]


def _view(one: Any) -> AlertView:
    found = one if isinstance(one, AlertView) else getattr(one, "view", None)
    if not isinstance(found, AlertView):
        raise FilterError(f"a sample holds alerts as AlertReader gives them, not a {type(one).__name__}")
    return found


def _type(values: Sequence[Any], name: str) -> Any:
    """Return the Avro type that holds all of *values*; records get names that begin with *name*."""
    branches: list[Any] = ["null"] if None in values or not values else []
    numbers = {type(one) for one in values} & {int, float}
    if numbers:
        branches.append("double" if float in numbers else "long")
    branches += [avro for kind, avro in PRIMITIVES.items() if any(type(one) is kind for one in values)]
    if any(isinstance(one, datetime) for one in values):
        branches.append(MICROSECONDS)
    if lists := [one for one in values if isinstance(one, list | tuple)]:
        branches.append({"type": "array", "items": _type([item for one in lists for item in one], name)})
    if records := [one for one in values if isinstance(one, Mapping)]:
        branches.append(_record(records, name))
    return branches[0] if len(branches) == 1 else branches


def _record(records: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    keys = dict.fromkeys(key for one in records for key in one)
    fields = [
        {"name": key, "type": _type([one.get(key) for one in records], f"{name}_{key}")} for key in keys
    ]
    return {"type": "record", "name": name, "fields": fields}
