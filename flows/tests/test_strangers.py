"""What strangers can write into records of Kafka stops no flow."""

import json
import math
import threading
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from confluent_kafka import Message, TopicPartition

from flows.tests.running import alert, problems
from nightwire.core.access import ReadRights
from nightwire.core.kafka import MAX_MESSAGE
from nightwire.core.runtime import Endpoints
from nightwire.core.subscriptions import FlowRecord
from nightwire.filters.language import Condition
from nightwire.filters.model import AddedField
from nightwire.filters.sandbox import Limits
from nightwire.flows import worker as worker_module
from nightwire.flows.engine import Plan, stones
from nightwire.flows.engine.archive_backfill import ArchivedRecords
from nightwire.flows.engine.bridge import has_crossed
from nightwire.flows.engine.events import Event, Origin, Rejection, event_of
from nightwire.flows.engine.join import JoinRunner
from nightwire.flows.engine.part import PartRunner, PartSession
from nightwire.flows.engine.stones import ConditionRunner, SandboxFunction, SplitRunner, owner_sandbox
from nightwire.flows.engine.window import WindowRunner
from nightwire.flows.model import Stone, compile_filter, parse
from nightwire.flows.worker import HostedFlow, Worker, WorkerSettings
from nightwire.schemas import SIM_ALERT_ID, AlertDecoder, SchemaRegistry, survey
from tests._waiting import until

FORGED = [
    {"topic": "fälscher\r\n"},
    {"partition": "99999999999"},
    {"offset": "99999999999999999999"},
    {"offset": "-1"},
]


def message(**headers: str) -> Message:
    """Return a record that says that it was another at first."""
    said = {"topic": "alerts.sim", "partition": "1", "offset": "2"} | headers
    found = Message(topic="filter.ann.x", partition=0, key=None, value=b"x", headers=[])
    found.set_headers([(name, text.encode()) for name, text in said.items()])
    return found


def test_who_says_what_it_was_is_believed() -> None:
    assert event_of(message()).origin == ("alerts.sim", 1, 2)


@pytest.mark.parametrize("headers", FORGED)
def test_an_origin_that_cannot_be_is_not_believed(headers: dict[str, str]) -> None:
    assert event_of(message(**headers)).origin.topic == "filter.ann.x"


def test_a_stone_that_cannot_be_is_not_believed() -> None:
    assert event_of(message(stone="ß\r\n")).stone == ""


def window(**options: Any) -> WindowRunner:
    """Return a window of an hour over simulated alerts."""
    stone = Stone("often", "window", (), options={"within": "1h", "function": "mean", **options})
    return WindowRunner("bright", stone, survey("sim"), AlertDecoder(SchemaRegistry(None)), SIM_ALERT_ID)


def join(**options: Any) -> JoinRunner:
    """Return a join of a day over simulated alerts."""
    stone = Stone("known", "join", (), options={"within": "1d", **options})
    return JoinRunner("bright", stone, survey("sim"), AlertDecoder(SchemaRegistry(None)), SIM_ALERT_ID)


def event(number: int, **source: Any) -> Event:
    """Return an event with an alert of one object."""
    return Event(alert(1, **source), None, Origin("alerts.sim", 0, number), index=number)


def test_a_window_reads_the_field_that_its_check_found() -> None:
    """A bare name is a field of the source, and one behind `alert.` the alert's own."""
    for name in ("psfFlux", "alert.diaSourceId"):
        assert len(window(value=name).run([event(0)]).passed[""]) == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("field", ["midpointMjdTai", "psfFlux"])
def test_a_number_that_is_none_spoils_no_window(field: str, bad: float) -> None:
    """It is no fault of the alert's, and counts for nothing: told by what is missing."""
    made = window(value="diaSource.psfFlux").run([event(0), event(1, **{field: bad}), event(2)])
    [(rejected, why)] = made.faults
    named = {"midpointMjdTai": "no mjd_tai", "psfFlux": "no diaSource.psfFlux"}[field]
    assert (rejected.index, why, isinstance(why, Rejection)) == (1, named, True)
    assert len(made.passed[""]) == 2


