"""Filters as data: an expression of the closed language, which holds no code and is checked when read."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from nightwire.filters.language._nodes import (
    ANY,
    ROW,
    Node,
    extents_of,
    misplaced,
    names_of,
    parents,
    work,
    wrong,
)
from nightwire.filters.language._operations import POINTS
from nightwire.filters.language._source import FilterError

MAX_NODES = 2_000
"""Longest expression accepted. [node]"""

MAX_TEXT = 400_000
"""Longest program accepted as JSON text. [character]"""

MAX_COST = 100_000
"""Most work for one alert. [comparison of two numbers, ~10 ns]"""


class NotCompilable(FilterError):  # noqa: N818 - no error of the owner's: the filter runs, alert by alert
    """The closed language cannot say what a filter says; *reasons* say where and why, one line each."""


@dataclass(frozen=True)
class Program:
    """A filter in the closed language.

    Attributes:
        nodes: In an order in which each refers to earlier ones only; the last is the verdict.
        lines: For each node, the line of the source that it came from; 0 where there is none.
        texts: The source's lines that can fail, by number.
    """

    nodes: tuple[Node, ...]
    lines: tuple[int, ...]
    texts: Mapping[int, str] = field(default_factory=dict, hash=False)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.nodes, self.lines))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What it reads: canonical names and dotted paths; ``diaObject?`` is whether there is one."""
        found = dict.fromkeys(names_of(self.nodes))
        inner = {parent for name in found for parent in parents(name)}
        return tuple(dict.fromkeys(f"{name}?" if name in inner else name for name in found))

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """For each node, the list of points that it has a value for each of, or `ROW`, or `ANY`."""
        return tuple(extents_of(self.nodes))

    @cached_property
    def cost(self) -> int:
        """An upper bound of the work for one alert. [comparison of two numbers]"""
        return work(self.nodes, self.extents)

    def dumps(self) -> str:
        """Return it as JSON text."""
        nodes = [_plain(node) for node in self.nodes]
        texts = {str(line): text for line, text in self.texts.items()}
        return json.dumps({"nodes": nodes, "lines": self.lines, "texts": texts}, separators=(",", ":"))

    @classmethod
    def loads(cls, text: str) -> "Program":
        """Return the program in a JSON text.  Nothing of it is executed.

        Raises:
            FilterError: It is no program: what is wrong, and at which node.
        """
        if len(text) > MAX_TEXT:
            raise FilterError(f"the program has {len(text):,} characters, limit is {MAX_TEXT:,}")
        try:
            found = json.loads(text)
            nodes = tuple(_tupled(node) for node in found["nodes"])
            texts = {int(line): str(said)[:200] for line, said in found["texts"].items()}
            program = cls(nodes, tuple(found["lines"]), texts)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FilterError(f"this is no program: {type(error).__name__}: {error}") from error
        program.check()
        return program

    def check(self) -> None:
        """Look whether all is in its place.

        Raises:
            FilterError: An operation is unknown, an argument does not fit, or it is too long or too dear.
        """
        if not 0 < len(self.nodes) <= MAX_NODES:
            raise FilterError(f"the program has {len(self.nodes):,} nodes, limit is {MAX_NODES:,}")
        if len(self.lines) != len(self.nodes) or not all(type(line) is int for line in self.lines):
            raise FilterError("the program has not one line number for each node")
        self._check_nodes()
        if self.extents[-1] not in (ROW, ANY) or self.nodes[-1][0] in POINTS:
            raise FilterError("the program's last node is no verdict on an alert")
        if self.cost > MAX_COST:
            raise FilterError(f"the program costs {self.cost:,} comparisons an alert, limit is {MAX_COST:,}")

    def _check_nodes(self) -> None:
        for index, node in enumerate(self.nodes):
            if why := wrong(node, index):
                raise FilterError(f"node {index} of the program: {why}")
        for index, node in enumerate(self.nodes):
            if why := misplaced(node, self.nodes, self.extents):
                raise FilterError(f"node {index} of the program: {why}")


def _plain(node: Node) -> list[Any]:
    return [node[0], _encoded(node[1])] if node[0] == "const" else list(node)


def _encoded(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_encoded(one) for one in value]
    if isinstance(value, frozenset):
        return {"set": [_encoded(one) for one in sorted(value, key=repr)]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def _tupled(node: Any) -> Node:
    if isinstance(node, list) and len(node) == 2 and node[0] == "const":
        return ("const", _decoded(node[1]))
    return tuple(node)


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(one) for one in value)
    if isinstance(value, dict) and set(value) == {"set"}:
        return frozenset(_decoded(one) for one in value["set"])
    if isinstance(value, dict) and set(value) == {"float"}:
        return float(value["float"])
    return value
