"""Events on their way through a part of a flow, and what becomes of them.  Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, cast

from confluent_kafka import Message

from nightwire.core.kafka import Headers
from nightwire.schemas.topics import NAME

ORIGIN = ("topic", "partition", "offset")
"""Headers that say which record an event was at first, as in the topics of filters."""
FIRST = ("alerts.", "returns.", "voevents")
"""Topics in which events are at first, whatever they say."""
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""The names that a topic may have."""
OURS = {*ORIGIN, "flow", "flow-version", "stone"}


class Origin(NamedTuple):
    """The record that an event was at first; who knows it knows the event."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


@dataclass(frozen=True)
class Event:
    """An event.

    Attributes:
        value: Its record's value.
        key: Its record's key.
        origin: What it was at first.
        headers: Further headers that it brought along.
        stone: The window that made it; empty for others.
        at: Index, in the batch, of the record that it is here.
        written: When that record was written; 0 where nobody knows. [ms since 1970]
    """

    value: bytes
    key: bytes | None
    origin: Origin
    headers: Headers = ()
    stone: str = ""
    at: int = 0
    written: int = 0

    @property
    def identity(self) -> str:
        """What tells it apart from all other events."""
        return f"{self.origin}{self.stone and '/' + self.stone}"

    @property
    def size(self) -> int:
        """Its value, key and headers. [byte]"""
        return (
            len(self.value) + len(self.key or b"") + sum(len(one) + len(text) for one, text in self.headers)
        )

    def record_headers(self, flow: str, version: int) -> list[tuple[str, bytes]]:
        """Return the headers of its record that flow *flow* writes in *version*."""
        values = {**dict(zip(ORIGIN, self.origin, strict=True)), "flow": flow, "flow-version": version}
        if self.stone:
            values["stone"] = self.stone
        return [*self.headers, *((name, str(value).encode()) for name, value in values.items())]


def event_of(message: Message, at: int = 0) -> Event:
    """Return the event in a Kafka record: its headers say what it was, else it is what it was."""
    headers = cast("Sequence[tuple[str, bytes | None]]", message.headers() or ())
    theirs = tuple((name, value or b"") for name, value in headers if name not in OURS)
    said = {name: value or b"" for name, value in headers if name in OURS}
    here = Origin(str(message.topic()), message.partition() or 0, message.offset() or 0)
    stone = said.get("stone", b"").decode(errors="replace")
    stone = stone if NAME.fullmatch(stone) else ""
    origin = here if here.topic.startswith(FIRST) else _origin(said) or here
    written = max(0, message.timestamp()[1])
    return Event(message.value() or b"", message.key(), origin, theirs, stone, at, written)


def _origin(said: Mapping[str, bytes]) -> Origin | None:
    """Return what headers say; None where they say nothing, or what Kafka cannot have."""
    try:
        topic, partition, offset = (said[name].decode("ascii") for name in ORIGIN)
        found = Origin(topic, int(partition), int(offset))
    except (KeyError, ValueError):
        return None
    known = TOPIC.fullmatch(topic) and 0 <= found.partition < 1 << 31 and 0 <= found.offset < 1 << 63
    return found if known else None


class Lacking(str):
    """What an event lacks, by which a stone goes."""


@dataclass
class Outcome:
    """What a stone makes of some events.

    Attributes:
        passed: What leaves it, by port.
        faults: What it could not use, and why; `Lacking` where it has not what a stone goes by.
        state: What it keeps from now on, by key; None: nothing more of it.
    """

    passed: dict[str, list[Event]] = field(default_factory=dict)
    faults: list[tuple[Event, str]] = field(default_factory=list)
    state: dict[str, bytes | None] = field(default_factory=dict)


class Runner(Protocol):
    """Does what a stone is for."""

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return what becomes of *events*."""
        ...


def distinct(events: Iterable[Event]) -> list[Event]:
    """Return *events* in order, those once that came by several ways."""
    return [*{(one.identity, one.value): one for one in events}.values()]
