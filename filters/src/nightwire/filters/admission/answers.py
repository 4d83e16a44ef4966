"""Answers to requests, cut to what a record holds, whatever the request was.  Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nightwire.core.runtime import now_ms
from nightwire.filters.language import without_surrogates
from nightwire.schemas import Codec, DecodeError, records, wire

MAX_NAME = 200
"""Longest id of a request, and name of a filter, that an answer repeats. [character]"""

MAX_REASONS = 50
"""Most reasons of an answer."""

MAX_REASON = 2_000
"""Longest reason. [character]"""


def answer_record(
    request: Mapping[str, Any], owner: str, *, accepted: bool, version: int, reasons: Sequence[str]
) -> dict[str, Any]:
    """Return the answer to a request of *owner*, of which *id* and *name* are known."""
    return {
        "request": cut(request["id"], MAX_NAME), "accepted": accepted, "owner": owner,
        "name": cut(request["name"], MAX_NAME), "version": version, "reasons": [*_shortened(reasons)],
        "time": now_ms(),
    }  # fmt: skip


def cut(text: str, most: int) -> str:
    """Return *text* in so many characters, all of which UTF-8 has."""
    short = text if len(text) <= most else f"{text[: most - 1]}…"
    return without_surrogates(short)


def _shortened(reasons: Sequence[str]) -> Iterator[str]:
    yield from (cut(one, MAX_REASON) for one in reasons[:MAX_REASONS])
    if len(reasons) > MAX_REASONS:
        yield f"… and {len(reasons) - MAX_REASONS:,} reasons more"


def identified(value: bytes) -> Mapping[str, Any] | None:
    """Return id and name of a request that cannot be decoded as a whole; None where they cannot."""
    try:
        schema_id, body = wire.unframe(value)
        if schema_id not in records.REQUEST.ids:
            return None
        return Codec(records.REQUEST.schema_of(schema_id)).decode(body, ["id", "name"])
    except DecodeError:
        return None
