"""What an XPath expression may cost at most, from its shape and the size of the document.  Pure.

The bound follows how libxml2 evaluates (2.9 to 2.15): step by step over sets of nodes, predicates
once per candidate, a search for duplicates where the sets of a step may overlap, a sort where a
function or a parenthesis wants document order, pairs where two sets are compared.  All sizes are
sums over *every* evaluation of the same subexpression, since that is what makes ``//Group[Param]``
cheap: each element has one parent, so all its predicates together look at each element once.

A unit is about a nanosecond on a slow core; the bound is meant to be above the truth, mostly far
above.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log2

from nightwire.gateway.xpath.expression import Call, Expression, Literal, Operation, Path, Step

VISIT, WALK, CALL, BYTE = 60, 4, 250, 4
"""Units for a node that is tested, a node on the way, an operation, a byte of a string."""
NUMBER = 32
"""Length of a number as a string. [byte]"""

_LOCAL = ("child", "attribute", "self")
"""Axes on which different nodes lead to different nodes."""
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_SEARCHES = ("contains", "starts-with", "substring-before", "substring-after")
_NAMES = ("name", "local-name", "namespace-uri")
_STRINGS = (*_SEARCHES, *_NAMES, "string", "concat", "substring", "normalize-space", "translate")
_SILENT = ("count", "not", "boolean", "true", "false", "position", "last", "sum", "lang")
"""Functions that make no string of what they are given."""
_OF_CONTEXT = ("string", "number", "string-length", "normalize-space", *_NAMES)
"""Functions that take the context node where they are given nothing."""


@dataclass(frozen=True)
class Size:
    """How large a document is.

    Attributes:
        nodes: Elements, texts, comments and the document itself.
        attributes: Attributes.
        length: Of the document. [byte]
        depth: Deepest nesting of elements.
    """

    nodes: int
    attributes: int
    length: int
    depth: int


@dataclass(frozen=True)
class _Value:
    """What evaluations of one subexpression yield, all together.

    Attributes:
        texts: Length of all strings, or of the string values of all nodes. [byte]
        longest: Length of the longest one. [byte]
    """

    texts: int = 0
    longest: int = 0


@dataclass(frozen=True)
class _Nodes(_Value):
    """Sets of nodes, one for each evaluation.

    Attributes:
        total: Nodes in all of them.
        most: Nodes in one of them.
        repeat: How often one node may occur in all of them.
        order: How far each set is known to be in document order.
        at_once: Length of the string values of one evaluation. [byte]
    """

    total: int = 0
    most: int = 0
    repeat: int = 0
    order: int = 0
    at_once: int = 0


UNORDERED, ORDERED, FLAT = 0, 1, 2
"""Nothing known; in document order; besides, none lies inside another."""


def cost_of(expression: Expression, size: Size) -> int:
    """Return an upper bound of what one evaluation over a document of *size* costs. [unit]"""
    counter = _CostCounter(size)
    counter.value(expression, 1, 1)
    return counter.cost


class _CostCounter:
    """Add up costs.  *evaluations* says how often a subexpression is evaluated, each time from one
    context node, and *repeat* how often the same node is that context."""

    def __init__(self, size: Size) -> None:
        self._size = size
        self.cost = 0

    def value(self, expression: Expression, evaluations: int, repeat: int) -> _Value:
        self.cost += evaluations * CALL
        match expression:
            case Literal(length):
                return _Value(evaluations * length, length)
            case Operation():
                return self._operation(expression, evaluations, repeat)
            case Call():
                return self._call(expression, evaluations, repeat)
            case Path():
                return self._path(expression, evaluations, repeat)

    def _operation(self, operation: Operation, evaluations: int, repeat: int) -> _Value:
        operands = [self.value(one, evaluations, repeat) for one in operation.operands]
        if operation.operator == "|":
            return self._union(operands)
        if operation.operator in _COMPARISONS:
            for number, one in enumerate(operands):
                for other in operands[:number]:
                    self._compare(one, other)
        if operation.operator not in ("and", "or"):
            for one in operands:
                self._as_text(one, evaluations)
        return _Value(evaluations * NUMBER, NUMBER)

    def _union(self, operands: Sequence[_Value]) -> _Nodes:
        sets = [one for one in operands if isinstance(one, _Nodes)]
        union = sets[0] if sets else self._nodes(0, 0, 0)
        for other in sets[1:]:
            self.cost += union.most * other.total * WALK
            total, most = union.total + other.total, union.most + other.most
            union = self._nodes(total, most, union.repeat + other.repeat)
        return union

    def _compare(self, one: _Value, other: _Value) -> None:
        """Count the pairs of two sets; strings that begin alike are compared in full."""
        if isinstance(one, _Nodes) and isinstance(other, _Nodes):
            pairs = min(one.total * other.most, one.most * other.total)
            self.cost += pairs * 2 * WALK
            self.cost += min(one.total * other.at_once, other.total * one.at_once) * BYTE
            self.cost += (one.texts + other.texts) * 2 * BYTE + (one.total + other.total) * 2 * CALL
        for nodes in (one, other):
            if isinstance(nodes, _Nodes):
                self.cost += nodes.total * CALL + nodes.texts * 2 * BYTE

    def _call(self, call: Call, evaluations: int, repeat: int) -> _Value:
        name = call.function
        arguments = [self.value(one, evaluations, repeat) for one in call.arguments]
        if name not in ("count", "position", "last"):
            for one in arguments:
                self._sort(one, evaluations)
        if not arguments and name in _OF_CONTEXT:
            arguments = [self._nodes(evaluations, 1, repeat, FLAT)]
        if name == "sum":
            self.cost += sum(
                one.texts * BYTE + one.total * CALL for one in arguments if isinstance(one, _Nodes)
            )
        if name == "lang":
            self.cost += evaluations * (self._size.depth * VISIT + self._size.length * BYTE)
        if name in _SILENT:
            return _Value(evaluations * NUMBER, NUMBER)
        return self._text_of(name, [self._as_text(one, evaluations) for one in arguments], evaluations)

    def _text_of(self, name: str, arguments: Sequence[_Value], evaluations: int) -> _Value:
        """Return the string that the function *name* makes of strings, or a number."""
        if not arguments or name not in _STRINGS:
            return _Value(evaluations * NUMBER, NUMBER)
        first, others = arguments[0], sum(one.longest for one in arguments[1:])
        if name in (*_SEARCHES, "translate"):
            self.cost += first.texts * others * BYTE * (2 if name == "translate" else 1)
        if name == "concat":
            texts, longest = sum(one.texts for one in arguments), first.longest + others
            self.cost += texts * len(arguments) * BYTE
            return _Value(texts, longest)
        grown = 4 if name == "translate" else 1  # a byte may become a character of four
        return _Value(first.texts * grown, first.longest * grown)

    def _path(self, path: Path, evaluations: int, repeat: int) -> _Value:
        if path.start is None:
            found = self._nodes(evaluations, 1, evaluations if path.absolute else repeat, FLAT)
        else:
            start = self.value(path.start, evaluations, repeat)
            if not isinstance(start, _Nodes):
                return start
            self._sort(start, evaluations)
            self._count_predicates(path.predicates, start.total, start.repeat)
            found = replace(start, order=max(start.order, ORDERED))
        for step in _shortened(path.steps):
            found = self._step(step, found, evaluations)
        return found

    def _step(self, step: Step, found: _Nodes, evaluations: int) -> _Nodes:
        visited, repeat, most = self._visited(step.axis, found, evaluations)
        self.cost += found.total * CALL + visited * VISIT
        self._count_predicates(step.predicates, visited, repeat)
        order = _order(step, found)
        if step.axis == "attribute" and step.named:
            return self._nodes(min(visited, found.total), min(most, found.most), repeat, order, "attribute")
        if step.axis in _LOCAL:
            return self._nodes(visited, most, repeat, order, step.axis)
        if found.most > 1:
            self.cost += visited * most * WALK  # the search for duplicates
        repeat = min(repeat, evaluations)
        total = min(visited, evaluations * most, repeat * self._size.nodes)
        return self._nodes(total, min(most, total), repeat, order)

    def _visited(self, axis: str, found: _Nodes, evaluations: int) -> tuple[int, int, int]:
        """Return the nodes that a step visits, how often the same one, and those that are kept."""
        size, total, repeat, levels = self._size, found.total, found.repeat, self._size.depth + 2
        match axis:
            case "self":
                return total, repeat, found.most
            case "child":
                return min(total, repeat) * size.nodes, repeat, size.nodes
            case "attribute":
                return min(total, repeat) * size.attributes, repeat, size.attributes
            case "parent":
                return total, total, min(found.most, size.nodes)
            case "ancestor" | "ancestor-or-self":
                return total * levels, total, min(found.most * levels, size.nodes)
            case "descendant" | "descendant-or-self":
                above = min(total, repeat * levels, evaluations if found.order == FLAT else total)
                return above * (size.nodes + 1), above, size.nodes + 1
        return total * size.nodes, total, size.nodes

    def _count_predicates(self, predicates: Sequence[Expression], candidates: int, repeat: int) -> None:
        for predicate in predicates:
            self.value(predicate, candidates, repeat)

    def _sort(self, value: _Value, evaluations: int) -> None:
        """Count a sort: comparing two nodes walks along their siblings and up to the root."""
        if not isinstance(value, _Nodes) or value.most <= 1:
            return
        nodes, levels = self._size.nodes, self._size.depth + 2
        if value.order == UNORDERED:
            self.cost += int(value.total * (log2(value.most) + 1)) * 2 * (nodes + levels) * WALK
        else:  # one pass, which walks over each sibling once
            self.cost += (value.total * 4 * levels + min(evaluations, value.repeat * levels) * nodes) * WALK

    def _as_text(self, value: _Value, evaluations: int) -> _Value:
        """Return *value* as strings: of a set of nodes, the first counts."""
        read = _Value(min(value.texts, evaluations * value.longest), value.longest)
        self.cost += evaluations * CALL + read.texts * 2 * BYTE
        return read

    def _nodes(self, total: int, most: int, repeat: int, order: int = UNORDERED, axis: str = "") -> _Nodes:
        length = self._size.length
        overlap = 1 if axis == "attribute" else self._size.depth + 1
        texts = min(total, repeat * overlap) * length
        return _Nodes(texts, length, total, most, repeat, order, min(most, overlap) * length)


def _order(step: Step, found: _Nodes) -> int:
    """Return what is known of the order of what *step* finds from *found*."""
    if found.order == UNORDERED or (step.typed and step.axis != "attribute"):
        return UNORDERED
    if step.axis in ("self", "attribute"):
        return found.order
    if found.order == FLAT and step.axis in ("child", "descendant", "descendant-or-self"):
        return FLAT if step.axis == "child" else ORDERED
    return UNORDERED


def _shortened(steps: Sequence[Step]) -> list[Step]:
    """Return *steps* with ``//name`` as one step, as libxml2 does where no predicate follows."""
    found: list[Step] = []
    for step in steps:
        if found and found[-1].shorthand and step.axis == "child" and not step.predicates:
            found[-1] = replace(step, axis="descendant")
        else:
            found.append(step)
    return found


MAX_COST, MAX_COST_PER_BYTE = 30_000_000, 300
"""Highest cost of one evaluation, and its growth for each byte of the event. [unit of `cost`]"""


def cost_limit(size: Size) -> int:
    return MAX_COST + MAX_COST_PER_BYTE * size.length
