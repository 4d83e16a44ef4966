"""Tables of alerts judged by programs: verdicts, ranks and faults, as Python gives them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from nightwire.filters.language.program import ANY, ROW, Node, Program, letters, operands
from nightwire.filters.language.vector.error_location import error_locations
from nightwire.filters.language.vector.run import Result, Run
from nightwire.filters.language.vector.values import NEEDS_PYTHON, Array, Value, python, truth
from nightwire.schemas import AlertTable


class CostShares:
    """The shares of programs in the costs of the nodes that they have in common.

    Args:
        places: For each program, for each of its nodes, its number among all different nodes.
    """

    def __init__(self, places: Sequence[Sequence[int]]) -> None:
        own = [np.unique(np.asarray(some, np.int64)) for some in places]
        self._own = np.concatenate(own) if own else np.zeros(0, np.int64)
        self._starts = np.cumsum([0, *map(len, own)])[:-1]
        self._users = np.bincount(self._own)
        self.nodes = len(self._users)

    def costs(self, nodes: Sequence[float], alone: Sequence[float], cpu_s: float) -> Array:
        """Return the CPU time of each program. [s]

        Args:
            nodes: Time that each different node took. [s]
            alone: Time that each program took beside its nodes. [s]
            cpu_s: CPU time of all together, beside other work on this machine. [s]
        """
        if not len(alone):
            return np.zeros(0)
        shared = (np.asarray(nodes) / self._users)[self._own]
        times = np.add.reduceat(shared, self._starts) + alone
        whole = float(times.sum())
        return times * (cpu_s / whole) if whole else times


REMEMBERED = 16
"""Sets of programs whose shared nodes are cached."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """The verdicts of a filter on n alerts.

    Attributes:
        passed: bool, shape (n,).
        rank: float64, shape (n,): the number that the filter returned; NaN where it is none.
            Where *passed* alone.
        faults: By row, what Python would have raised, and in which line.
        needs_python: Rows that Python itself has to judge: whole numbers beyond 64 bits, and such.
        cpu_s: CPU time that it took; of what it shares with others, an equal part. [s]
    """

    passed: Array
    rank: Array
    faults: Mapping[int, str] = field(default_factory=dict)
    needs_python: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    cpu_s: float = 0.0


def evaluate(program: Program, table: AlertTable) -> Verdicts:
    """Return the verdicts of *program* on *table*, which has the columns ``program.names``."""
    return evaluate_all([program], table)[0]


def evaluate_all(programs: Sequence[Program], table: AlertTable) -> list[Verdicts]:
    """Return the verdicts of each of *programs*; common subexpressions are computed once."""
    shared = _shared_nodes(tuple(programs))
    run, began = Run(table), thread_time()
    results: dict[int, Any] = {}
    verdicts, times, alone = [], [0.0] * shared.shares.nodes, []
    with np.errstate(all="ignore"):
        for program, places, done in zip(programs, shared.places, shared.done, strict=True):
            for node, place, extent in zip(program.nodes, places, program.extents, strict=True):
                if place not in results:
                    moment = perf_counter()
                    results[place] = _computed(
                        run, node, [results[places[at]] for at in operands(node)], results, places, extent
                    )
                    times[place] += perf_counter() - moment
            moment = perf_counter()
            found = [results[place] for place in places]
            verdicts.append(_verdicts(program, found, run))
            alone.append(perf_counter() - moment)
            for place in done:
                del results[place]
    costs = shared.shares.costs(times, alone, thread_time() - began).tolist()
    return [replace(one, cpu_s=cost) for one, cost in zip(verdicts, costs, strict=True)]


def _computed(
    run: Run, node: Node, given: Sequence[Any], results: Mapping[int, Any], places: Sequence[int], extent: int
) -> Result:
    size = run.size if extent in (ROW, ANY) else len(results[places[extent]])
    return run.node(node, given, size)


@dataclass(frozen=True)
class _SharedNodes:
    """The different nodes of several programs, by number.

    Attributes:
        places: For each program, for each node, its number among all different nodes.
        done: For each program, the nodes that no later one needs.
        shares: Which program pays for which node.
    """

    places: Sequence[Sequence[int]]
    done: Sequence[Sequence[int]]
    shares: CostShares


@lru_cache(maxsize=REMEMBERED)
def _shared_nodes(programs: tuple[Program, ...]) -> _SharedNodes:
    numbers: dict[Any, int] = {}
    places = [_placed(program, numbers) for program in programs]
    last = {place: at for at, some in enumerate(places) for place in some}
    done: list[list[int]] = [[] for _ in programs]
    for place, at in last.items():
        done[at].append(place)
    return _SharedNodes(places, done, CostShares(places))


def _placed(program: Program, numbers: dict[Any, int]) -> list[int]:
    places: list[int] = []
    for node in program.nodes:
        key: Any = (node[0], *_arguments(node, places))
        if node[0] == "const":
            key = ("const", node[1].__class__, repr(node[1]))
        places.append(numbers.setdefault(key, len(numbers)))
    return places


def _arguments(node: Node, places: Sequence[int]) -> Iterator[Any]:
    for letter, argument in zip(letters(node), node[1:], strict=True):
        yield places[argument] if letter in "npi" else argument


def _verdicts(program: Program, found: Sequence[Any], run: Run) -> Verdicts:
    value: Value = found[-1]
    true, fault = truth(value, run.size)
    passed = np.array(true)
    rank = _ranks(value, passed)
    if fault is None:
        return Verdicts(passed, rank)
    needs_python = np.flatnonzero(fault == NEEDS_PYTHON)
    return Verdicts(passed, rank, _fault_texts(program, found, run), needs_python)


def _ranks(value: Value, passed: Array) -> Array:
    rank = np.full(len(passed), np.nan)
    for typed in value.typed:
        where = typed.within(passed)
        if typed.kind in ("int", "npint", "float", "npfloat"):
            rank[where] = typed.values[where] if isinstance(typed.values, np.ndarray) else typed.values
        elif typed.kind == "str":
            rows = np.flatnonzero(where)
            rank[rows] = [_number(one) for one in python(typed, rows)]
    return rank


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _fault_texts(program: Program, found: Sequence[Any], run: Run) -> dict[int, str]:
    """Return the text of each row's fault, with its line."""
    texts: dict[int, str] = {}
    codes = found[-1].fault
    for at, rows in error_locations(program, found):
        for row in rows.tolist():
            if codes[row] != NEEDS_PYTHON:
                texts[row] = f"{run.faults.texts[codes[row]]}{_line_text(program, at)}"
    return texts


def _line_text(program: Program, at: int) -> str:
    line = program.lines[at]
    return f" (line {line}: {program.texts.get(line, '')})" if line else ""
