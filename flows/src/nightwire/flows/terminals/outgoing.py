"""An event as those outside Kafka see it, why they do not take it, and secrets of theirs.

``env:NIGHTWIRE_FLOW_…`` in a flow names a variable of the worker, so no secret lies in Kafka.
"""

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from string import Template
from typing import Any

from nightwire.core.outside import Unavailable
from nightwire.schemas import AlertDecoder, records

BEFORE = "env:"
VARIABLES = "NIGHTWIRE_FLOW_"
"""Begins the names of variables that flows may use: the others are the worker's own."""


@dataclass(frozen=True)
class EventView:
    """An event on its way out.

    Attributes:
        identity: Tells it apart from all others, through all attempts: the idempotency key.
        flow: Which flow sends it.
        fields: What it says.
        written: When its record was written. [ms since 1970]
        document: The VOEvent that it is, byte for byte; empty for others.
    """

    identity: str
    flow: str
    fields: Mapping[str, Any]
    written: int = 0
    document: bytes = b""

    def body(self) -> bytes:
        """Return it as JSON."""
        made = {"id": self.identity, "flow": self.flow, "event": self.fields}
        return json.dumps(made, separators=(",", ":")).encode()

    def text(self, template: str, escape: Callable[[Any], str] = str) -> str:
        """Return *template* with fields in place of ``${diaSource.psfFlux}``; unknown ones stay.

        Args:
            template: The text.
            escape: What is done with each field, for texts in which signs mean something.
        """
        fields = {"id": self.identity, **dict(_paths("", self.fields))}
        return FieldTemplate(template).safe_substitute({name: escape(one) for name, one in fields.items()})


class Terminal(ABC):
    """Where events leave, for one thread."""

    @abstractmethod
    def deliver(self, event: EventView) -> None:
        """Hand *event* over; on return it is taken.

        Raises:
            Unavailable: It was not taken; asking again may help.
            Refused: It will never be.
        """

    def close(self) -> None:  # noqa: B027  (most hold nothing open)
        """Let go of what is open."""


class FieldTemplate(Template):
    """A text with dotted names in it."""

    braceidpattern = r"(?a:[_A-Za-z][\w.]*)"


def view(value: bytes, identity: str, flow: str, decoder: AlertDecoder, written: int = 0) -> EventView:
    """Return the event that *value* holds: without its stamps, NaN as null.

    Raises:
        DecodeError: It holds none.
        RegistryAwayError: Its schema cannot be had just now.
    """
    found = decoder.decode(value)
    document = found.alert["raw"] if found.schema_id == records.VOEVENT.schema_id else b""
    return EventView(identity, flow, _plain(found.alert), written, document)


def _plain(value: Any) -> Any:
    """Return *value* as JSON can hold it; bytes as how many there are."""
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return {"bytes": len(value)}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _paths(before: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in fields.items():
        yield f"{before}{name}", value
        if isinstance(value, Mapping):
            yield from _paths(f"{before}{name}.", value)


def secret(text: str) -> str:
    """Return *text*, or the value of the variable that it names.

    Raises:
        Unavailable: There is no such variable, or flows may not use it.
    """
    if not text.startswith(BEFORE):
        return text
    name = text.removeprefix(BEFORE)
    if not name.startswith(VARIABLES) or name not in os.environ:
        raise Unavailable(f"the worker has no variable {name[:80]!r}; its name begins with {VARIABLES}")
    return os.environ[name]
