"""A program under construction: equal nodes once, constants folded, sizes bounded."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nightwire.filters.language.operations import (
    CANONICAL,
    CONTROL,
    ITEMS,
    POINTS,
    REDUCTIONS,
    REFERENCES,
    ROOTS,
    SCALAR,
)
from nightwire.filters.language.program import (
    ANY,
    MAX_COST,
    MAX_NODES,
    ROW,
    Node,
    NotCompilable,
    Program,
    operands,
    work,
    wrong,
)

MAX_STEPS = 5_000
"""Most statements that are compiled; those of helpers and joined branches count each time."""

SAFE = frozenset(
    {
        *("const", "lenient", "has", "known", "is_none", "count", "not", "and", "or", "if", "seq"),
        *("colour", "healpix_at"),
    }
)
"""Operations that cannot fail themselves."""

FOLDED: Mapping[str, Callable[..., int | float]] = {
    "neg": operator.neg, "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
"""Operations that are folded where all operands are constant numbers."""


class Builder:
    """Nodes, each with its line; *line* is the one that is compiled now.

    *survey* is called with helpers that cannot be inlined, to collect all reasons for that.

    Each node has an extent, is *safe* if it cannot have a fault and, once that was asked, an
    array's *numbers* or not.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.lines: list[int] = []
        self.extents: list[int] = []
        self.safe: list[bool] = []
        self.numbers: dict[int, bool] = {}
        self.line = 0
        self.survey: Callable[[Any, Any], None] | None = None
        self._steps = 0
        self._known: dict[Any, int] = {}

    def refuse(self, reason: str) -> NotCompilable:
        """Return the error that names this line."""
        return NotCompilable(f"line {self.line}: {reason}")

    def step(self) -> None:
        """Count a statement.

        Raises:
            NotCompilable: There were too many: branches in branches, helpers in helpers.
        """
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise self.refuse(
                f"more than {MAX_STEPS:,} statements once branches are followed and helpers put in"
            )

    def constant(self, value: Any) -> int:
        """Return the node of a constant."""
        return self._add(("const", value), (value.__class__, repr(value)), ANY, safe=True)

    def leaf(self, operation: str, *literals: str | int) -> int:
        """Return a node that refers to no other: a field, a list of points, a fault."""
        node = (operation, *literals)
        safe = operation in SAFE or operation in ROOTS or (operation == "field" and literals[0] in CANONICAL)
        return self._add(node, node if safe else (node, self.line), ROW, safe=safe)

    def of(self, operation: str, *operands: int) -> int:
        """Return the node of an *operation* on values of an alert, or of a point.

        Where both meet, the alert's are broadcast to the points.

        Raises:
            NotCompilable: They belong to different lists of points.
        """
        extents = self.extents
        extent = ANY
        for at in operands:
            if extents[at] > extent:
                extent = extents[at]
        if extent == ANY and operation in FOLDED:
            folded = self._folded(operation, operands)
            if folded is not None:
                return folded
        if extent >= 0:
            operands = tuple([self.broadcast(at, extent) for at in operands])
        node = (operation, *operands)
        safe = operation in SAFE and all(self.safe[at] for at in operands)
        key = node if extent >= 0 or operation not in SCALAR else (node, self.line)
        return self._add(node, key, ROW if extent == ANY else extent, safe=safe)

    def points(self, operation: str, *arguments: Any) -> int:
        """Return the node of a list of points, of a value per point, or of one made of a list.

        Raises:
            NotCompilable: A number among its *arguments* is larger than programs hold.
        """
        node = (operation, *arguments)
        if len(node) > 1 + len(REFERENCES[operation]) and (why := wrong(node, len(self.nodes))):
            raise self.refuse(why)
        extent = arguments[0] if operation in ITEMS else ROW
        safe = operation in SAFE or operation in POINTS or (operation in ITEMS and self._sound(arguments))
        # which can fail, and should say where
        key = (node, self.line) if operation in REDUCTIONS else node
        return self._add(node, key, extent, safe=safe)

    def text(self, operation: str, operand: int, text: str) -> int:
        """Return the node of an *operation* on a value and a text."""
        node = (operation, operand, text)
        return self._add(node, node, self.extents[operand], safe=False)

    def then(self, first: int | None, second: int) -> int:
        """Return *second*, or the fault of *first* where it has one."""
        if first is None or self.safe[first] or self.begins_with(second, first):
            return second
        return self.of("seq", first, second)

    def both(self, first: int | None, second: int | None) -> int | None:
        """Return the guard that faults where either does, *first* first; None where neither can."""
        if second is None or self.safe[second]:
            return None if first is None or self.safe[first] else first
        return self.then(first, second)

    def begins_with(self, node: int, first: int) -> bool:
        """Return whether Python evaluates *first* first of all when it evaluates *node*."""
        while node > first:
            at = self.nodes[node]
            if at[0] not in SCALAR and at[0] not in CONTROL:
                return False
            node = at[1]
        return node == first

    def program(self, verdict: int, texts: Sequence[str]) -> Program:
        """Return the program that ends with *verdict*, of the nodes that it needs.

        Raises:
            NotCompilable: It would cost too much.
        """
        if self.extents[verdict] >= 0 or self.nodes[verdict][0] in POINTS:
            raise self.refuse("the function returns a value per point of the history; a verdict is one value")
        needed = _needed(self.nodes, verdict)
        cost = work([self.nodes[at] for at in needed], [self.extents[at] for at in needed])
        if cost > MAX_COST:
            raise NotCompilable(f"it may cost {cost:,} comparisons an alert; the limit is {MAX_COST:,}")
        return _pruned(self, needed, texts)

    def _sound(self, arguments: Sequence[Any]) -> bool:
        return not isinstance(arguments[1], int) or self.safe[arguments[1]]

    def broadcast(self, at: int, extent: int) -> int:
        """Return the node of a value for each point of *extent*.

        Raises:
            NotCompilable: It is one of other points.
        """
        found = self.extents[at]
        if found in (extent, ANY):
            return at
        if found != ROW:
            raise self.refuse(
                "two lists of points of different length meet in one expression; choose the points first, "
                "then compute with what is left"
            )
        return self.points("lift", extent, at)

    def _folded(self, operation: str, operands: Sequence[int]) -> int | None:
        values = [self.nodes[at][1] for at in operands if self.nodes[at][0] == "const"]
        if len(values) < len(operands) or not all(type(value) in (int, float) for value in values):
            return None
        try:
            folded = FOLDED[operation](*values)
        except ArithmeticError:
            return None
        return self.constant(folded) if type(folded) is float or abs(folded) < 1 << 63 else None

    def _add(self, node: Node, key: Any, extent: int, *, safe: bool) -> int:
        known = self._known.get(key)
        if known is not None:
            return known
        at = len(self.nodes)
        if at >= MAX_NODES:
            raise self.refuse(
                f"the filter is longer than {MAX_NODES:,} operations once its helpers are put in"
            )
        self._known[key] = at
        self.nodes.append(node)
        self.lines.append(self.line)
        self.extents.append(extent)
        self.safe.append(safe)
        return at


def _pruned(builder: Builder, needed: Sequence[int], texts: Sequence[str]) -> Program:
    """Return the nodes that are *needed*, numbered anew."""
    place = {at: new for new, at in enumerate(needed)}
    nodes = tuple([_renumbered(builder.nodes[at], place) for at in needed])
    lines = tuple([builder.lines[at] for at in needed])
    code = {line: texts[line - 1].strip()[:120] for line in set(lines) if 0 < line <= len(texts)}
    return Program(nodes, lines, code)


def _needed(nodes: Sequence[Node], verdict: int) -> list[int]:
    """Return the nodes that *verdict* needs."""
    wanted = [False] * verdict + [True]
    for at in range(verdict, -1, -1):
        if wanted[at]:
            for one in operands(nodes[at]):
                wanted[one] = True
    return [at for at, needed in enumerate(wanted) if needed]


def _renumbered(node: Node, place: Mapping[int, int]) -> Node:
    places = REFERENCES.get(node[0])
    if places is None:
        return (node[0], *[place[at] for at in node[1:]])
    if not places:
        return node
    new = list(node)
    for at in places:
        new[at] = place[node[at]]
    return tuple(new)
