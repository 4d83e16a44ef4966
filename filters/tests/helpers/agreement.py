"""Filters that are judged in several ways, which must agree; what was compared is counted."""

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from filters.tests.helpers.inputs import ODD, Inputs, odd_share
from filters.tests.helpers.random_alerts import alerts, database, table, views
from filters.tests.helpers.random_conditions import Conditions
from nightwire.filters.language import (
    NotCompilable,
    Program,
    Verdicts,
    compile_filter,
    compile_python,
    compile_sql,
    evaluate,
    evaluate_all,
    fault_text,
)
from nightwire.filters.language.program import operands

BATCH = 100
"""Filters that are judged together, over alerts of their own."""


@dataclass
class Account:
    """What was compared."""

    filters: int = 0
    rows: int = 0
    needs_python: int = 0
    telling: int = 0
    depth: int = 0
    inputs: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)

    def add(self, program: Program, verdicts: Verdicts, inputs: Inputs) -> None:
        """Count a program, what it said, and what it read."""
        self.filters += 1
        self.rows += len(verdicts.passed)
        self.needs_python += len(verdicts.needs_python)
        self.telling += 0.01 <= verdicts.passed.mean() <= 0.99
        self.depth += depth(program)
        self.inputs += inputs.of(program)
        self.count(program)

    def count(self, program: Program) -> None:
        """Count the operations of a program."""
        self.operations.update(node[0] for node in program.nodes)

    def __add__(self, other: "Account") -> "Account":
        mine, theirs = vars(self), vars(other)
        return Account(**{name: mine[name] + theirs[name] for name in mine})

    def said(self, wanted: Iterable[str]) -> str:
        """Return the numbers, those of the *wanted* operations among them."""
        used = Counter({name: self.operations[name] for name in wanted})
        (rarest, times), names = used.most_common()[-1], len(used)
        kinds = ", ".join(f"{kind} {100 * share:.2f} %" for kind, share in self.shares().items())
        return (
            f"{self.filters:,} filters, {self.rows:,} verdicts; mean depth {self.depth / self.filters:.1f}; "
            f"{100 * self.telling / self.filters:.0f} % pass 1-99 %; "
            f"{100 * self.needs_python / self.rows:.1f} % left to Python; "
            f"of {names} operations the least used is {rarest}, in {times}; "
            f"{100 * odd_share(self.inputs):.1f} % of {self.inputs.total():,} inputs odd: {kinds}"
        )

    def shares(self) -> dict[str, float]:
        """Return the share of each odd kind among all that was read."""
        return {kind: self.inputs[kind] / self.inputs.total() for kind in ODD}

    def check(self) -> None:
        """Check that something was compared."""
        assert self.telling > self.filters / 2
        assert self.needs_python < self.rows / 30
        assert self.depth >= 4 * self.filters
        assert odd_share(self.inputs) >= 1 / 3


def depth(program: Program) -> int:
    """Return how many operations lie one in another."""
    found: list[int] = []
    for node in program.nodes:
        found.append(1 + max((found[at] for at in operands(node)), default=-1))
    return found[-1]


def by_python(source: str, alert: Any) -> tuple[bool, float, str | None]:
    """Return plain Python's verdict: passed, rank, and the kind and line of the fault."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = FUNCTIONS[source](alert)
            passed = bool(result)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must be the same
        return False, math.nan, brief(fault_text(error, source))
    return passed, rank(result) if passed else math.nan, None


FUNCTIONS: dict[str, Any] = {}


def rank(result: Any) -> float:
    """Return the rank that a result gives."""
    if type(result).__name__.startswith("bool"):
        return math.nan
    try:
        return float(result)
    except (TypeError, ValueError):
        return math.nan


def brief(fault: str | None) -> str | None:
    """Return the kind and the line of a fault; which of two points' faults is told may differ."""
    if fault is None:
        return None
    kind, line = fault.partition(":")[0], fault.rpartition(" (line ")[2].partition(":")[0]
    return f"{kind} in line {line}"


def compared(sources: list[str], seed: int, account: Account) -> None:
    """Check that compiled and plain Python agree on all alerts."""
    some = alerts(seed, 60)
    programs = {source: program for source in sources if (program := compiled(source))}
    FUNCTIONS.update({source: compile_filter(source, "keep") for source in programs})
    rows = views(some)
    columns = table(some)
    inputs = Inputs(columns)
    verdicts = evaluate_all(list(programs.values()), columns)
    for (source, program), said in zip(programs.items(), verdicts, strict=True):
        needs_python = set(said.needs_python.tolist())
        for at, alert in enumerate(rows):
            got = (bool(said.passed[at]), float(said.rank[at]), brief(said.faults.get(at)))
            assert at in needs_python or repr(got) == repr(by_python(source, alert)), (
                f"alert {at} of {seed}:\n{source}"
            )
        account.add(program, said, inputs)
    FUNCTIONS.clear()


def compiled(source: str) -> Program | None:
    """Return a program as it comes out of its text; None where the language cannot say it."""
    try:
        return Program.loads(compile_python(source).dumps())
    except NotCompilable:
        return None


def conditions(seeds: range, account: Account) -> None:
    """Check that compiled Python, plain Python, our SQL and SQLite's agree on all alerts."""
    some = alerts(seeds.start, 60)
    columns, rows, rows_of_sql = table(some), views(some), database(some)
    inputs = Inputs(columns)
    for seed in seeds:
        said = Conditions(seed).condition()
        source = f"import math\ndef keep(a):\n    return {said.python}\n"
        function = compile_filter(source, "keep")
        expected = [bool(function(row)) for row in rows]
        program = compile_python(source)
        found = evaluate(program, columns)
        assert found.passed.tolist() == expected, (seed, said.python)
        assert not found.faults
        chosen = {at for (at,) in rows_of_sql.execute(f"SELECT at FROM alerts WHERE {said.lite}")}  # noqa: S608
        assert [at in chosen for at in range(len(rows))] == expected, (seed, said.lite)
        if said.sql is not None:
            other = compile_sql(said.sql, "sim")
            account.count(other)
            of_sql = evaluate(other, columns)
            assert of_sql.passed.tolist() == expected, (seed, said.sql)
            assert not of_sql.faults
        account.add(program, found, inputs)


def batches(count: int) -> Iterator[range]:
    """Yield the numbers of so many filters, batch by batch."""
    return (range(begin, begin + BATCH) for begin in range(0, count, BATCH))
