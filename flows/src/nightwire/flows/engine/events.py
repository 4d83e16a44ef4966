"""Events within a part of a flow, and the outcome of a stone.  Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, cast

from confluent_kafka import Message

from nightwire.core.kafka import Headers
from nightwire.schemas.topics import NAME

ORIGIN = ("topic", "partition", "offset")
"""Headers that name the record that an event began as, like those of filters' topics."""
SOURCE_TOPICS = ("alerts.", "returns.", "voevents")
"""Topics in which events begin, whatever their headers say."""
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""Names that Kafka allows for topics."""
OUR_HEADERS = {*ORIGIN, "flow", "flow-version", "stone"}


class Origin(NamedTuple):
    """The record that an event began as: its identity."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


@dataclass(frozen=True)
class Event:
    """An event.

    Attributes:
        value: The record's value.
        key: The record's key.
        origin: The record that it began as.
        headers: The record's further headers.
        stone: The window or join that made it; empty for others.
        index: Of the record in its batch.
        written: The record's timestamp; 0 for none. [ms since 1970]
    """

    value: bytes
    key: bytes | None
    origin: Origin
    headers: Headers = ()
    stone: str = ""
    index: int = 0
    written: int = 0

    @property
    def identity(self) -> str:
        """The event's id, the same in every topic."""
        return f"{self.origin}{self.stone and '/' + self.stone}"

    @property
    def size(self) -> int:
        """Length of value, key and headers. [byte]"""
        return (
            len(self.value) + len(self.key or b"") + sum(len(one) + len(text) for one, text in self.headers)
        )

    def record_headers(self, flow: str, version: int) -> list[tuple[str, bytes]]:
        """Return the headers of the event's record in *version* of *flow*."""
        values = {**dict(zip(ORIGIN, self.origin, strict=True)), "flow": flow, "flow-version": version}
        if self.stone:
            values["stone"] = self.stone
        return [*self.headers, *((name, str(value).encode()) for name, value in values.items())]


def event_of(message: Message, index: int = 0) -> Event:
    """Return the event in a Kafka record, whose headers may name its origin."""
    headers = cast("Sequence[tuple[str, bytes | None]]", message.headers() or ())
    theirs = tuple((name, value or b"") for name, value in headers if name not in OUR_HEADERS)
    ours = {name: value or b"" for name, value in headers if name in OUR_HEADERS}
    here = Origin(str(message.topic()), message.partition() or 0, message.offset() or 0)
    stone = ours.get("stone", b"").decode(errors="replace")
    stone = stone if NAME.fullmatch(stone) else ""
    origin = here if here.topic.startswith(SOURCE_TOPICS) else _origin(ours) or here
    written = max(0, message.timestamp()[1])
    return Event(message.value() or b"", message.key(), origin, theirs, stone, index, written)


def _origin(headers: Mapping[str, bytes]) -> Origin | None:
    """Return the origin in *headers*; None for none, or one that Kafka cannot have."""
    try:
        topic, partition, offset = (headers[name].decode("ascii") for name in ORIGIN)
        found = Origin(topic, int(partition), int(offset))
    except (KeyError, ValueError):
        return None
    known = TOPIC.fullmatch(topic) and 0 <= found.partition < 1 << 31 and 0 <= found.offset < 1 << 63
    return found if known else None


class Rejection(str):
    """Why a stone rejects an event: nothing is wrong with it, it goes to no dead letters."""


@dataclass
class Outcome:
    """The result of a stone over some events.

    Attributes:
        passed: Events that leave the stone, by port.
        faults: Events that go to dead letters, and why; rejected where that is a `Rejection`.
        state: Changes of the stone's state by key; None for a tombstone.
    """

    passed: dict[str, list[Event]] = field(default_factory=dict)
    faults: list[tuple[Event, str]] = field(default_factory=list)
    state: dict[str, bytes | None] = field(default_factory=dict)


class Runner(Protocol):
    """Runs a stone over the events of a batch."""

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return the outcome of *events*."""
        ...


def distinct(events: Iterable[Event]) -> list[Event]:
    """Return *events* in order, each once that came along several edges."""
    return [*{(one.identity, one.value): one for one in events}.values()]
