"""A flow: sources, stones, and the edges between them.  Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nightwire.flows.model.kinds import KINDS, Kind
from nightwire.schemas import MendableError
from nightwire.schemas.topics import flow_queue

ELSE = "else"
"""The port of a router for events with none of its values."""

TEXT = " text"
"""Suffix of a key: its line is the first of the key's multi-line text."""

ENDS = ("start", "end")
"""Values of `begin` that are no times."""


class FlowError(MendableError):
    """A flow's text is wrong, or the flow cannot run here.

    Args:
        reasons: The errors, each with its line.
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
        survey: Survey of its alerts; empty for unknown.
        begin: The first position: ``start``, ``end``, or a time, from the archive where Kafka has
            deleted it.
        worker: The worker that reads it; empty for any.
        lines: The lines of its keys in the text, and its own under the empty key.
    """

    name: str
    topic: str
    survey: str = ""
    begin: str = "end"
    worker: str = ""
    lines: Mapping[str, int] = field(default_factory=dict)

    def line(self, key: str) -> int:
        """Return the line of *key*, else its own."""
        return self.lines.get(key) or self.lines.get("", 1)


@dataclass(frozen=True)
class Edge:
    """An edge, by its beginning: a source or stone, and one of its ports."""

    node: str
    port: str = ""


@dataclass(frozen=True)
class Stone:
    """A node of a flow that handles events.

    Attributes:
        name: Its name in the flow.
        kind: One of `KINDS`.
        inputs: The edges that lead to it.
        worker: The worker that runs it; empty for any.
        options: Values of the kind's keys.
        lines: The lines of its keys in the text, and its own under the empty key.
    """

    name: str
    kind: str
    inputs: tuple[Edge, ...]
    worker: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def spec(self) -> Kind:
        """The specification of its kind."""
        return KINDS[self.kind]

    @property
    def ports(self) -> tuple[str, ...]:
        """The names of its outputs: an empty one where there is only one, none of terminals."""
        if self.kind == "router":
            return (*map(str, self.options["values"]), ELSE)
        return () if self.spec.terminal else ("",)


@dataclass(frozen=True)
class Flow:
    """A graph through which events go.

    Attributes:
        name: The flow's name.
        sources: By name.
        stones: By name, in topological order.
    """

    name: str
    sources: Mapping[str, Source]
    stones: Mapping[str, Stone]

    @property
    def input_topics(self) -> set[str]:
        """The topics of its sources."""
        return {one.topic for one in self.sources.values()}

    @property
    def output_topics(self) -> set[str]:
        """The topics of this Kafka that its terminals write."""
        return {one.options["topic"] for one in self.stones.values() if one.kind == "topic"}

    @property
    def group(self) -> str:
        """The consumer group of its parts."""
        return f"flow.{self.name}"

    def queue(self, stone: str) -> str:
        """Return the queue of *stone*: the topic in which its events wait."""
        return flow_queue(self.name, stone)

    def followers(self, node: str, port: str = "") -> Iterator[Stone]:
        """Yield the stones that get the events of *node* and *port*."""
        return (one for one in self.stones.values() if Edge(node, port) in one.inputs)

    def worker_of(self, node: str) -> str:
        """Return the worker of a source or stone; empty for any."""
        return self.sources[node].worker if node in self.sources else self.stones[node].worker

    @property
    def workers(self) -> set[str]:
        """The workers that its nodes name; an empty name where one may run anywhere."""
        return {self.worker_of(node) for node in (*self.sources, *self.stones)}
