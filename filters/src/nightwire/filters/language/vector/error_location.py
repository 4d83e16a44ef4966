"""Where the fault of an alert began: the node, and its line, whose operands had no fault."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from nightwire.filters.language.operations import REDUCTIONS, ROOTS
from nightwire.filters.language.program import Node, Program, operands
from nightwire.filters.language.vector.ragged import RaggedPoints, first_of_each, placed
from nightwire.filters.language.vector.values import Array, Value, truth

IndexMap = Callable[[Array], Array]
"""Maps places in a node's values to places in an operand's; -1 for none."""


class Trail(NamedTuple):
    """Alerts with a fault, and its index in a node's values: the alert's, or a point's."""

    rows: Array
    places: Array


def error_locations(program: Program, found: Sequence[Any]) -> Iterator[tuple[int, Array]]:
    """Yield nodes, each with the rows whose fault began there.

    Args:
        program: Whose faults they are.
        found: What each of its nodes gave.
    """
    codes = found[-1].fault
    rows = np.flatnonzero(codes)
    waiting: dict[int, list[Trail]] = {len(program.nodes) - 1: [Trail(rows, rows)]}
    for at in range(len(program.nodes) - 1, -1, -1):
        for trail in waiting.pop(at, ()):
            left = trail
            for operand, index_map in _back(program.nodes, at, found):
                hit, further = _followed(found[operand], index_map, left, codes)
                hit &= _reached(program.nodes[at], operand, found, left.places)
                if hit.any():
                    waiting.setdefault(operand, []).append(Trail(left.rows[hit], further[hit]))
                    left = Trail(left.rows[~hit], left.places[~hit])
            if len(left.rows):
                yield at, left.rows


def _followed(value: Value, index_map: IndexMap, trail: Trail, codes: Array) -> tuple[Array, Array]:
    """Return which of *trail* have the same fault in *value*, and where."""
    if value.fault is None or not len(value.fault) or not len(trail.rows):
        return np.zeros(len(trail.rows), bool), trail.places
    places = index_map(trail.places)
    return (places >= 0) & (value.fault[places] == codes[trail.rows]), places


def _back(nodes: Sequence[Node], at: int, found: Sequence[Any]) -> Iterator[tuple[int, IndexMap]]:
    """Yield the operands that Python evaluates for a node, in their order, and the maps there."""
    node = nodes[at]
    lists = [one for one in operands(node) if isinstance(found[one], RaggedPoints)]
    if not lists:
        yield from ((one, _same) for one in operands(node))
        return
    (points,) = lists
    before, item = _around(node, points)
    yield from ((one, _same) for one in before)
    if item is None:
        yield from _of_the_best(nodes, points, found)
        return
    index_map = _into(node, found[points], found[item])
    yield from _conditions(nodes, points, found, index_map)
    back = {"sift": 0, "before": 1}.get(node[0])
    yield (
        item,
        index_map if back is None else _composed(index_map, lambda places: found[points].kept[places] - back),
    )


def _of_the_best(nodes: Sequence[Node], points: int, found: Sequence[Any]) -> Iterator[tuple[int, IndexMap]]:
    """Yield the values by which a point was chosen, and the map to the first that has a fault."""
    if nodes[points][0] == "best":
        longer, key = nodes[points][1:3]
        yield key, _first_faulty(found[longer], found[key])


def _around(node: Node, points: int) -> tuple[list[int], int | None]:
    """Return the operands before a list of points, and that of its values."""
    every = list(operands(node))
    where = every.index(points)
    return every[:where], every[where + 1] if where + 1 < len(every) else None


def _same(places: Array) -> Array:
    return places


def _composed(first: IndexMap, second: IndexMap) -> IndexMap:
    def index_map(places: Array) -> Array:
        between = first(places)
        return np.where(between >= 0, second(between), -1)

    return index_map


def _into(node: Node, ragged: RaggedPoints, item: Value) -> IndexMap:
    """Return the map from a node's values to the points."""
    if node[0] == "lift":
        return lambda places: ragged.owners[places]
    if node[0] not in REDUCTIONS:
        return _same
    if node[0] == "at":
        place, there = placed(ragged, node[3])
        return lambda alerts: np.where(there, place, -1)[alerts]
    return _first_faulty(ragged, item)


def _first_faulty(ragged: RaggedPoints, item: Value) -> IndexMap:
    first = np.full(len(ragged.lengths), -1)
    fault = ragged.faulty(item)
    if fault is not None:
        alerts, points = first_of_each(ragged, fault != 0)
        first[alerts] = points
    return lambda alerts: first[alerts]


def _conditions(
    nodes: Sequence[Node], points: int, found: Sequence[Any], index_map: IndexMap
) -> Iterator[tuple[int, IndexMap]]:
    """Yield the conditions by which *points* were chosen, and the maps there."""
    while nodes[points][0] not in ROOTS:
        kept = found[points].kept
        # bound now
        index_map = _composed(index_map, lambda places, kept=kept: kept[places])  # type: ignore[misc]
        if nodes[points][0] == "where":
            yield nodes[points][2], index_map
        points = nodes[points][1]


def _reached(node: Node, operand: int, found: Sequence[Any], places: Array) -> Array:
    """Return in which *places* Python would have come to *operand*."""
    if node[0] not in ("if", "and", "or") or operand == node[1]:
        return np.ones(len(places), bool)
    size = 1 + int(places.max(initial=0))
    true = truth(found[node[1]], max(size, _size(found[node[1]])))[0][places]
    wanted = node[0] == "and" or (node[0] == "if" and operand == node[2])
    return true if wanted else ~true


def _size(value: Value) -> int:
    arrays = [typed.values for typed in value.typed if isinstance(typed.values, np.ndarray)]
    masks = [typed.where for typed in value.typed if typed.where is not None]
    return max(map(len, [*arrays, *masks]), default=0)
