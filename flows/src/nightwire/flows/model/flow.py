"""A flow: sources, stones, and the edges between them.  Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nightwire.flows.model.kinds import KINDS, Kind
from nightwire.schemas import MendableError
from nightwire.schemas.topics import flow_queue

ELSE = "else"
"""The port of a router for what has none of its values."""

TEXT = " text"
"""Behind a key: the line at which its text of several lines begins."""

ENDS = ("start", "end")
"""Where a topic begins and ends: all other beginnings are times."""


class FlowError(MendableError):
    """A flow cannot be.

    Args:
        reasons: Why, each with its line.
    """

    def __init__(self, reasons: list[str]) -> None:
        self.reasons = reasons
        super().__init__("\n".join(reasons))


@dataclass(frozen=True)
class Source:
    """A topic that a flow reads.

    Attributes:
        name: Its name in the flow.
        topic: Its name in Kafka.
        survey: Whose alerts lie there; empty where nobody says.
        begin: Where it begins that was never read: ``start``, ``end``, or at a time, which the
            archive knows where Kafka has forgotten it.
        at: The worker that reads it; empty for any.
        lines: The lines of its keys, and its own under the empty name.
    """

    name: str
    topic: str
    survey: str = ""
    begin: str = "end"
    at: str = ""
    lines: Mapping[str, int] = field(default_factory=dict)

    def line(self, key: str) -> int:
        """Return the line of *key*, else its own."""
        return self.lines.get(key) or self.lines.get("", 1)


@dataclass(frozen=True)
class Edge:
    """Where a stone's events come from: a source or stone, and which of its ports."""

    node: str
    port: str = ""


@dataclass(frozen=True)
class Stone:
    """What is done with events.

    Attributes:
        name: Its name in the flow.
        kind: One of `KINDS`.
        inputs: Where its events come from.
        at: The worker that runs it; empty for any.
        options: What its kind asks for.
        lines: The lines of its keys, and its own under the empty name.
    """

    name: str
    kind: str
    inputs: tuple[Edge, ...]
    at: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def about(self) -> Kind:
        """What its kind is."""
        return KINDS[self.kind]

    @property
    def ports(self) -> tuple[str, ...]:
        """The names of its ways out; one without a name where it has no choice."""
        if self.kind == "router":
            return (*map(str, self.options["values"]), ELSE)
        return () if self.about.terminal else ("",)


@dataclass(frozen=True)
class Flow:
    """A graph through which events go.

    Attributes:
        name: Its name.
        sources: By name.
        stones: By name, each behind those that its events come from.
    """

    name: str
    sources: Mapping[str, Source]
    stones: Mapping[str, Stone]

    @property
    def reads(self) -> set[str]:
        """The topics that it reads."""
        return {one.topic for one in self.sources.values()}

    @property
    def writes(self) -> set[str]:
        """The topics of this Kafka in which it ends."""
        return {one.options["topic"] for one in self.stones.values() if one.kind == "topic"}

    @property
    def group(self) -> str:
        """The consumer group of its parts."""
        return f"flow.{self.name}"

    def queue(self, stone: str) -> str:
        """Return the topic in which events wait for *stone*."""
        return flow_queue(self.name, stone)

    def followers(self, node: str, port: str = "") -> Iterator[Stone]:
        """Yield the stones that get what leaves *node* by *port*."""
        return (one for one in self.stones.values() if Edge(node, port) in one.inputs)

    def at(self, node: str) -> str:
        """Return the worker of a source or stone; empty for any."""
        return self.sources[node].at if node in self.sources else self.stones[node].at

    @property
    def workers(self) -> set[str]:
        """The workers that are named, and the empty name where some part may run anywhere."""
        return {self.at(node) for node in (*self.sources, *self.stones)}
