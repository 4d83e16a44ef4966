"""The scenario `messages`: its alerts, plan and plots, and small runs on a real Kafka."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from nightwire.benchmarks import Context, Kind, RunError, Sample, Size
from nightwire.benchmarks.environment.alert_pool import Alert, make_pool, patch
from nightwire.benchmarks.harness.options import RunOptions
from nightwire.benchmarks.harness.run import run
from nightwire.benchmarks.scenarios.messages.alerts import DISTINCT, STAMP, alerts_of, value_size
from nightwire.benchmarks.scenarios.messages.experiments import (
    FLOW,
    KIB,
    LARGEST,
    MIB,
    PINGPONG,
    Flow,
    MessageWorkers,
    PingPong,
    Plan,
    Point,
    flow_name,
    plan_of,
    trip_figures,
    words_of,
)
from nightwire.benchmarks.scenarios.messages.scenario import MessagesScenario, drawings, figures_of
from nightwire.benchmarks.scenarios.messages.worker import WARM_UP, Endpoint, round_trips
from nightwire.benchmarks.workers.alerts.sender import VISIT, Load, Sent
from nightwire.benchmarks.workers.alerts.transfer import DICTS, Transfer, checked_result
from nightwire.core.kafka import read_to_end
from nightwire.schemas import Codec, sim_alert_schema
from nightwire.schemas.wire import unframe

TINY = Plan((256, LARGEST), (2 * KIB,), (1, 2), trips=3, seconds=10.0, messages=21, volume=MIB)


@cache
def pool() -> list[Alert]:
    """Return some alerts; making them takes a moment."""
    return make_pool(5)


@pytest.mark.parametrize("size", [200, 256, 512, 2 * KIB, 16 * KIB, 128 * KIB, LARGEST])
def test_alerts_have_the_size_that_is_asked_for_whatever_their_number(size: int) -> None:
    codec = Codec(sim_alert_schema())
    alerts = alerts_of(size, pool())
    sent = [patch(alert, 19_999 + number, VISIT) for number, alert in enumerate(alerts)]
    assert {value_size(alert, codec) for alert in alerts + sent} == {size}
    assert len({alert[STAMP] for alert in alerts}) == len(alerts)
    assert sum(map(len, (alert[STAMP] for alert in alerts))) + 200 * len(alerts) > DISTINCT


@pytest.mark.parametrize("size", [100, 179])
def test_no_alert_is_smaller_than_what_its_schema_demands(size: int) -> None:
    with pytest.raises(ValueError, match="no alert has"):
        alerts_of(size, pool())


def test_the_quick_profile_asks_for_some_of_all_that_is_published() -> None:
    quick, full = (plan_of(MessagesScenario.standard[profile]) for profile in ("quick", "full"))
    assert (full.pingpong, full.flow, list(full.counts)) == (PINGPONG, FLOW, list(range(1, 15)))
    assert set(quick.pingpong) < set(full.pingpong)
    assert set(quick.flow) < set(full.flow)
    assert {1, 14} <= set(quick.counts) < set(full.counts)
    assert [words_of(size) for size in quick.pingpong] == ["256 bytes", "16 KiB", "128 KiB", "1 MiB", "4 MiB"]


def test_each_number_of_producers_and_of_consumers_is_one_point() -> None:
    assert [(point.producers, point.consumers) for point in TINY.points] == [(1, 1), (2, 1), (1, 2)]
    assert [point.label for point in TINY.points] == ["one_to_one", "2_producers", "2_consumers"]
    assert [point.number_of("consumers") for point in TINY.points] == [1, 0, 2]
    assert TINY.most == 3


@pytest.mark.parametrize(("size", "count"), [(256, 1000), (16 * KIB, 256), (8 * MIB, 1)])
def test_a_flow_ends_at_its_number_or_at_its_volume(size: int, count: int) -> None:
    plan = Plan((), (size,), (1,), trips=1, seconds=1.0, messages=1000, volume=4 * MIB)
    assert plan.count(size) == count


def test_each_figure_has_a_name_of_its_own() -> None:
    names = [figure.name for figure in MessagesScenario().figures]
    assert len(set(names)) == len(names) == 3 * len(PINGPONG) + 27 * len(FLOW)


def test_latency_is_half_a_round_trip_and_bandwidth_the_size_over_it() -> None:
    assert trip_figures(1_000_000, [0.2, 0.2, 0.2]) == {
        "latency_1000000_bytes_p50_ms": pytest.approx(100.0),
        "latency_1000000_bytes_p99_ms": pytest.approx(100.0),
        "pingpong_1000000_bytes_megabytes_per_second": pytest.approx(10.0),
    }


def end(received: list[Any]) -> Endpoint:
    """Return an end of a conversation that receives just this."""
    return Endpoint(lambda _thing: None, iter(received), lambda sent, got: bool(sent == got))


def test_round_trips_are_counted_after_the_first_few() -> None:
    things = list(range(WARM_UP + 3))
    assert len(round_trips(end(things), things, seconds=60.0)) == 3


def test_round_trips_end_in_time_but_one_is_counted() -> None:
    assert len(round_trips(end(list(range(1000))), range(1000), seconds=0.0)) == 1


@pytest.mark.parametrize("received", [[0, 1, 1], [0, 1]])
def test_a_message_that_does_not_come_back_fails_the_run(received: list[int]) -> None:
    with pytest.raises(RunError, match="message 3 did not come back"):
        round_trips(end(received), range(5), seconds=60.0)


def took(records: int = 10, size: int = 2560, left: int = 0) -> dict[str, Any]:
    """Return what a consumer says."""
    return {"records": records, "size": size, "left": left, "last": 12.0, "cpu": 0.1}


@pytest.mark.parametrize("bad", [took(9), took(11), took(left=1), took(size=2559)])
def test_what_was_lost_or_doubled_or_has_another_size_fails_the_run(bad: dict[str, Any]) -> None:
    transfer, sent = Transfer(Load(10), consumers=(DICTS, DICTS)), [Sent(10.0, 11.0, 11.5)]
    assert checked_result(transfer, 256, sent, [took(), took()]).seconds == 2.0
    with pytest.raises(RunError, match=r"of 10 alerts|came as"):
        checked_result(transfer, 256, sent, [took(), bad])


def figures(plan: Plan) -> dict[str, float]:
    """Return a run's figures: round trips of 4 ms, flows of one MB/s a producer."""
    trips = [trip_figures(size, [0.002, 0.004, 0.006]) for size in plan.pingpong]
    flows = {flow_name(point, size): float(point.producers) for point in plan.points for size in plan.flow}
    return {name: value for one in (*trips, flows) for name, value in one.items()}


