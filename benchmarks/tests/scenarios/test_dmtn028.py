"""The scenario `dmtn028`: its table of transfers, its plots, and small runs on a real Kafka."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from benchmarks.tests.sample import schema
from nightwire.benchmarks import Context, Kind, Sample, Size
from nightwire.benchmarks.commands import bench
from nightwire.benchmarks.environment.alert_pool import Alert, load_pool, make_pool, save_pool
from nightwire.benchmarks.model.sample import TcpTraffic
from nightwire.benchmarks.scenarios.dmtn028.experiments import VOLUMES, Group, Point, groups
from nightwire.benchmarks.scenarios.dmtn028.quantities import QUANTITIES
from nightwire.benchmarks.scenarios.dmtn028.scenario import (
    SIZE,
    Dmtn028Scenario,
    TransferExperiment,
    drawings,
    lasting,
    stored,
)
from nightwire.benchmarks.workers.alerts.sender import Load, chosen_from
from nightwire.benchmarks.workers.alerts.transfer import (
    BYTES,
    DICTS,
    LATEST,
    Transfer,
    TransferResult,
    TransferRunner,
)
from nightwire.schemas import Codec, sim_alert_schema

PLAYED = TransferResult(
    alerts=1000,
    seconds=4.0,
    sending=2.0,
    transit=0.5,
    reading_cpu=1.5,
    readers=2,
    size=120_000_000,
    stored=50_000_000,
    memory=400_000_000,
)


@cache
def pool() -> list[Alert]:
    """Return some alerts; making them takes a moment."""
    return make_pool(30)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seconds", 4.0),
        ("send_seconds", 2.0),
        ("transit_seconds", 0.5),
        ("alerts_per_second", 250.0),
        ("consumer_cpu_ms", 1.5),
        ("stored_megabytes", 50.0),
        ("kafka_memory_megabytes", 400.0),
        ("network_in_megabytes_per_second", 25.0),
        ("network_out_megabytes_per_second", 25.0),
    ],
)
def test_quantities_have_the_units_that_they_say(name: str, value: float) -> None:
    assert QUANTITIES[name].of(PLAYED) == pytest.approx(value)


def test_what_another_kafka_does_not_tell_is_left_out() -> None:
    elsewhere = replace(PLAYED, stored=None, memory=None)
    unknown = {name for name, quantity in QUANTITIES.items() if quantity.of(elsewhere) is None}
    assert unknown == {
        "stored_megabytes",
        "kafka_memory_megabytes",
        "network_in_megabytes_per_second",
        "network_out_megabytes_per_second",
    }


def points(name: str, **choice: Any) -> Mapping[str, tuple[Transfer, Transfer]]:
    """Return the moves of group *name*, and their baselines, by label."""
    (group,) = (one for one in groups(**choice) if one.name == name)
    return {point.label: (point.transfer, point.baseline) for point in group.points}


def test_volumes_are_those_of_the_document_each_with_and_without_stamps() -> None:
    moves = [move for move, _baseline in points("volume").values()]
    assert [(move.load.alerts, move.load.stamps) for move in moves] == [
        (count, stamps) for count in (100, 1_000, 10_000, 100_000) for stamps in (True, False)
    ]
    assert all(move.consumers == (DICTS, LATEST) for move in moves)


def test_a_baseline_differs_from_its_move_in_what_is_asked_alone() -> None:
    differ = {
        "volume": {"load.ready", "consumers"},
        "consumers": {"consumers"},
        "producers": {"producers"},
        "partitions": {"partitions"},
        "flushing": {"load.flush_each"},
        "sizes": {"load.fixed"},
        "compression": {"load.compression"},
    }
    for name, expected in differ.items():
        for move, baseline in points(name).values():
            assert differences(move, baseline) == expected


def differences(one: Transfer, other: Transfer) -> set[str]:
    """Return the names of the fields in which two moves differ."""
    ours, theirs = (
        vars(move) | {f"load.{name}": value for name, value in vars(move.load).items()}
        for move in (one, other)
    )
    return {name for name in ours if name != "load" and ours[name] != theirs[name]}


def test_consumers_of_both_kinds_go_up_to_five_and_partitions_to_sixteen() -> None:
    consumers = [move.consumers for move, _baseline in points("consumers").values()]
    assert {kinds.count(DICTS) for kinds in consumers} == {1, 2, 3, 4, 5}
    assert {kinds.count(LATEST) for kinds in consumers} == {0, 1, 2, 3, 4, 5}
    assert [move.partitions for move, _baseline in points("partitions").values()] == [2, 4, 8, 16]


def test_the_quick_profile_asks_every_question_and_moves_small_visits_only() -> None:
    quick = groups(1_000, quick=True)
    assert [group.name for group in quick] == [group.name for group in groups()]
    assert all(group.points for group in quick)
    assert max(point.transfer.load.alerts for group in quick for point in group.points) == 1_000


def test_each_figure_has_a_name_of_its_own() -> None:
    names = [figure.name for figure in Dmtn028Scenario().figures]
    assert len(set(names)) == len(names)


def test_disk_and_time_grow_with_the_visit() -> None:
    small, large = Transfer(Load(100)), Transfer(Load(100_000), consumers=(DICTS,) * 5)
    assert stored(small) < stored(replace(small, load=replace(small.load, compression="none")))
    assert lasting(small) < lasting(large)
    scenario = Dmtn028Scenario()
    quick, full = (scenario.needs(scenario.standard[name]) for name in ("quick", "full"))
    assert quick.seconds < 300
    assert full.disk > 2 * 100_000 * 50_000


class Played(TransferRunner):
    """A runner that moves nothing; what is compared with takes twice as long."""

    def __init__(self, point: Point, result: TransferResult) -> None:
        self._point, self._result = point, result

    def run(self, transfer: Transfer) -> TransferResult:
        slow = replace(self._result, sending=4.0, seconds=8.0)
        return self._result if transfer == self._point.transfer else slow


def samples_of(group: Group, result: TransferResult = PLAYED) -> list[Sample]:
    """Return two runs of each point and its baseline."""
    return [
        Sample("all", kind, pair, TransferExperiment(group, point, Played(point, result)).run_once(kind))
        for point in group.points
        for kind in Kind
        for pair in range(2)
    ]


def test_volumes_are_drawn_over_alerts_and_over_their_size() -> None:
    group = groups()[0]
    plots = list(drawings([group], samples_of(group)))
    assert [plot.x for plot in plots] == ["alerts in a visit", SIZE] * len(group.quantities)
    over_alerts, over_size = ({line.name: line for line in plot.lines} for plot in plots[:2])
    assert list(over_alerts["with stamps"].x) == list(VOLUMES)
    assert list(over_alerts["with stamps"].y) == [2.0] * 4
    assert list(over_alerts["raw librdkafka, with stamps"].y) == [4.0] * 4
    assert list(over_size["with stamps"].x) == [120.0]


def test_a_baseline_that_is_one_of_the_points_lies_on_their_line() -> None:
    producers = next(group for group in groups() if group.name == "producers")
    rate, _transit = drawings([producers], samples_of(producers))
    (ours,) = rate.lines
    assert (list(ours.x), list(ours.y)) == ([1, 2, 4, 8], [125.0, 250.0, 250.0, 250.0])


def test_nothing_is_drawn_of_what_was_not_played_or_is_not_known() -> None:
    assert list(drawings(groups(), [])) == []
    volume = groups()[0]
    blind = samples_of(volume, replace(PLAYED, stored=None, memory=None))
    assert {plot.title.removeprefix("Alert volume: ") for plot in drawings([volume], blind)} == {
        QUANTITIES["send_seconds"].words,
        QUANTITIES["transit_seconds"].words,
    }


def test_alerts_without_stamps_have_null_stamps_and_fit_the_schema() -> None:
    codec = Codec(sim_alert_schema())
    with_stamps, without = (
        [len(codec.encode(alert)) for alert in chosen_from(pool(), Load(5, stamps=stamps))]
        for stamps in (True, False)
    )
    assert all(few < many - 80_000 for many, few in zip(with_stamps, without, strict=True))


def test_the_one_alert_of_a_fixed_size_is_that_closest_to_the_mean() -> None:
    codec = Codec(sim_alert_schema())
    sizes = [len(codec.encode(alert)) for alert in pool()]
    mean = sum(sizes) / len(sizes)
    (one,) = chosen_from(pool(), Load(30, fixed=True))
    assert abs(len(codec.encode(one)) - mean) == min(abs(size - mean) for size in sizes)


def test_a_pool_is_read_as_it_was_written(tmp_path: Path) -> None:
    save_pool(pool(), tmp_path / "pool")
    assert load_pool(tmp_path / "pool") == pool()


MOVED: list[tuple[str, TcpTraffic]] = []
"""What was said of traffic."""


def moved(name: str) -> TcpTraffic:
    return sum((one for said, one in MOVED if said == name), TcpTraffic())


@pytest.fixture(scope="module")
def runner(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransferRunner]:
    """Yield a runner on a real Kafka."""
    folder = tmp_path_factory.mktemp("play")
    one = TransferRunner(
        Context(folder, Size(20, 1, 1.0), bootstrap=kafka, traffic=lambda *said: MOVED.append(said))
    )
    yield one
    one.close()


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize(
    "move",
    [
        pytest.param(Transfer(Load(20), consumers=(DICTS, LATEST)), id="both kinds of consumers"),
        pytest.param(Transfer(Load(20, ready=True), consumers=(BYTES, LATEST)), id="raw librdkafka"),
        pytest.param(
            Transfer(Load(21, stamps=False), producers=3, partitions=16),
            id="three producers",
            marks=pytest.mark.proof,
        ),
        pytest.param(
            Transfer(Load(20, flush_each=True, fixed=True, compression="snappy"), consumers=(DICTS, DICTS)),
            id="flush each, two that decode",
            marks=pytest.mark.proof,
        ),
    ],
)
def test_a_small_move_arrives_whole(runner: TransferRunner, move: Transfer) -> None:
    MOVED.clear()
    played = runner.run(move)
    assert moved("producer").sent > 0 < moved("consumer").received
    assert moved("kafka").received >= moved("producer").sent + moved("consumer").sent
    if move.load.stamps and move.load.compression != "none":
        assert moved("consumer").received > 20_000 * move.load.alerts * played.readers
    assert played.alerts == move.load.alerts
    assert played.sending > 0.0
    assert 0.0 <= played.transit < played.seconds
    assert played.readers == sum(kind != LATEST for kind in move.consumers)
    assert (played.size > 80_000 * played.alerts) is move.load.stamps


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.proof
def test_the_verb_runs_a_question_and_the_report_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [group for group in groups(20) if group.name in ("flushing", "compression")]
    monkeypatch.setattr("nightwire.benchmarks.scenarios.dmtn028.scenario.groups", lambda *_a, **_k: asked)
    out = tmp_path / "result.json"
    words = ["run", "dmtn028", "--alerts", "20", "--pairs", "1", "--out", str(out)]
    done = CliRunner(env={"KAFKA_BOOTSTRAP_SERVERS": None}).invoke(bench, words)
    assert done.exit_code == 0, done.output
    result = json.loads(out.read_text())
    jsonschema.validate(result, schema())
    found = {entry["name"]: entry for entry in result["results"]}
    assert found["compression_zstd_stored_megabytes"]["ratio"] < 0.7
    assert {"producer", "consumer", "kafka"} <= {
        one["name"] for sample in result["samples"] for one in sample["processes"]
    }
    page = tmp_path / "r.html"
    shown = CliRunner().invoke(bench, ["report", "--results", str(tmp_path), "--out", str(page)])
    assert shown.exit_code == 0, shown.output
    assert "<h4>Compression</h4>" in page.read_text()
