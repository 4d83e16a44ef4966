"""The scenario `faults`: its arithmetic, and small runs with real brokers and engine."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.benchmarks.environment.alert_pool import make_pool
from nightwire.benchmarks.environment.filter_engine import CAP
from nightwire.benchmarks.model.sample import Kind
from nightwire.benchmarks.model.scenario import Context, RunError, Size
from nightwire.benchmarks.scenarios.faults import streams as streams_module
from nightwire.benchmarks.scenarios.faults.environment import FaultsEnvironment
from nightwire.benchmarks.scenarios.faults.fault import VICTIMS, Fault, Timing
from nightwire.benchmarks.scenarios.faults.recovery import (
    NAMED,
    check,
    firsts,
    longest_gap,
    recovery,
    twice,
)
from nightwire.benchmarks.scenarios.faults.scenario import DRAWN, figures_of, may_die, thinned
from nightwire.benchmarks.scenarios.faults.streams import PER_VISIT, Streams, through, totals
from nightwire.benchmarks.workers.arrivals import ArrivalLog
from nightwire.core.accounting import Account, FilterClasses

moments = st.floats(0, 100, allow_nan=False)
waits = st.floats(0, 30, allow_nan=False)


def streams_of(pairs: list[tuple[float, float]]) -> tuple[dict[str, float], dict[str, float]]:
    """Return when things were due, and when they arrived, of pairs of a moment and a delay."""
    due = {f"{number}": moment for number, (moment, _) in enumerate(pairs)}
    return due, {name: moment + pairs[int(name)][1] for name, moment in due.items()}


def test_a_fault_is_over_when_nothing_waits_longer_than_before() -> None:
    """Ten a second take 0.1 s each; from 5 s to 8 s none comes, then two at once until all did."""
    due = {f"{turn:03}": turn / 10 for turn in range(150)}
    arrived = {name: moment + 0.1 for name, moment in due.items()}
    waiting = [name for name in due if arrived[name] > 5.0 and due[name] < 11.0]
    for place, name in enumerate(waiting):
        arrived[name] = max(arrived[name], 8.0 + 0.05 * place)
    found = recovery(due, arrived, killed=5.0, restarted=5.5)
    # the first that waited was due before the fault
    assert found.first == pytest.approx(8.05 - 5.5)
    assert found.backlog == pytest.approx(10.9 - 5.5, abs=0.1)  # 8 + 0.05 n = 5.1 + 0.1 n
    assert longest_gap(arrived.values()) == pytest.approx(3.0)


@given(st.lists(st.tuples(moments, waits), min_size=1), moments, waits)
def test_a_backlog_is_gone_after_the_first_delivery_and_before_the_last(
    pairs: list[tuple[float, float]], killed: float, outage: float
) -> None:
    due, arrived = streams_of(pairs)
    if max(due.values()) <= killed:
        with pytest.raises(RunError, match="too short"):
            recovery(due, arrived, killed=killed, restarted=killed + outage)
        return
    restarted = killed + outage
    found = recovery(due, arrived, killed=killed, restarted=restarted)
    assert 0 <= found.first <= found.backlog
    assert found.backlog <= max(found.first, max(arrived.values()) - restarted)


@given(st.lists(st.tuples(moments, waits), min_size=1), moments)
def test_no_wait_longer_than_before_the_fault_is_no_backlog(
    pairs: list[tuple[float, float]], killed: float
) -> None:
    longest = max(wait for _, wait in pairs)
    pairs = [*pairs, (killed - longest - 1.0, longest), (killed + 1.0, 0.0)]
    due, arrived = streams_of(pairs)
    found = recovery(due, arrived, killed=killed, restarted=killed)
    assert found.backlog == pytest.approx(found.first)


@given(st.lists(moments, min_size=2))
def test_the_longest_gap_is_a_gap_and_none_is_longer(times: list[float]) -> None:
    gap = longest_gap(times)
    assert any(abs(one - other) == gap for one in times for other in times)
    for moment in times:
        later = [one for one in times if one > moment]
        assert not later or min(later) - moment <= gap
    assert longest_gap(times[:1]) == 0.0


@given(st.sets(st.text("ab", min_size=1)), st.sets(st.text("ab", min_size=1)))
def test_what_is_lost_and_what_nobody_sent_is_named(sent: set[str], read: set[str]) -> None:
    if sent == read:
        check("alerts", sent, read)
        return
    with pytest.raises(RunError) as raised:
        check("alerts", sent, read)
    for names in (sorted(sent - read), sorted(read - sent)):
        assert ", ".join(names[:NAMED]) in str(raised.value)


def test_many_losses_are_counted() -> None:
    with pytest.raises(RunError, match=r"of 100 alerts 100 lost: 000, 001, .*, 019 and 80 more$"):
        check("alerts", [f"{number:03}" for number in range(100)], [])


def test_what_came_twice_is_counted_and_its_first_time_holds() -> None:
    arrivals = [("a", 3.0), ("b", 1.0), ("a", 2.0), ("a", 5.0)]
    assert (firsts(arrivals), twice(arrivals)) == ({"a": 2.0, "b": 1.0}, 2)


def test_accounts_tell_how_far_a_stage_is_and_what_went_to_the_owner() -> None:
    judged = {"bench/everything": FilterClasses(5, 5), "owner0/red": FilterClasses(5, 1, 4)}
    accounts = [
        Account("filters", "alerts.sim", 0, 10, 14, 5, 5, filters=judged),
        Account("gateway", "voevents", 1, 0, 6, 7, 7),
    ]
    assert totals(accounts) == {"alerts": 5, "events": 7}
    assert through(accounts, "filters", "alerts.sim", {0: 15})
    assert not through(accounts, "filters", "alerts.sim", {0: 16})
    assert not through(accounts, "filters", "alerts.sim", {0: 15, 1: 1})


def test_no_cap_cuts_off_what_must_arrive() -> None:
    assert PER_VISIT <= CAP


def test_a_run_that_lost_something_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started: what a reader noted is all there is."""
    monkeypatch.setattr(streams_module, "PATIENCE", 0.0)
    streams = Streams(FaultsEnvironment(Context(tmp_path, Size(1, 1, 1.0)), []), run="run0")
    with closing(ArrivalLog(tmp_path / "run0.alerts")) as log:
        for name in ("7", "9\t0.5", "9\t0.6"):
            log.note(name)
    assert streams._complete("alerts", {"7": 0.0, "9": 0.0}).twice == 1
    with pytest.raises(RunError, match=r"of 3 alerts 1 lost: 8$"):
        streams._complete("alerts", {"7": 0.0, "8": 0.0, "9": 0.0})
    with pytest.raises(RunError, match=r"of 1 alerts 1 never sent but read: 9$"):
        streams._complete("alerts", {"7": 0.0})


