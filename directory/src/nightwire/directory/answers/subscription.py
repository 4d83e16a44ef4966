"""A reader of the alerts in the topics of an answer's rows."""

from collections.abc import Mapping, Sequence
from pkgutil import resolve_name
from typing import Any

from nightwire.core.kafka import principal
from nightwire.core.runtime import Endpoints
from nightwire.schemas import MendableError

READER = "nightwire.consumers:AlertReader"
"""The reader's class.  Rooms do not import each other: it is resolved when it is used."""


class SubscribeError(MendableError):
    """An answer names no topics to read; the message says what is missing."""


def subscription(
    rows: Sequence[Mapping[str, Any]], origin: Endpoints | None, options: Mapping[str, Any]
) -> Any:
    """Return a reader of the topics of *rows*.

    Args:
        rows: Have a column ``topic``; ``bootstrap`` and ``registry`` where they are elsewhere.
        origin: The site whose directory answered.
        options: The reader's; they take precedence.

    Raises:
        SubscribeError: There are no topics, or they lie in several Kafkas.
    """
    topics = _texts(rows, "topic")
    if not topics:
        missing = rows and "topic" not in rows[0]
        raise SubscribeError("the answer has no column topic: select it" if missing else "no row has a topic")
    there = {} if "bootstrap" in options else _kafka_of(rows, origin)
    return resolve_name(READER)(topics, **there | dict(options))


def _kafka_of(rows: Sequence[Mapping[str, Any]], origin: Endpoints | None) -> dict[str, str | None]:
    """Return the Kafka and registry of the rows, else those of *origin*."""
    named = _texts(rows, "bootstrap")
    if len(named) > 1:
        raise SubscribeError(
            f"the topics lie in {len(named)} Kafkas ({', '.join(named)}): ask for those of one, "
            "such as WHERE site = 'local'"
        )
    if origin is not None and (not named or named[0] in (origin.kafka, origin.public.get("kafka"))):
        return {"bootstrap": origin.kafka, "registry": origin.schema_registry}
    if origin is not None and principal(origin.kafka):
        raise SubscribeError(
            f"the topics lie in another Kafka, {named[0]}, to which your password of this one is not shown: "
            "set KAFKA_* for that one, and name it with bootstrap="
        )
    registries = _texts(rows, "registry")
    return {"bootstrap": named[0] if named else None, "registry": registries[0] if registries else None}


def _texts(rows: Sequence[Mapping[str, Any]], column: str) -> list[str]:
    """Return the values of *column*, each once, without the empty ones."""
    return list(dict.fromkeys(str(row[column]) for row in rows if row.get(column)))
