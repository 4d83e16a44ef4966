"""Filters that are stopped: at one alert, or at the end of their memory; and not retried."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from types import CodeType, FrameType
from typing import Any

import pytest

from filters.tests.helpers import random_alerts
from filters.tests.helpers.sandboxed import (
    BRIGHT,
    PASSED,
    ROWS,
    function,
    is_right,
    judge,
    row_filter,
)
from nightwire.filters.language import compile_filter
from nightwire.filters.sandbox import Limits, Sandbox
from nightwire.filters.sandbox.batch_run import StuckTimer
from nightwire.filters.sandbox.child import is_own

LIMITS = Limits(cpu_s=60.0, wall_s=120.0, total_s=600.0, alert_s=0.05, memory_mb=256)
"""Nothing but an alert's own limit, and memory's, is reached, however busy the machine is."""

REACH = """
import enum
modules = getattr(enum, "sys").modules
"""

COUNTER = "batches = []"
COUNT = "if alert.id == 1:\n    batches.append(1)\n"
"""Counts the batches that a process has seen."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Yield a sandbox."""
    with Sandbox(limits=LIMITS) as one:
        yield one


def owners(sandbox: Sandbox) -> set[str]:
    """Return who has a process."""
    return set(sandbox._pool._by_owner)


@pytest.mark.slow
def test_an_alert_that_takes_too_long_is_the_end_of_a_filter_that_had_judged_before(
    sandbox: Sandbox, batch: Any
) -> None:
    loop = row_filter(
        "eve", function(COUNT + "while alert.id == 5 and len(batches) > 1: pass\nreturn True", COUNTER)
    )
    good = judge(sandbox, batch, loop, row_filter("alice", BRIGHT))
    assert (good["eve/one"].stopped, len(good["eve/one"].passed)) == (None, ROWS)
    found = judge(sandbox, batch, loop, row_filter("alice", BRIGHT))
    bad = found["eve/one"]
    assert (bad.late, bad.killed, bad.evaluated, bad.passed.tolist()) == (True, None, 5, [0, 1, 2, 3])
    assert "took longer than 0.05 s of CPU time for one alert: " in (bad.stopped or "")
    assert "while alert.id == 5" in (bad.stopped or "")
    assert is_right(found["alice/one"])
    assert "eve" not in owners(sandbox)


def test_what_a_filter_does_once_may_take_longer(sandbox: Sandbox, batch: Any) -> None:
    once = "if not table:\n    table.append(sum(range(20_000_000)))\nreturn alert.flux > 300"
    for _ in range(2):
        outcome = judge(sandbox, batch, row_filter("olga", function(once, "table = []")))["olga/one"]
        assert (outcome.stopped, outcome.passed.tolist()) == (None, PASSED)


COLUMNS = (
    REACH
    + """
def column(): return sum(range(10_000_000))
code = getattr(column, "__code__").replace(co_filename="column.py")
modules["nightwire.schemas"].COLUMN_MAKERS.add(code)
ours = modules["types"].FunctionType(code, getattr(column, "__globals__"))
"""
)


def test_columns_that_are_made_at_one_alert_are_no_fault_of_it(sandbox: Sandbox, batch: Any) -> None:
    """They serve all alerts; a filter that fakes the mark has its batch's time, no more."""
    found = [
        judge(sandbox, batch, row_filter("cora", function("return alert.id != 5 or ours() > 0", COLUMNS)))[
            "cora/one"
        ]
        for _ in range(2)
    ]
    assert [(one.stopped, len(one.passed)) for one in found] == [(None, ROWS)] * 2


EVERYTHING = """
def keep(view):
    alert = view()
    for p in alert.history:
        p["psfFlux"], p.flux, p.band, p.magnitude
    alert["diaSource"]["psfFlux"], alert.id, alert.band, alert.snr, alert.healpix, alert.galactic_latitude
    alert.magnitudes("r"), alert.colour("g", "r"), alert.healpix_at(5), alert.light_curve()
"""
"""Asks for all that a table has of one alert, in each way."""


def test_whose_doing_it_is_is_told_by_what_runs() -> None:
    """A column is made for the first alert that asks for it; what comes after is the filter's own.

    What runs for that alert alone makes columns: a function of schemas that is left out here,
    whatever its name is, has lost its mark (`makes_columns`).
    """
    some = [one for one in random_alerts.alerts(7, 40) if one["prvDiaSources"]]
    keep, table = compile_filter(EVERYTHING, "keep"), random_alerts.table(some)
    own: list[dict[CodeType, bool]] = [{}, {}]

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_globals.get("__name__", "").startswith("nightwire.schemas"):
            own[row][frame.f_code] = own[row].get(frame.f_code, False) or is_own(frame)

    for row in (0, 1):
        sys.setprofile(look)
        try:
            keep(partial(table.view, row))
        finally:
            sys.setprofile(None)
    first, second = own
    assert len(set(first) - set(second)) > 20
    assert [code.co_qualname for code in set(first) - set(second) if first[code]] == []
    assert [code.co_qualname for code, his in second.items() if not his] == []
    assert not is_own(sys._getframe())  # no filter runs


def test_an_alert_is_timed_from_when_it_was_seen_first() -> None:
    timer = StuckTimer(0.1)
    assert timer.remaining_s(0.04) == pytest.approx(0.06)
    timer.row, timer.since_s = 3, 0.05
    assert timer.remaining_s(0.04) == pytest.approx(0.11)
    assert timer.remaining_s(0.16) < 0
    assert timer.exceeded is None
    timer.expired = True
    assert timer.exceeded == "took longer than 0.1 s of CPU time for one alert"


@pytest.mark.slow
def test_a_filter_that_takes_all_memory_is_stopped_and_one_that_takes_much_is_not(
    sandbox: Sandbox, batch: Any
) -> None:
    grow = row_filter("gus", function("kept.append(b'x' * (60 << 20))\nreturn True", "kept = []"))
    much = row_filter(
        "mia", function("kept.clear()\nkept.append(b'x' * (150 << 20))\nreturn True", "kept = []")
    )
    odd = row_filter("ivo", function("return b'x' * (10 << 30 if alert.id == 5 else 1)"))
    found = judge(sandbox, batch, grow, much, odd)
    assert found["gus/one"].stopped == "took all of 256 MiB of memory"
    assert "MemoryError" in found["gus/one"].faults[ROWS - 1]
    assert found["mia/one"].stopped is None
    assert (found["ivo/one"].stopped, list(found["ivo/one"].faults)) == (None, [4])
    assert owners(sandbox).isdisjoint({"gus", "mia"})


def test_processes_that_are_not_waited_for_end_all_the_same(sandbox: Sandbox, batch: Any) -> None:
    judge(sandbox, batch, row_filter("alice", BRIGHT), row_filter("bob", BRIGHT))
    zygote, gone = sandbox._pool._zygote, [one.pid for one in sandbox._pool._by_owner.values()]
    sandbox._pool.end_all()
    assert owners(sandbox) == set()
    assert is_right(
        judge(sandbox, batch, row_filter("alice", BRIGHT))["alice/one"]
    )  # answers are not mixed up
    found = [zygote._ask({"end": pid})["status"] for pid in gone]
    assert found == [-9] * len(gone)


def test_less_cpu_time_leaves_some_time_by_the_clock() -> None:
    assert Limits(cpu_s=2.0, wall_s=5.0).within(0.1) == replace(
        Limits(cpu_s=0.1, wall_s=0.5), total_s=Limits().total_s
    )
    assert Limits(cpu_s=2.0, wall_s=0.2).within(0.1).wall_s == 0.2
