"""Nodes of programs: what they refer to, what they read, and whether all is in its place."""

from collections.abc import Iterator, Sequence
from typing import Any

from nightwire.filters.language._operations import ITEMS, MOST_POINTS, OPERATIONS, POINTS, REDUCTIONS

Node = tuple[Any, ...]

MAX_CONSTANT = 4_096
"""Longest text, or tuple, that a program may hold."""

AMONG = frozenset({"in", "sql.in"})
"""Operations that look for a value among several constants."""

ROW = -1
"""Extent of a value that an alert has one of."""

ANY = -2
"""Extent of a constant: as many as are asked for."""


def letters(node: Node) -> str:
    """Return what each argument of *node* is, a letter each, as `_operations` has them."""
    takes = OPERATIONS[node[0]].takes
    return "n" * (len(node) - 1) if takes == "*" else takes


def operands(node: Node) -> Iterator[int]:
    """Yield the nodes that *node* refers to, in the order in which Python evaluates them."""
    return (at for letter, at in zip(letters(node), node[1:], strict=True) if letter in "npi")


def is_constant(value: Any, *, nested: bool = False) -> bool:
    """Return whether a program may hold *value* as a constant."""
    if isinstance(value, tuple | frozenset) and not nested:
        return len(value) <= MAX_CONSTANT and all(is_constant(one, nested=True) for one in value)
    if isinstance(value, str):
        return len(value) <= MAX_CONSTANT
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
        elif node[0] == "item":
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
    if node[0] == "item" and nodes[node[1]][0] != "points":
        return "item reads of points that an alert has"
    if node[0] == "sift" and nodes[node[1]][0] == "points":
        return "sift chooses of a list that was cut"
    allowed = {ANY} | _allowed(node, nodes)
    values = {extents[at] for at, is_list in zip(operands(node), lists, strict=True) if not is_list}
    if values <= allowed if allowed != {ANY} else len(values - allowed) <= 1:
        return None
    return f"{node[0]} mixes values of different lists of points"


def _is_tuple(node: Node) -> bool:
    return node[0] == "const" and isinstance(node[1], tuple | frozenset)


def _allowed(node: Node, nodes: Sequence[Node]) -> set[int]:
    """Return the extents that the operands of *node* may have; nothing where they need only agree."""
    if node[0] in ("lift", "fold"):
        return {ROW, node[2]} if node[0] == "fold" else {ROW}
    if node[0] == "sift":
        return {nodes[node[1]][1]}
    if node[0] in REDUCTIONS or node[0] in POINTS or node[0] in ITEMS:
        return {next(iter(operands(node)))} if "p" in letters(node) else set()
    return set()


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


def times(operation: str, extent: int) -> int:
    """Return how often an alert has an *operation* done, at most."""
    return MOST_POINTS if extent >= 0 or operation in POINTS or operation in REDUCTIONS else 1


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
    return isinstance(argument, str) and len(argument) <= MAX_CONSTANT