@pytest.mark.parametrize(("kind", "name"), [("window", "often"), ("join", "known")])
def test_an_alert_without_an_object_is_rejected_by_that_name(kind: str, name: str) -> None:
    """It fills no dead letters, and counts for no object; what is no alert is a dead letter."""
    more = 'function = "count"' if kind == "window" else ""
    text = f'name = "b"\n[sources.s]\ntopic = "x"\n[stones.{name}]\nkind = "{kind}"\nfrom = "s"\n'
    runner = {"window": window, "join": join}[kind]()
    plan = Plan(parse(f'{text}within = "1h"\n{more}'), 1, "", {f"flow.b.{name}": name}, {name: runner})
    topic = f"flow.b.{name}"
    values = [alert(1), alert(2, diaObjectId=None), b"x"]
    said = [
        Message(topic=topic, partition=0, offset=at, key=None, value=one) for at, one in enumerate(values)
    ]
    made = plan.run(said)
    assert ([*made.dead_letters], made.rejected[1]) == ([2], f"{name}: no object_id")
    assert [key for key, _ in made.state] == [name]


def test_a_window_of_another_field_begins_anew() -> None:
    """What was kept by another object, or of another field, is none of it; else it goes on."""

    def kept(**options: Any) -> str:
        return window(**options).state_name

    assert kept() == kept(by="object_id", above=3) == kept(function="count") == "often"
    assert len({kept(), kept(by="band"), kept(value="snr"), kept(by="band", value="snr")}) == 4


def test_a_time_of_the_far_future_makes_no_window_deaf() -> None:
    written = round((60_000.0 - 40_587.0) * 86_400_000)
    far = replace(event(1, midpointMjdTai=90_000.0), written=written)
    made = window().run([event(0), far, replace(event(2), written=written)])
    assert [(one.index, "more than a day after" in why) for one, why in made.faults] == [(1, True)]
    assert len(made.passed[""]) == 2


def test_what_is_too_long_to_be_kept_stands_in_no_others_way() -> None:
    made = join().run([event(0), event(1, band="g" * 30_000), event(2)])
    assert [(one.index, "too many to keep" in why) for one, why in made.faults] == [(1, True)]
    assert len(made.passed[""]) == 2


def test_what_is_over_gets_a_tombstone_from_who_had_a_part_in_it() -> None:
    """Another worker's objects are its own to end, though they are known here too."""
    one = window()
    first = one.run([event(0, diaObjectId=5)])
    one.restore({key: value for key, value in first.state.items() if value} | {"6": first.state["5"] or b""})
    assert one.run([event(1, diaObjectId=5)]).state.keys() == {"5"}
    assert one.run([event(2, diaObjectId=7, midpointMjdTai=60_001.0)]).state.keys() == {"5", "7"}
    assert (one.states.keys(), one.run([event(3, diaObjectId=7, midpointMjdTai=60_001.0)]).state.keys()) == (
        {"7"},
        {"7"},
    )


def test_what_is_too_much_is_let_go_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """The object touched longest ago goes; of another worker's there is no tombstone."""
    one = window(objects=2)
    first = one.run([event(0, diaObjectId=5), event(1, diaObjectId=6)])
    first.state |= one.run([event(2, diaObjectId=5, midpointMjdTai=60_000.01)]).state
    elsewhere = json.dumps([False, [[59_999.9, 1.0, "a", "alerts.sim", 3, 0]]]).encode()
    one.restore({key: value for key, value in first.state.items() if value} | {"4": elsewhere})
    more = one.run([event(3, diaObjectId=7)])
    assert ([key for key, value in more.state.items() if value is None], one.evicted) == (["6"], 1)
    assert {*one.states} == {"5", "7"}
    assert "keeps at most 2 objects and 64 MiB: 1 were let go early" in caplog.text


def test_what_is_too_long_together_is_let_go() -> None:
    one = window(megabytes=1)
    one.run([event(0, diaObjectId=5), event(1, diaObjectId=6)])
    one.size += 1 << 20  # as if others were there
    assert [*one.run([event(2, diaObjectId=7)]).state.values()] == [None, None, None]
    assert (one.size, one.evicted, one.states) == (1 << 20, 3, {})


