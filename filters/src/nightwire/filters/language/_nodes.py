"""Nodes of programs: what they refer to, what they read, and whether all is in its place."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nightwire.filters.language._operations import (
    ITEMS,
    MOST_POINTS,
    OPERATIONS,
    POINTS,
    REDUCTIONS,
    REFERENCES,
    ROOTS,
)

Node = tuple[Any, ...]

MAX_CONSTANT = 4_096
"""Longest text, or tuple, that a program may hold."""

HIGHEST_ORDER = 29
"""Of HEALPix: pixels of 0.4 milliarcseconds."""

AMONG = frozenset({"in", "sql.in", "np.isin/2"})
"""Operations that look for a value among several constants."""

ROW = -1
"""Extent of a value that an alert has one of."""

ANY = -2
"""Extent of a constant: as many as are asked for."""


def letters(node: Node) -> str:
    """Return what each argument of *node* is, a letter each, as `_operations` has them."""
    takes = OPERATIONS[node[0]].takes
    return "n" * (len(node) - 1) if takes == "*" else takes


def operands(node: Node) -> Sequence[int]:
    """Return the nodes that *node* refers to, in the order in which Python evaluates them."""
    places = REFERENCES.get(node[0])
    return node[1:] if places is None else [node[at] for at in places]


def is_constant(value: Any, *, nested: bool = False) -> bool:
    """Return whether a program may hold *value* as a constant."""
    if isinstance(value, tuple | frozenset) and not nested:
        return len(value) <= MAX_CONSTANT and all(is_constant(one, nested=True) for one in value)
    if isinstance(value, str):
        return len(value) <= MAX_CONSTANT and not value.endswith("\0")  # which NumPy drops
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
    """Return what is wrong if *node* mixes values of different lists of points, or points and values."""
    lists = [nodes[at][0] in POINTS for at in operands(node)]
    if lists != [letter == "p" for letter in letters(node) if letter in "npi"]:
        return f"{node[0]} takes a list of points where there is none, or the other way round"
    if any(_is_tuple(nodes[at]) for at in list(operands(node))[: 1 if node[0] in AMONG else None]):
        return f"{node[0]} cannot take several constants"
    if why := _wrongly_chosen(node, nodes):
        return why
    return f"{node[0]} mixes values of different lists of points" if _mixed(node, nodes, extents) else None


def _wrongly_chosen(node: Node, nodes: Sequence[Node]) -> str | None:
    """Return what is wrong if *node* reads of a list that is none of its kind."""
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
    """Yield, for each of *nodes*, the list of points that it has a value for each of, or `ROW`, or `ANY`."""
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
"""Most work of each operation for one alert: done once, and for each point. [comparison of two numbers]"""


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
    return isinstance(argument, str) and len(argument) <= MAX_CONSTANT
