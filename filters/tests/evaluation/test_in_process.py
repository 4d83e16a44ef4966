"""Judging, without Kafka and Spark."""

from dataclasses import dataclass
from typing import Any

import pytest

from nightwire.filters.evaluation.in_process import CompiledFilter, Judge, TimeLimit, time_limit
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import Pass


@dataclass
class Alert:
    """As little of an alert as these filters need."""

    flux: float | None


ALERTS = [Alert(1.0), Alert(10.0), Alert(None), Alert(20.0)]


def judge(*sources: str, budget: float = 5.0) -> Judge:
    """Return a judge of filters f0, f1, …"""
    live = [LiveFilter("me", f"f{index}", 3, "*", source, "keep") for index, source in enumerate(sources)]
    return Judge([CompiledFilter(one, time_limit) for one in live], time_limit, budget)


def counts(one: Judge, name: str) -> tuple[int, int, int, int]:
    """Return evaluated, passed, rejected, faulted."""
    tally = one.tallies[f"me/{name}"]
    return tally.evaluated, tally.passed, tally.rejected, tally.faulted


def test_each_alert_gets_the_filters_that_it_passes() -> None:
    one = judge("def keep(a): return a.flux is not None and a.flux > 5", "def keep(a): return True")
    first, second = Pass("me/f0", 3), Pass("me/f1", 3)
    assert one.judge(ALERTS) == [[second], [first, second], [second], [first, second]]
    assert counts(one, "f0") == (4, 2, 2, 0)


def test_a_fault_is_of_that_filter_and_alert_alone() -> None:
    one = judge("def keep(a):\n  return a.flux > 5", "def keep(a): return True")
    assert [len(passes) for passes in one.judge(ALERTS)] == [1, 2, 1, 2]
    assert counts(one, "f0") == (4, 2, 1, 1)
    assert "TypeError" in (one.tallies["me/f0"].fault or "")
    assert "(line 2: return a.flux > 5)" in (one.tallies["me/f0"].fault or "")


@pytest.mark.parametrize(
    "source", ["raise SystemExit", "raise KeyboardInterrupt", "keep(a)", "return [] + 1"]
)
def test_nothing_that_a_filter_raises_gets_out(source: str) -> None:
    one = judge(f"def keep(a):\n  {source}")
    one.judge(ALERTS)
    assert counts(one, "f0") == (4, 0, 0, 4)


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


@pytest.mark.parametrize("loop", [LOOP, STUBBORN])
def test_an_endless_loop_is_stopped_and_costs_only_its_own_filter(loop: str) -> None:
    one = judge(loop, "def keep(a): return True", budget=0.2)
    passes = one.judge(ALERTS)
    assert [len(some) for some in passes] == [2, 1, 1, 1]
    assert counts(one, "f0") == (4, 1, 0, 3)
    assert one.tallies["me/f0"].late
    one.judge(ALERTS)  # no time left: not even tried
    assert counts(one, "f0") == (8, 1, 0, 7)


def test_a_filter_that_does_not_compile_faults_every_alert() -> None:
    one = judge("X = 1 / 0\ndef keep(a): return X")
    one.judge(ALERTS)
    assert counts(one, "f0") == (4, 0, 0, 4)
    assert not one.tallies["me/f0"].late


@pytest.mark.parametrize(
    ("result", "rank"), [("True", None), ("2.5", 2.5), ("7", 7.0), ("'yes'", None), ("__import__", None)]
)
def test_a_number_is_the_rank(result: str, rank: float | None) -> None:
    one = judge(f"def keep(a): return {result}")
    expected: list[Any] = [] if result == "__import__" else [Pass("me/f0", 3, rank)]
    assert one.judge(ALERTS[:1]) == [expected]


def test_the_time_limit_goes_away() -> None:
    def loop() -> None:
        with time_limit(0.05):
            while True:
                pass

    with pytest.raises(TimeLimit):
        loop()
    total = sum(range(3_000_000))  # longer than the limit
    assert total