WAYS = [([], False), (["A"], False), (["A", "B"], True), (["C", "A", "B", "C"], True), (["B", "C"], False)]


@pytest.mark.parametrize(("way", "again"), WAYS)
def test_what_crossed_a_bridge_does_not_cross_it_again(way: list[str], again: bool) -> None:
    """Sites A and B; the alert is at A, and goes to B."""
    found = message()
    found.set_headers([("site", one.encode()) for one in way])
    assert has_crossed(found, "A", "B") is again


def test_a_function_of_python_sorts_events() -> None:
    source = "def keep(alert):\n    return 10 / (alert.ra - 5) > 1\n"
    sorter = ConditionRunner(
        {"": Condition(compile_filter(source, "sim").program or "", "sim")}, None, window().decoder, "sim"
    )
    made = sorter.run([event(number, ra=ra) for number, ra in enumerate([10.0, 5.0, 100.0])])
    assert ([one.index for one in made.passed[""]], made.faults) == ([0], [])


@pytest.fixture
def function(monkeypatch: pytest.MonkeyPatch) -> SandboxFunction:
    """Yield one that computes, fails, or has no end, as the alert's place says."""
    monkeypatch.setattr(stones, "LIMITS", Limits(cpu_s=0.2, alert_s=0.05))
    source = """
def transform(alert):
    while alert.ra > 40: pass
    return {"score": "text"} if alert.ra > 20 else {"score": 1 / alert.ra}
"""
    return SandboxFunction(owner_sandbox("ann"), "bright.x", source, (AddedField("score", "float"),))


def test_a_function_that_fails_or_has_no_end_stops_no_other_alert(function: SandboxFunction) -> None:
    """What it computes goes on, in order; each of the others is named."""
    faults: list[tuple[Event, str]] = []
    events = [event(at, ra=ra) for at, ra in enumerate([10.0, 0.0, 45.0, 25.0, 20.0])]
    events.insert(1, Event(b"x", None, Origin("alerts.sim", 0, 9), index=9))
    made = function.compute(events, "sim", SchemaRegistry(None), faults)
    said = [(one.index, json.loads(text)) for one, text in made]
    assert said == [(0, {"score": 0.1}), (4, {"score": 0.05})]
    assert {one.index: why for one, why in faults} == {
        9: "nightwire.schemas.errors.DecodeError: not in wire format: 1 bytes, the header alone has 5",
        1: "ZeroDivisionError: float division by zero (line 4: return "
        '{"score": "text"} if alert.ra > 20 else {"score": 1 / alert.ra})',
        2: "took longer than 0.05 s of CPU time for one alert: TooLate (line 3: while alert.ra > 40: pass)",
        3: "transform gave str 'text' for score, declared as float",
    }


def test_a_function_that_is_stopped_again_and_again_is_not_tried_for_ever(
    function: SandboxFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults: list[tuple[Event, str]] = []
    monkeypatch.setattr(stones, "RETRY_TIME", 0.0)
    events = [event(at, ra=45.0) for at in range(3)]
    assert [*function.compute(events, "sim", SchemaRegistry(None), faults)] == []
    assert [why.partition(" longer")[0] for _, why in faults] == ["took", *["not computed: took"] * 2]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a = " + "[" * 50_000, "no TOML"),
        ('name = "b"\n[sources.s]\ntopic = "x"\n[stones.t]\nkind = "split"\nfrom = "s"', "holds flow b"),
    ],
)
def test_a_record_that_is_no_flow_stops_no_worker(text: str, why: str) -> None:
    worker = Worker(WorkerSettings(Endpoints("127.0.0.1:1", ""), "m"), SchemaRegistry(None))
    eves = FlowRecord("a", text, False, "eve", datetime.now(UTC))
    until(lambda: worker.follow({"a": (eves, 1)}) or problems(worker), "no problem")
    assert why in problems(worker)["a"]


