"""Programs: filters as data, expressions that hold no code and are checked when read."""

import json
import math
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from nightwire.filters.language.operations import (
    ITEMS,
    MOST_POINTS,
    OPERATIONS,
    POINTS,
    REDUCTIONS,
    REFERENCES,
    ROOTS,
)
from nightwire.filters.language.source import FilterError

Node = tuple[Any, ...]

MAX_CONSTANT = 4_096
"""Longest text that a program may hold. [character]"""

MAX_CHOICES = 200_000
"""Most constants among which a program may look for a value."""

SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character, which no text in UTF-8 has."""

HIGHEST_ORDER = 29
"""Highest order of HEALPix: pixels of 0.4 milliarcseconds."""

AMONG = frozenset({"in", "sql.in", "np.isin/2"})
"""Operations that look for a value among several constants."""

ROW = -1
"""Extent of a value per alert."""

ANY = -2
"""Extent of a constant, which fits any other."""


def letters(node: Node) -> str:
    """Return what each argument of *node* is, a letter each, as in `operations`."""
    takes = OPERATIONS[node[0]].takes
    return "n" * (len(node) - 1) if takes == "*" else takes


def operands(node: Node) -> Sequence[int]:
    """Return the nodes that *node* refers to, in the order in which Python evaluates them."""
    places = REFERENCES.get(node[0])
    return node[1:] if places is None else [node[at] for at in places]


def is_constant(value: Any, *, nested: bool = False) -> bool:
    """Return whether a program may hold *value* as a constant."""
    if isinstance(value, tuple | frozenset) and not nested:
        return len(value) <= MAX_CHOICES and all(is_constant(one, nested=True) for one in value)
    if isinstance(value, str):
        whole = not value.endswith("\0") and SURROGATE.search(value) is None  # which NumPy, Arrow refuse
        return len(value) <= MAX_CONSTANT and whole
    if isinstance(value, int):
        return abs(value) < 1 << 63
    return value is None or isinstance(value, float)


def names_of(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield what each of *nodes* reads."""
    for node in nodes:
        if node[0] in ("field", "lenient", "sql.field"):
            yield node[1]
            yield from (f"{parent}?" for parent in parents(node[1]) if node[0] == "field")
        elif node[0] in ("has", "known"):
            yield f"{node[1]}?"
        elif node[0] == "points":
            yield _presence(node[1])
        elif node[0] in ("colour", "magnitudes", "healpix_at"):
            yield node[0]
        elif node[0] == "item" and nodes[node[1]][0] == "points":
            yield f"{nodes[node[1]][1]}.{node[2]}"


def parents(path: str) -> list[str]:
    """Return the records on the way along a dotted *path*: ``a`` and ``a.b`` of ``a.b.c``."""
    steps = path.split(".")
    return [".".join(steps[:end]) for end in range(1, len(steps))]


def _presence(name: str) -> str:
    return f"{name}.mjd_tai" if name in ("history", "light_curve") else f"{name}?"


def misplaced(node: Node, nodes: Sequence[Node], extents: Sequence[int]) -> str | None:
    """Return what is wrong if *node* mixes values of different lists, or lists and values."""
    lists = [nodes[at][0] in POINTS for at in operands(node)]
    if lists != [letter == "p" for letter in letters(node) if letter in "npi"]:
        return f"{node[0]} takes a list of points where there is none, or the other way round"
    if any(_is_tuple(nodes[at]) for at in list(operands(node))[: 1 if node[0] in AMONG else None]):
        return f"{node[0]} cannot take several constants"
    if why := _wrongly_chosen(node, nodes):
        return why
    return f"{node[0]} mixes values of different lists of points" if _mixed(node, nodes, extents) else None


def _wrongly_chosen(node: Node, nodes: Sequence[Node]) -> str | None:
    """Return what is wrong if *node* reads of a list of another kind."""
    points = nodes[node[1]] if node[0] in ITEMS else ("",)
    if node[0] == "item" and points[0] not in ROOTS:
        return "item reads of points that an alert has"
    if node[0] == "sift" and points[0] in ROOTS:
        return "sift chooses of a list that was cut"
    if node[0] == "before" and not (points[0] == "slice" and points[2] is not None and points[2] > 0):
        return "before reads of a list without its first point"
    return None


def _mixed(node: Node, nodes: Sequence[Node], extents: Sequence[int]) -> bool:
    """Return whether *node* has values of lists that are not its own."""
    given = list(zip(letters(node), node[1:], strict=True))
    points = next((at for letter, at in given if letter == "p"), None)
    if points is None:
        return len({extents[at] for at in operands(node)} - {ANY}) > 1
    longer = nodes[points][1] if node[0] in ("sift", "before") else ROW
    wanted = {"i": points, "n": longer}
    return any(extents[at] not in (ANY, wanted[letter]) for letter, at in given if letter in wanted)


def _is_tuple(node: Node) -> bool:
    return node[0] == "const" and isinstance(node[1], tuple | frozenset)


def extents_of(nodes: Sequence[Node]) -> Iterator[int]:
    """Yield each node's extent: the list of points it has values for, `ROW`, or `ANY`."""
    found: list[int] = []
    for node in nodes:
        found.append(_extent(node, found))
        yield found[-1]


