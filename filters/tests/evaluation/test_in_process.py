"""Judging in this process, without Kafka and Spark."""

import math
from dataclasses import dataclass

import pytest

from nightwire.filters.evaluation.in_process import CompiledFilter, TimeLimit, judge_views, time_limit
from nightwire.filters.evaluation.results import Verdict
from nightwire.filters.model.live_filter import LiveFilter


@dataclass
class Alert:
    """As little of an alert as these filters need."""

    flux: float | None


ALERTS = [Alert(1.0), Alert(10.0), Alert(None), Alert(20.0)]


def judge(source: str, *, budget: float = 5.0) -> Verdict:
    """Return the verdict of a filter on `ALERTS`."""
    live = LiveFilter("me", "mine", 3, "*", source, "keep")
    return judge_views(4, CompiledFilter(live), ALERTS, budget)


def test_what_is_true_passes() -> None:
    one = judge("def keep(a): return a.flux is not None and a.flux > 5")
    assert (one.number, one.passed.tolist(), one.faults, one.evaluated) == (4, [1, 3], {}, None)


def test_a_fault_is_of_that_alert_alone_and_says_the_line() -> None:
    one = judge("def keep(a):\n  return a.flux > 5")
    assert (one.passed.tolist(), list(one.faults), one.late) == ([1, 3], [2], False)
    assert "TypeError" in (one.fault or "")
    assert "(line 2: return a.flux > 5)" in (one.fault or "")


@pytest.mark.parametrize(
    "source", ["raise SystemExit", "raise KeyboardInterrupt", "keep(a)", "return [] + 1"]
)
def test_nothing_that_a_filter_raises_gets_out(source: str) -> None:
    one = judge(f"def keep(a):\n  {source}")
    assert (one.passed.tolist(), list(one.faults)) == ([], [0, 1, 2, 3])


LOOP = """
def keep(a):
    while a.flux == 10.0:
        pass
    return True
"""
STUBBORN = """
def keep(a):
    while a.flux == 10.0:
        try:
            while True:
                pass
        except Exception:
            pass
    return True
"""


@pytest.mark.slow
@pytest.mark.parametrize("loop", [LOOP, STUBBORN])
def test_an_endless_loop_is_stopped_and_the_alerts_behind_it_are_not_evaluated(loop: str) -> None:
    one = judge(loop, budget=0.2)
    assert (one.passed.tolist(), one.faults, one.evaluated, one.late) == ([0], {}, 1, True)
    assert "took longer than 0.2 s" in (one.fault or "")


def test_the_time_of_a_filter_that_was_stopped_counts_once() -> None:
    assert 0.1 < judge(LOOP, budget=0.2).cpu_s < 0.39


def test_a_filter_that_does_not_compile_faults_every_alert() -> None:
    one = judge("X = 1 / 0\ndef keep(a): return X")
    assert (one.passed.tolist(), list(one.faults), one.late) == ([], [0, 1, 2, 3], False)
    assert "ZeroDivisionError" in (one.fault or "")


@pytest.mark.parametrize(
    ("result", "rank"), [("True", math.nan), ("2.5", 2.5), ("7", 7.0), ("'yes'", math.nan)]
)
def test_a_number_is_the_rank(result: str, rank: float) -> None:
    assert judge(f"def keep(a): return {result}").rank.tolist() == pytest.approx([rank] * 4, nan_ok=True)


def test_what_is_no_name_here_passes_nothing() -> None:
    assert judge("def keep(a): return __import__").passed.tolist() == []


def test_the_time_limit_goes_away() -> None:
    def loop() -> None:
        with time_limit(0.05):
            while True:
                pass

    with pytest.raises(TimeLimit):
        loop()
    total = sum(range(3_000_000))  # longer than the limit
    assert total
