"""Terms: what a condition asks about, a field or what is computed of fields, by one text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from nightwire.filters.language.operations import REFERENCES
from nightwire.filters.language.program import Node, Program, operands
from nightwire.filters.language.vector.logic import of_sql
from nightwire.filters.language.vector.run import Run
from nightwire.filters.language.vector.values import Value, python
from nightwire.schemas import AlertTable, survey

FIELD = re.compile(r"[\w.]+")


@dataclass(frozen=True, slots=True)
class Term:
    """An expression of which a condition wants values.

    Attributes:
        text: Its only text: a field's path, or its nodes.
        nodes: How to compute it, as a program's.
    """

    text: str
    nodes: tuple[Node, ...] = field(compare=False, repr=False)

    def values(self, run: Run) -> Value:
        """Return its values over a table, NaN as NULL."""
        found: list[Any] = []
        for node in self.nodes:
            found.append(run.node(node, [found[at] for at in operands(node)], run.size))
        return of_sql(found[-1], run.size)


def field_term(path: str) -> Term:
    """Return the term that is a field, canonical (``magnitude``) or of the source (``a.b``)."""
    return _named((("sql.field", path),))


def term_of(nodes: Sequence[Node], at: int) -> Term:
    """Return the term that node *at* is, the same whatever else was built before."""
    places: dict[int, int] = {}
    kept: list[Node] = []
    waiting = [at]
    while waiting:
        missing = [one for one in operands(nodes[waiting[-1]]) if one not in places]
        if missing:
            waiting.append(missing[0])
            continue
        one = waiting.pop()
        places[one] = len(kept)
        kept.append(_renumbered(nodes[one], places))
    return _named(tuple(kept))


def _named(nodes: tuple[Node, ...]) -> Term:
    """Return the term of *nodes*; no field can be called as another term is."""
    plain = nodes[0][0] == "sql.field" and len(nodes) == 1 and FIELD.fullmatch(nodes[0][1])
    return Term(nodes[0][1] if plain else Program(nodes, ()).dumps(), nodes)


def _renumbered(node: Node, places: dict[int, int]) -> Node:
    at = REFERENCES.get(node[0], range(1, len(node)))
    return tuple(places[one] if place in at else one for place, one in enumerate(node))


def constants(nodes: Sequence[Node]) -> dict[int, Any]:
    """Return the values of those *nodes* that are the same for all alerts, and have no fault."""
    found: dict[int, Any] = {}
    values: dict[int, Value] = {}
    run = Run(_one_row())
    for at, node in enumerate(nodes):
        given = operands(node)
        if node[0] == "const" or (given and all(one in values for one in given)):
            value = run.node(node, [values[one] for one in given], 1)
            if isinstance(value, Value) and value.fault is None:
                values[at], found[at] = value, _only(value)
    return found


def _only(value: Value) -> Any:
    (typed,) = (one for one in value.typed if one.where is None or one.where[0])
    return typed.values if typed.kind == "tuple" else python(typed, np.zeros(1, int))[0]


@cache
def _one_row() -> AlertTable:
    return AlertTable(pa.RecordBatch.from_pydict({"": [None]}), survey("sim"))
