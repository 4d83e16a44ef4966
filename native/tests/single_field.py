"""A record of one field, ``x``: what most of these tests speak of."""

from typing import Any

from nightwire.schemas import Codec


def schema(kind: Any, **more: Any) -> dict[str, Any]:
    """Return the schema of a record whose only field is of type *kind*."""
    return {"type": "record", "name": "one", "fields": [{"name": "x", "type": kind, **more}]}


def codec(kind: Any, **more: Any) -> Codec:
    """Return the native codec of that record."""
    return Codec(schema(kind, **more), engine="native")
