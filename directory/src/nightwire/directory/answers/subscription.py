"""From the rows of an answer to a reader of the alerts in their topics."""

from collections.abc import Mapping, Sequence
from pkgutil import resolve_name
from typing import Any

from nightwire.core.kafka import principal
from nightwire.core.runtime import Endpoints
from nightwire.schemas import MendableError

READER = "nightwire.consumers:AlertReader"
"""Who reads alerts.  Rooms do not import each other: it is found when it is wanted, as verbs are by
their entry points."""


class SubscribeError(MendableError):
    """An answer does not say what to read; the message says what is missing."""


def subscription(
    rows: Sequence[Mapping[str, Any]], asked: Endpoints | None, options: Mapping[str, Any]
) -> Any:
    """Return a reader of the topics of *rows*.

    Args:
        rows: Have a column ``topic``; ``bootstrap`` and ``registry`` where they are elsewhere.
        asked: The site whose directory answered.
        options: What the reader takes; these come first.

    Raises:
        SubscribeError: There are no topics, or they lie in several Kafkas.
    """
    topics = _texts(rows, "topic")
    if not topics:
        missing = rows and "topic" not in rows[0]
        raise SubscribeError("the answer has no column topic: select it" if missing else "no row has a topic")
    there = {} if "bootstrap" in options else _place(rows, asked)
    return resolve_name(READER)(topics, **there | dict(options))


def _place(rows: Sequence[Mapping[str, Any]], asked: Endpoints | None) -> dict[str, str | None]:
    """Return where the topics lie: the Kafka that the rows name, else that of who answered."""
    named = _texts(rows, "bootstrap")
    if len(named) > 1:
        raise SubscribeError(
            f"the topics lie in {len(named)} Kafkas ({', '.join(named)}): ask for those of one, "
            "such as WHERE site = 'local'"
        )
    if asked is not None and (not named or named[0] in (asked.kafka, asked.public.get("kafka"))):
        return {"bootstrap": asked.kafka, "registry": asked.schema_registry}
    if asked is not None and principal(asked.kafka):
        raise SubscribeError(
            f"the topics lie in another Kafka, {named[0]}, to which your password of this one is not shown: "
            "set KAFKA_* for that one, and name it with bootstrap="
        )
    registries = _texts(rows, "registry")
    return {"bootstrap": named[0] if named else None, "registry": registries[0] if registries else None}


def _texts(rows: Sequence[Mapping[str, Any]], column: str) -> list[str]:
    """Return the values of *column*, each once, without the empty ones."""
    return list(dict.fromkeys(str(row[column]) for row in rows if row.get(column)))