def _extent(node: Node, found: Sequence[int]) -> int:
    operation = node[0]
    if operation == "const":
        return ANY
    if operation in ITEMS:
        return int(node[1])
    if operation in POINTS or operation in REDUCTIONS:
        return ROW
    return max([ROW, *[found[at] for at in operands(node)]])


def _work(operation: str) -> tuple[int, int]:
    cost = OPERATIONS[operation].cost
    whole_lists = operation in POINTS or operation in REDUCTIONS
    return cost * (MOST_POINTS if whole_lists else 1), cost * MOST_POINTS


WORK: Mapping[str, tuple[int, int]] = {operation: _work(operation) for operation in OPERATIONS}
"""Most work of each operation for one alert: once, or for each point. [comparison]"""


def work(nodes: Sequence[Node], extents: Sequence[int]) -> int:
    """Return an upper bound of what *nodes* cost for one alert. [comparison of two numbers]"""
    return sum(WORK[node[0]][extent >= 0] for node, extent in zip(nodes, extents, strict=True))


def wrong(node: Any, index: int) -> str | None:
    """Return what is wrong with *node*, if anything."""
    if not isinstance(node, tuple) or not node or node[0] not in OPERATIONS:
        return f"no such operation: {str(node)[:80]}"
    if len(letters(node)) != len(node) - 1 or (OPERATIONS[node[0]].takes == "*" and len(node) < 3):
        return f"{node[0]} does not take {len(node) - 1} arguments"
    for letter, argument in zip(letters(node), node[1:], strict=True):
        if not _fits(letter, argument, index):
            return f"{node[0]} cannot take {str(argument)[:80]!r}"
    return None


def _fits(letter: str, argument: Any, index: int) -> bool:
    if letter in "npi":
        return type(argument) is int and 0 <= argument < index
    if letter == "c":
        return is_constant(argument)
    if letter == "k":
        return argument is None or (type(argument) is int and abs(argument) < 1 << 31)
    if letter == "o":
        return type(argument) is int and 0 <= argument <= HIGHEST_ORDER
    if letter == "r":
        return type(argument) in (int, float) and math.isfinite(argument) and abs(argument) < 1 << 31
    return isinstance(argument, str) and len(argument) <= MAX_CONSTANT and not SURROGATE.search(argument)


MAX_NODES = 2_000
"""Longest expression accepted. [node]"""

MAX_TEXT = 4_000_000
"""Longest program accepted as JSON text. [character]"""

MAX_PLAIN = 100_000
"""Longer ones are packed. [character]"""

PACKED = "zlib:"
"""Begins the text of a packed program; the rest is base64."""

MAX_COST = 100_000
"""Most work for one alert. [comparison of two numbers, ~10 ns]"""


class NotCompilable(FilterError):  # noqa: N818 - no error of the owner's: the filter runs, alert by alert
    """The closed language cannot express a filter; *reasons* say where and why, a line each."""


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
        """Canonical names and dotted paths that it reads; ``diaObject?``: whether there is one."""
        found = dict.fromkeys(names_of(self.nodes))
        inner = {parent for name in found for parent in parents(name)}
        return tuple(dict.fromkeys(f"{name}?" if name in inner else name for name in found))

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """For each node, the list of points that it has values for, or `ROW`, or `ANY`."""
        return tuple(extents_of(self.nodes))

    @cached_property
    def cost(self) -> int:
        """An upper bound of the work for one alert. [comparison of two numbers]"""
        return work(self.nodes, self.extents)

    def renamed(self, names: Mapping[str, str]) -> "Program":
        """Return it with other names of matches, as in `MatchName`: it is judged by these."""
        return replace(self, nodes=tuple(_renamed(node, names) for node in self.nodes))

    def dumps(self) -> str:
        """Return it as JSON text, packed where that is long."""
        nodes = [_plain(node) for node in self.nodes]
        texts = {str(line): text for line, text in self.texts.items()}
        text = json.dumps({"nodes": nodes, "lines": self.lines, "texts": texts}, separators=(",", ":"))
        return text if len(text) <= MAX_PLAIN else PACKED + b64encode(zlib.compress(text.encode())).decode()

    @classmethod
    def loads(cls, text: str) -> "Program":
        """Return the program in a JSON text.  Nothing of it is executed.

        Raises:
            FilterError: It is no program: what is wrong, and at which node.
        """
        try:
            plain = _unpacked(text)
            if len(plain) > MAX_TEXT:
                raise FilterError(f"the program has {len(plain):,} characters or more, limit is {MAX_TEXT:,}")
            found = json.loads(plain)
            nodes = tuple(_tupled(node) for node in found["nodes"])
            texts = {int(line): str(text)[:200] for line, text in found["texts"].items()}
            program = cls(nodes, tuple(found["lines"]), texts)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, zlib.error) as error:
            raise FilterError(f"this is no program: {type(error).__name__}: {error}") from error
        program.check()
        return program

    def check(self) -> None:
        """Check that it is well-formed.

        Raises:
            FilterError: An operation is unknown, an argument does not fit, or it is too long or too
                dear.
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


def _unpacked(text: str) -> str:
    if not text.startswith(PACKED):
        return text
    packed = b64decode(text.removeprefix(PACKED), validate=True)
    return zlib.decompressobj().decompress(packed, MAX_TEXT + 1).decode("utf-8", "replace")


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    if OPERATIONS[node[0]].takes != "f":
        return node
    record, dot, column = node[1].partition(".")
    return (node[0], f"{names.get(record, record)}{dot}{column}")


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
