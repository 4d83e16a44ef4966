"""The interface of terminals outside Kafka, their view of an event, and secrets.

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

from nightwire.core.outside import Refused, Unavailable
from nightwire.schemas import AlertDecoder, records

ENV_PREFIX = "env:"
VARIABLE_PREFIX = "NIGHTWIRE_FLOW_"
"""Prefix of the variables that flows may use: the others are the worker's own."""


@dataclass(frozen=True)
class EventView:
    """An event as terminals see it.

    Attributes:
        identity: The event's id, the same in every attempt: the idempotency key.
        flow: Name of the flow.
        fields: The event's fields, as JSON can hold them.
        written: The record's timestamp. [ms since 1970]
        document: The VOEvent, byte for byte; empty for other events.
    """

    identity: str
    flow: str
    fields: Mapping[str, Any]
    written: int = 0
    document: bytes = b""

    @classmethod
    def decode(
        cls, value: bytes, identity: str, flow: str, decoder: AlertDecoder, written: int = 0
    ) -> "EventView":
        """Return the view of the event in *value*: without stamps, NaN as null.

        Raises:
            DecodeError: *value* is no event.
            RegistryAwayError: The registry does not answer.
        """
        found = decoder.decode(value)
        document = found.alert["raw"] if found.schema_id == records.VOEVENT.schema_id else b""
        return cls(identity, flow, _plain(found.alert), written, document)

    def body(self) -> bytes:
        """Return the event as JSON."""
        made = {"id": self.identity, "flow": self.flow, "event": self.fields}
        return json.dumps(made, separators=(",", ":")).encode()

    def lines(self) -> str:
        """Return the event's fields that have a value, a line each; of a list its length."""
        leaves = {name: one for name, one in _paths("", self.fields) if not isinstance(one, Mapping | None)}
        values = (f"{len(one)} entries" if isinstance(one, list) else one for one in leaves.values())
        return "\n".join(map("{}: {}".format, leaves, values))

    def text(self, template: str, escape: Callable[[Any], str] = str) -> str:
        """Return *template* with fields in place of ``${diaSource.psfFlux}``; unknown ones stay.

        Args:
            template: The text.
            escape: Escapes each field, where the text is markup.
        """
        fields = {"id": self.identity, **dict(_paths("", self.fields))}
        return FieldTemplate(template).safe_substitute({name: escape(one) for name, one in fields.items()})


class Rejected(Refused):
    """The terminal has no use for the event, with which nothing is wrong: it is no dead letter."""


class Terminal(ABC):
    """A terminal outside Kafka, used by one thread."""

    @abstractmethod
    def deliver(self, event: EventView) -> None:
        """Deliver *event*; on return the receiver has it.

        Raises:
            Unavailable: It was not taken; another attempt may help.
            Refused: It will never be taken.
            Rejected: Nor is it a dead letter.
        """

    def close(self) -> None:  # noqa: B027  (most hold nothing open)
        """Close connections."""


class FieldTemplate(Template):
    """A template whose names may have dots."""

    braceidpattern = r"(?a:[_A-Za-z][\w.]*)"


def _plain(value: Any) -> Any:
    """Return *value* as JSON can hold it; of bytes their number."""
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
        Unavailable: The variable is not set, or flows may not use it.
    """
    if not text.startswith(ENV_PREFIX):
        return text
    name = text.removeprefix(ENV_PREFIX)
    if not name.startswith(VARIABLE_PREFIX) or name not in os.environ:
        raise Unavailable(f"the worker has no variable {name[:80]!r}; its name begins with {VARIABLE_PREFIX}")
    return os.environ[name]