def test_nobody_waits_for_anothers_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eve's takes its time; ann's runs, and changes; eve's right is taken away meanwhile."""
    ended, begun = threading.Event(), threading.Event()

    def compiled_slowly(worker: Worker, record: FlowRecord, *_: object) -> dict[Any, Any]:
        if record.made_by == "eve":
            begun.set()
            assert ended.wait(60)
        return {}

    monkeypatch.setattr(Worker, "_compile", compiled_slowly)
    applied: list[str] = []
    monkeypatch.setattr(Worker, "_apply", lambda _, name, _plans: applied.append(name))
    worker = Worker(WorkerSettings(Endpoints("127.0.0.1:1", ""), "m"), SchemaRegistry(None))
    text = 'name = "{}"\n[sources.s]\ntopic = "x"\n[stones.t]\nkind = "split"\nfrom = "s"'
    said = {"a": "eve", "b": "ann", "c": "eve"}
    flows = {
        name: (FlowRecord(name, text.format(name), False, who, datetime.now(UTC)), at)
        for at, (name, who) in enumerate(said.items())
    }
    until(lambda: worker.follow(flows) or (begun.is_set() and "b" in applied), "ann waits for eve")
    until(lambda: worker.follow(flows | {"b": (flows["b"][0], 9)}) or applied == ["b", "b"], "ann waits")
    worker.rights = ReadRights([])
    ended.set()
    until(
        lambda: worker.follow({one: flows[one] for one in "ac"}) or {*problems(worker)} == {*"ac"}, "she may"
    )
    assert problems(worker)["a"] == "eve may not read x"
    assert "b" not in problems(worker)


def test_what_comes_to_a_terminal_by_two_ways_is_written_once() -> None:
    text = (
        'name = "b"\n[sources.s]\ntopic = "filter.ann.x"\n[stones.a]\nkind = "split"\nfrom = "s"\n'
        '[stones.t]\nkind = "topic"\nfrom = ["s", "a"]\ntopic = "t"'
    )
    plan = Plan(parse(text), 1, "", {"filter.ann.x": "s"}, {"a": SplitRunner()})
    assert [(topic, event.index) for topic, event in plan.run([message(), message(offset="3")]).outputs] == [
        ("t", 0),
        ("t", 1),
    ]


def test_a_record_that_is_too_long_with_its_headers_is_a_dead_letter() -> None:
    text = (
        'name = "b"\n[sources.s]\ntopic = "filter.ann.x"\n[stones.t]\nkind = "topic"\nfrom = "s"\ntopic = "t"'
    )
    plan = Plan(parse(text), 1, "", {"filter.ann.x": "s"}, {})
    long = Message(topic="filter.ann.x", partition=0, offset=0, key=None, value=bytes(MAX_MESSAGE - 99))
    made = plan.run([long, message()])
    assert ([*made.dead_letters], [event.index for _, event in made.outputs]) == ([0], [1])


def test_of_a_flow_that_stays_as_it_was_no_queue_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its older stones are at work; a minute after their last change the others' queues may go."""
    kept: list[tuple[list[str], set[str] | None]] = []
    monkeypatch.setattr(
        worker_module,
        "delete_orphaned_queues",
        lambda _kafka, flows, names, _: kept.append(([f.name for f in flows], names)),
    )
    clock = iter(range(0, 10**6, 31))
    monkeypatch.setattr(worker_module.time, "monotonic", lambda: float(next(clock)))
    worker = Worker(WorkerSettings(Endpoints("127.0.0.1:1", ""), "m"), SchemaRegistry(None))
    worker._cleaned_at = 0.0
    text = 'name = "{}"\n[sources.s]\ntopic = "x"\n[stones.t]\nkind = "split"\nfrom = "s"'
    flows = {
        one: (FlowRecord(one, text.format(one), one == "c", "ann", datetime.now(UTC)), 1) for one in "abc"
    }
    worker.hosted = {
        one: HostedFlow("ann", 1) for one in "bc"
    }  # "a" is refused, or waits for its owner's other texts
    for version in range(10):  # that another flow changes all the time holds up nothing
        worker.clean_up(flows | {"d": (flows["b"][0], version)})
        if worker._cleaner.ident:
            worker._cleaner.join(10)
    assert kept[-1] == (["b", "c"], {*"abcd"})
    kept.clear()
    while not kept:
        worker.clean_up({"b": flows["b"]})
        if worker._cleaner.ident:
            worker._cleaner.join(10)
    assert kept == [(["b"], None)]  # others have just ended


