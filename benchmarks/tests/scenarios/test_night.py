"""The scenario `night`: its schedule and time scales, and a small run with a real engine."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.benchmarks.environment.alert_pool import make_pool, ready_messages
from nightwire.benchmarks.environment.filter_engine import EngineOptions, FilterEngine
from nightwire.benchmarks.environment.filter_mixture import mixture
from nightwire.benchmarks.model.sample import Kind
from nightwire.benchmarks.model.scenario import Context, RunError, Size
from nightwire.benchmarks.scenarios.faults.environment import EVERYTHING
from nightwire.benchmarks.scenarios.night.observatory import Observatory, exposed
from nightwire.benchmarks.scenarios.night.scenario import (
    Night,
    NightScenario,
    NightSetting,
    check_evaluated,
    schedules,
)
from nightwire.benchmarks.scenarios.night.schedule import Delays, Schedule, within
from nightwire.benchmarks.workers.alerts.owner import age
from nightwire.consumers import ReceivedAlert
from nightwire.producer import VisitLog
from nightwire.schemas import sim_alert_schema, survey

NIGHT = datetime(2026, 1, 1, tzinfo=UTC)
POOL = make_pool(8)
LOG = VisitLog(1, NIGHT)


def received(mjd_tai: float) -> ReceivedAlert:
    """Return an alert that was observed at *mjd_tai*. [d]"""
    alert = exposed(POOL, 3, 7, mjd_tai)
    sim = survey("sim")
    return ReceivedAlert(alert, b"", b"", "sim", "t", 0, 0, NIGHT, None, {}, None, sim_alert_schema(), sim)


def test_midnight_utc_is_37_seconds_past_midnight_tai() -> None:
    """MJD 61041 is 2026-01-01; TAI - UTC has been 37 s since 2017 (IERS Bulletin C 52)."""
    assert age(received(61041.0 + 37 / 86_400), NIGHT) == pytest.approx(0.0, abs=1e-4)
    assert age(received(61041.0), NIGHT) == pytest.approx(37.0, abs=1e-4)


@given(
    st.datetimes(datetime(2017, 1, 2), datetime(2026, 6, 1)),  # noqa: DTZ001  (given a zone below)
    st.floats(0, 1000),
)
def test_an_alert_is_as_old_as_its_shutter_is_past(shutter: datetime, seconds: float) -> None:
    """The simulator writes TAI; the reader takes the leap seconds off by another table."""
    closed = shutter.replace(tzinfo=UTC)
    exposure = LOG.open(closed, 7)
    assert age(received(exposure.mjd_tai), closed + timedelta(seconds=seconds)) == pytest.approx(
        seconds, abs=1e-3
    )


@given(st.integers(1, 5), st.integers(1, 50), st.floats(0.1, 50), st.floats(0, 1))
def test_every_alert_is_due_in_its_own_visit(visits: int, alerts: int, interval: float, part: float) -> None:
    schedule = Schedule(visits, alerts, interval, part * interval)
    dues = [due for visit in range(visits) for due in schedule.dues(1000.0, visit)]
    assert len(dues) == schedule.count
    assert all(sooner <= later for sooner, later in pairwise(dues))
    for visit in range(visits):
        closed = schedule.shutter(1000.0, visit)
        assert all(closed <= due < closed + interval for due in schedule.dues(1000.0, visit))


def test_profiles_keep_the_survey_s_interval_or_say_that_they_do_not() -> None:
    for profile, interval in (("quick", 13.0), ("full", 39.0)):
        even, burst = schedules(NightScenario.standard[profile]).values()
        assert even.interval == burst.interval == pytest.approx(interval)
        assert (even.spread, burst.spread) == (even.interval, 0.0)


@given(st.lists(st.floats(0, 200), min_size=1))
def test_figures_of_delays_are_in_order_and_have_names_that_are_reported(delays: list[float]) -> None:
    found = Delays(delays, delays).figures("even")
    assert found.keys() < {figure.name for figure in NightScenario().figures}
    assert found["even_write_p50_ms"] <= found["even_write_p95_ms"] <= found["even_write_p99_ms"]
    assert found["even_shutter_p99_seconds"] * 1e3 == pytest.approx(found["even_write_p99_ms"])
    late = sum(one > 60 for one in delays)
    assert found["even_within_60_seconds"] == pytest.approx(1 - late / len(delays))
    assert within(delays, max(delays)) == 1.0


def test_a_filter_that_did_not_judge_all_is_named() -> None:
    check_evaluated({"a/b": 5, "c/d": 5}, ["a/b", "c/d"], 5)
    with pytest.raises(RunError, match="of 5 alerts a/b judged 4, e/f judged 0"):
        check_evaluated({"a/b": 4, "c/d": 5}, ["a/b", "c/d", "e/f"], 5)


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.proof
def test_a_short_night_is_measured(tmp_path: Path) -> None:
    """The engine is the light one, which starts sooner."""
    context = Context(tmp_path, Size(30, 1, 30.0))
    engine, pool = FilterEngine(context, EngineOptions(light=True, cap=0)), make_pool(30)
    filters = [EVERYTHING, *mixture(2, 0, pool)]
    setting = NightSetting(context, engine, Observatory(pool), ready_messages(pool), filters)
    night = Night("even", setting, Schedule(2, 30, 1.0, 1.0))
    try:
        night.prepare()
        ours, theirs = (night.run_once(kind) for kind in Kind)
    finally:
        engine.close()
    assert ours["even_copies"] >= 60
    assert ours.keys() - theirs.keys() == {"even_copies", "generator_behind_ms"}
    for found in (ours, theirs):
        assert 0 < found["even_write_p50_ms"] <= found["even_write_p99_ms"]
        assert found["even_write_p50_ms"] < found["even_shutter_p50_seconds"] * 1e3
    assert {name: len(delays) for name, delays in night.delays.items()}["raw librdkafka"] == 60
