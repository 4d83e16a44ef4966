"""Programs that somebody has tampered with: refused or judged, never an error of the engine's."""

import json
import random
from collections import defaultdict
from typing import Any

import pytest

from filters.tests.helpers.random_alerts import alerts, table
from filters.tests.helpers.random_python import Filters
from nightwire.filters.language import FilterError, NotCompilable, Program, compile_python, evaluate
from nightwire.filters.language.operations import OPERATIONS

TEXTS = [
    "flux",
    "history",
    "light_curve",
    "prvDiaSources",
    "diaSource",
    "diaSource.band",
    "nothing",
    "",
    "x.y",
    "%",
]
CONSTANTS = [None, 1, 0.5, "g", True, (1, "g", None), float("nan"), 2**62, -1]
PLACES = [0, -1, 2**31 - 1, None]

ALIKE: dict[str, list[str]] = defaultdict(list)
for _name, _operation in OPERATIONS.items():
    ALIKE[_operation.takes].append(_name)


def tampered(program: Program, random_: random.Random) -> str:
    """Return a program's text with something else in a few places."""
    nodes: list[list[Any]] = [list(node) for node in program.nodes]
    for _ in range(random_.choice([1, 1, 2, 4])):
        at = random_.randrange(len(nodes))
        node = nodes[at]
        if random_.random() < 0.5 or len(node) < 2:
            node[0] = random_.choice(ALIKE[OPERATIONS[node[0]].takes])
            continue
        argument = random_.randrange(1, len(node))
        if isinstance(node[argument], str):
            node[argument] = random_.choice(TEXTS)
        elif node[0] == "const":
            node[argument] = random_.choice(CONSTANTS)
        else:
            node[argument] = random_.choice([random_.randrange(max(at, 1)), *PLACES])
    return Program(tuple(map(tuple, nodes)), program.lines, program.texts).dumps()


def programs(count: int) -> list[Program]:
    """Return random programs."""
    found = []
    for seed in range(count):
        try:
            found.append(compile_python(Filters(seed).source()))
        except NotCompilable:
            continue
    return found


@pytest.mark.slow
def test_tampered_programs_are_refused_or_judged() -> None:
    random_, columns, sound = random.Random(3), table(alerts(5, 20)), programs(40)
    judged = refused = 0
    for _ in range(600):
        text = tampered(random_.choice(sound), random_)
        try:
            program = Program.loads(text)
        except FilterError:
            refused += 1
            continue
        assert len(evaluate(program, columns).passed) == 20
        judged += 1
    assert judged > 200
    assert refused > 100


def test_texts_that_are_put_together_stay_short() -> None:
    """Texts doubled a hundred times, or a number a billion characters wide, are left to Python."""
    doubled: list[list[Any]] = [["const", "r" * 100], *(["joined", at, at] for at in range(100))]
    wide: list[list[Any]] = [["const", 1.5], ["const", ">1000000000"], ["format", 0, 1]]
    for nodes in (doubled, wide):
        text = json.dumps({"nodes": nodes, "lines": [1] * len(nodes), "texts": {}})
        said = evaluate(Program.loads(text), table(alerts(3, 20)))
        assert len(said.needs_python) == 20