def test_latency_and_bandwidth_are_drawn_over_sizes_and_numbers() -> None:
    plan = Plan((256, MIB), (256,), (1, 14), trips=3, seconds=1.0, messages=1, volume=1)
    taken = [Sample("all", kind, 0, figures(plan)) for kind in Kind]
    drawn = {one.title: {line.name: line for line in one.lines} for one in drawings(plan, taken)}
    assert len(drawn) == 6
    latency = drawn["Ping-pong: half a round trip"]["nightwire, median"]
    assert (list(latency.x), list(latency.y)) == ([256, MIB], [2.0, 2.0])
    rate = drawn["Ping-pong: bandwidth"]["nightwire"]
    assert rate.y[-1] == pytest.approx(MIB / 2e3, rel=1e-4)
    over_number = drawn["Many producers: over their number"]["nightwire, 256 bytes"]
    assert (list(over_number.x), list(over_number.y)) == ([1, 14], [1.0, 14.0])
    assert "raw librdkafka, 14 consumers" in drawn["Many consumers, rate of each: over sizes"]


def test_nothing_is_drawn_of_what_was_not_measured() -> None:
    assert list(drawings(TINY, [])) == []


@pytest.fixture(scope="module")
def workers(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MessageWorkers]:
    """Yield workers on a real Kafka."""
    one = MessageWorkers(Context(tmp_path_factory.mktemp("workers"), Size(20, 1, 1.0), bootstrap=kafka))
    yield one
    one.close()


@pytest.mark.kafka
@pytest.mark.parametrize("ready", [False, True], ids=["nightwire", "raw librdkafka"])
def test_what_producers_send_lies_in_kafka_and_was_taken_by_each_consumer(
    workers: MessageWorkers, kafka: str, ready: bool
) -> None:
    size, codec = 2 * KIB, Codec(sim_alert_schema())
    transfer = Transfer(Load(21, ready=ready), producers=2, consumers=(DICTS, DICTS))
    with workers.cluster.topic("flow") as topic:
        sent, found = Flow(workers, TINY, Point(2, 2)).move(transfer, topic, workers.alerts_file(size))
        values = [message.value() or b"" for message in read_to_end(kafka, [topic])]
        assert workers.count_in(topic) == 21
    assert len(sent) == 2
    assert [(one["records"], one["size"]) for one in found] == [(21, 21 * size)] * 2
    assert [len(value) for value in values] == [size] * 21
    ids = {codec.decode(unframe(value)[1])["diaSourceId"] for value in values}
    assert ready or len(ids) == 21


@pytest.mark.kafka
@pytest.mark.parametrize("kind", Kind)
def test_every_message_of_every_size_comes_back(workers: MessageWorkers, kind: Kind) -> None:
    trips = PingPong(workers, TINY).round_trips(kind, TINY.trips)
    assert {size: len(taken) for size, taken in trips.items()} == {256: 3, LARGEST: 3}
    figures = trip_figures(256, trips[256])
    assert figures["latency_256_bytes_p50_ms"] <= figures["latency_256_bytes_p99_ms"]


@pytest.mark.proof
@pytest.mark.kafka
@pytest.mark.slow
def test_a_tiny_run_has_every_figure_and_plot(kafka: str) -> None:
    said: list[str] = []
    result = run(MessagesScenario(lambda _size: TINY), RunOptions(pairs=1, bootstrap=kafka), said.append)
    assert result["failed"] == []
    found = {entry["name"]: entry for entry in result["results"]}
    assert set(found) == {figure.name for figure in figures_of(TINY)}
    assert all(entry["value"] > 0 and entry["ratio"] > 0 for entry in found.values())
    assert {"producer", "consumer"} <= {
        one["name"] for sample in result["samples"] for one in sample["processes"]
    }
    assert len(result["series"]) == 6
    assert flow_name(Point(consumers=2), 2 * KIB) in found
    assert any("Reduced:" in note for note in result["notes"])
