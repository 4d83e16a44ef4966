"""Filters that are code, judged by a worker in the sandbox: stopped ones, and transforms."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from textwrap import dedent
from typing import Any, cast

import pytest

from filters.tests.helpers.sandboxed import (
    BRIGHT,
    FIELDS,
    PASSED,
    ROWS,
    columns,
    encoded,
    function,
    is_right,
    judge,
    row_filter,
)
from nightwire.filters.evaluation.cpu_budget import CpuBudget
from nightwire.filters.evaluation.results import count_range
from nightwire.filters.evaluation.rowwise import check_added, judge_in_sandbox
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.offsets import OffsetRange
from nightwire.filters.model.transform import declared_fields
from nightwire.filters.reading.alerts import AlertIdentities, Alerts, RangeRows
from nightwire.filters.sandbox import Limits, Outcome, RowFilter, Sandbox
from nightwire.schemas import AlertDecoder, AlertTable, survey

LIMITS = Limits(cpu_s=60.0, wall_s=120.0, total_s=600.0, alert_s=0.05, memory_mb=256)
"""Nothing but an alert's own limit is reached, however busy the machine is."""


@pytest.fixture(scope="module")
def batch(make_alert: Callable[..., dict[str, Any]]) -> Any:
    """Return the columns of eight alerts."""
    return columns(encoded(make_alert))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Yield a sandbox."""
    with Sandbox(limits=LIMITS) as one:
        yield one


def alerts(batch: Any) -> Alerts:
    """Return a batch as a worker has it."""
    known = AlertIdentities(*[[]] * 6)
    return Alerts("sim", AlertTable(batch, survey("sim")), batch, known, [], [], cast(AlertDecoder, None))


def live(owner: str, source: str) -> LiveFilter:
    """Return a filter of columns."""
    return LiveFilter(owner, "f", 1, "sim", source, "keep", fields=FIELDS)


@pytest.mark.slow
def test_nobody_waits_twice_in_a_batch_for_who_had_to_be_stopped(sandbox: Sandbox, batch: Any) -> None:
    """Alerts that are not tried are faults with a reason; the next batch tries them once more."""
    budget = CpuBudget(0.05)
    rowwise, work = judge_in_sandbox(sandbox, budget), alerts(batch)
    filters = [(0, live("eve", function("while alert.id == 5: pass\nreturn True"))), (1, live("al", BRIGHT))]
    budget.begin_batch()
    first, second = ({one.number: one for one in rowwise(work, filters)} for _ in range(2))
    assert (first[0].evaluated, first[0].late) == (5, True)
    assert (second[0].evaluated, second[0].late) == (0, True)
    assert (second[0].fault or "").startswith("took longer than 0.05 s of CPU time")
    assert (second[0].fault or "").endswith("; not tried again in this batch")
    assert "eve" not in sandbox._pool._by_owner
    assert first[1].passed.tolist() == second[1].passed.tolist() == PASSED
    told = count_range(
        RangeRows(OffsetRange("alerts.sim", 0, 0, ROWS), 0, ROWS, ROWS), [second[0]], [""] * ROWS
    )
    assert (told.evaluated, told.passed, told.faulted, told.late) == ([ROWS], [0], [ROWS], [0])
    budget.begin_batch()
    (third,) = (one for one in rowwise(work, filters) if one.number == 0)
    assert third.evaluated == 5


@dataclass
class Asked:
    """A sandbox that notes its filters' owners; those of *bad* owners have to be stopped."""

    bad: set[str]
    rounds: list[list[str]] = field(default_factory=list)

    def judge(self, filters: Iterable[RowFilter], name: str, **batch: Any) -> Mapping[str, Outcome]:
        """Return a late outcome for the bad, a good one for others."""
        self.rounds.append([one.owner for one in filters])
        return {
            one.key: Outcome(ROWS, late=one.owner in self.bad, faults={})
            for one in cast(list[RowFilter], filters)
        }


def test_filters_that_had_to_be_stopped_are_judged_last_until_they_behave(batch: Any) -> None:
    asked, budget, work = Asked({"a"}), CpuBudget(2.0), alerts(batch)
    rowwise = judge_in_sandbox(cast(Sandbox, asked), budget)
    filters = [(number, live(owner, BRIGHT)) for number, owner in enumerate("abc")]
    for bad in ("a", "", "", "abc"):
        asked.bad = set(bad)
        budget.begin_batch()
        for _ in range(3):
            rowwise(work, filters)
    first, second, third, fourth = (
        asked.rounds[0:3], asked.rounds[3:6], asked.rounds[6:9], asked.rounds[9:],
    )  # fmt: skip
    assert first == [["a", "b", "c"], ["b", "c"], ["b", "c"]]
    assert second == [["b", "c", "a"], ["a", "b", "c"], ["a", "b", "c"]]
    assert third == [["a", "b", "c"]] * 3
    assert fourth == [["a", "b", "c"]]  # nobody is left, so nobody is asked


ADDS = """
import numpy as np

ADDS = {"score": float, "label": str, "curve": list[float], "points": int}
LONG = "x" * 20_000

"""


def test_what_a_transform_adds_is_as_it_declares_or_a_fault(sandbox: Sandbox, batch: Any) -> None:
    """Computed for what passed alone, NumPy's values made plain; all else is a fault."""
    source = ADDS + dedent("""
        def keep(alert):
            return alert.id if alert.id != 2 else 0

        def transform(alert):
            odd = {3: {"score": "high"}, 4: {"grade": 1}, 5: [1], 6: {"score": object()}, 7: {"label": LONG}}
            if alert.id in odd:
                return odd[alert.id]
            curve = np.array([alert.flux, np.nan])
            return {"score": np.float32(0.5), "label": "SN", "curve": curve, "points": np.int64(2)}
        """)
    one = replace(row_filter("fink", source), transform="transform")
    found = judge(sandbox, batch, one, row_filter("bob", BRIGHT))
    assert is_right(found["bob/one"])
    outcome = check_added(found["fink/one"], declared_fields(source))
    assert (outcome.passed.tolist(), outcome.rank.tolist()) == ([0, 7], [1.0, 8.0])
    assert [json.loads(text)["label"] for text in outcome.added] == ["SN", "SN"]
    assert json.loads(outcome.added[1])["curve"][0] == 800.0
    said = dict(outcome.faults)
    assert sorted(said) == [2, 3, 4, 5, 6]
    assert said[2] == "transform gave str 'high' for score, declared as float"
    assert said[3] == "transform gave 'grade', which ADDS does not declare"
    assert said[4] == "transform gave a list of int 1, not a dictionary"
    assert "transform gave a object, which cannot be added to an alert" in said[5]
    assert "bytes to an alert, most are 16,384" in said[6]


def test_an_answer_without_what_was_asked_for_faults_every_alert(sandbox: Sandbox, batch: Any) -> None:
    """A process that was taken over may leave out what a transform adds."""
    found = judge(sandbox, batch, row_filter("alice", BRIGHT))["alice/one"]
    assert check_added(found, ()) is found
    outcome = check_added(found, declared_fields('ADDS = {"score": float}'))
    assert (len(outcome.passed), outcome.added, sorted(outcome.faults)) == (0, [], PASSED)