class ExpiringConsumer:
    """A consumer of a topic of which Kafka deletes twenty records more, and then no more."""

    lows = iter((30, 30))

    def get_watermark_offsets(self, _one: object, timeout: float) -> tuple[int, int]:
        """Return what it still has."""
        return next(self.lows), 100

    def resume(self, _partitions: object) -> None:
        """Go on with Kafka."""


class PagingArchive:
    """An archive of all records, ten a page."""

    def records(self, here: tuple[str, int], wanted: range) -> tuple[list[Message], int]:
        """Return those of *wanted* that stand on the first page."""
        page = wanted[:10]
        return [Message(topic=here[0], partition=here[1], offset=at) for at in page], page.stop


def session_of(archived: ArchivedRecords) -> PartSession:
    """Return one that reads ten records from the archive, and then goes on with Kafka."""
    text = 'name = "b"\n[sources.s]\ntopic = "alerts.sim"\n[stones.t]\nkind = "split"\nfrom = "s"'
    part = PartRunner("127.0.0.1:1", "w", Plan(parse(text), 1, "", {"alerts.sim": "s"}, {}), 2.0)
    session = PartSession(part, archived)
    session._positions["alerts.sim", 0], archived.ends["alerts.sim", 0] = 0, 10
    return session


def test_what_the_archive_gave_of_a_partition_that_went_is_the_next_workers() -> None:
    """It goes while Kafka is asked for more, as partitions do."""
    archived, source = ArchivedRecords(cast("Any", PagingArchive())), cast("Any", ExpiringConsumer())
    source.lows = iter((10,))
    session = session_of(archived)
    source.unassign = lambda: None
    source.consume = lambda *_: session._revoked(source, [TopicPartition("alerts.sim", 0)]) or []
    assert session._batch(source) == []


def test_what_kafka_forgets_while_the_archive_is_read_comes_from_the_archive() -> None:
    archived, source = ArchivedRecords(cast("Any", PagingArchive())), cast("Any", ExpiringConsumer())
    session = session_of(archived)
    read: list[int] = []
    while archived.ends:
        read += [one.offset() or 0 for one in session._archived_batch(source)]
        session._positions["alerts.sim", 0] = read[-1] + 1
    assert read == [*range(30)]


def test_what_nobody_has_any_more_is_named(caplog: pytest.LogCaptureFixture) -> None:
    source = cast("Any", ExpiringConsumer())
    source.lows = iter((30,))
    assert ArchivedRecords(None).next_offset(source, TopicPartition("filter.ann.x", 1, 10)) == 30
    assert "filter.ann.x/1: Kafka has forgotten offsets 10 to 29, unread" in caplog.text


def test_a_window_is_over_by_the_time_of_its_own_partition() -> None:
    """Of a night that is read again one partition may be hours ahead of another."""
    one = window(function="count", above=1)
    one.run([event(0, diaObjectId=5)])
    ahead = replace(event(1, diaObjectId=7, midpointMjdTai=60_001.0), origin=Origin("alerts.sim", 1, 1))
    one.run([ahead])
    assert len(one.run([event(2, diaObjectId=5, midpointMjdTai=60_000.01)]).passed[""]) == 1


def test_what_another_kind_of_stone_kept_is_no_state() -> None:
    """A window that becomes a join, or back, and what strangers write, stop no flow."""
    windows, joins = window().run([event(0)]).state, join().run([event(0)]).state
    for stone, own, others in ((window(), windows, joins), (join(), joins, windows)):
        [(key, kept), [other]] = [*own.items(), others.values()]
        stone.restore({key: kept or b"", "a": other or b"", "b": b"[[], []]", "c": b"x", "d": b"[0, [[]]]"})
        assert stone.states.keys() == {key}