def test_only_what_is_ours_is_killed(tmp_path: Path) -> None:
    def dying(**context: str) -> list[str]:
        made = Context(tmp_path, Size(1, 1, 1.0), **context)  # type: ignore[arg-type]
        return [victim.name for victim in VICTIMS if may_die(victim, made)]

    assert dying() == ["engine", "gateway", "kafka", "consumer"]
    assert dying(bootstrap="there:9092") == ["engine", "gateway", "consumer"]
    assert dying(engine="there") == ["gateway", "kafka", "consumer"]
    assert dying(engine="none") == ["gateway", "kafka"]


@given(st.lists(st.tuples(moments, waits), max_size=1000))
def test_a_plot_stays_small(points: list[tuple[float, float]]) -> None:
    assert len(thinned(points)) <= DRAWN
    assert thinned(points)[:1] == points[:1]


@pytest.fixture
def streams(tmp_path: Path) -> Iterator[Streams]:
    """Yield small streams through a Kafka, a gateway and a light engine."""
    context = Context(tmp_path, Size(30, 1, 20.0))
    environment = FaultsEnvironment(context, make_pool(20), others=0, light=True)
    yield Streams(environment)
    environment.close()


def killed(streams: Streams, name: str) -> None:
    """Kill *name* amid the streams; what comes of it adds up."""
    (victim,) = (one for one in VICTIMS if one.name == name)
    fault = Fault(streams, victim, Timing(lead=1.0, tail=0.5))
    fault.prepare()
    found = fault.run_once(Kind.SUBJECT)
    assert found.keys() == {figure.name for figure in figures_of(victim)}
    assert found[f"{name}_sent"] > found[f"{name}_lost"] == 0
    for struck in victim.strikes:
        first, backlog, gap = (
            found[f"{name}_{struck}_{what}_seconds"] for what in ("first", "backlog", "gap")
        )
        assert 0 < first <= backlog
        assert gap > 0
        assert fault.delays[struck]


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.proof
def test_gateway_and_reader_are_killed_and_nothing_is_lost(streams: Streams) -> None:
    for name in ("gateway", "consumer"):
        killed(streams, name)


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.proof
def test_engine_and_kafka_are_killed_and_nothing_is_lost(streams: Streams) -> None:
    for name in ("engine", "kafka"):
        killed(streams, name)
