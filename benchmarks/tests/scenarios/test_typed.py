"""The scenario `typed`: its records, plan and filters, and a tiny run of it on a real Kafka."""

from collections.abc import Iterator
from itertools import islice

import pytest

from nightwire.benchmarks import Context, Kind, Sample, Size
from nightwire.benchmarks.environment.alert_pool import make_pool
from nightwire.benchmarks.harness.options import RunOptions
from nightwire.benchmarks.harness.run import run
from nightwire.benchmarks.scenarios.typed.codec_alone import WAYS, CodecAlone, megabytes_per_second
from nightwire.benchmarks.scenarios.typed.filter_cost import FILTERS, FilterCost
from nightwire.benchmarks.scenarios.typed.plan import DECADES, SIZES, Plan, plan_of, rate_name, words_of
from nightwire.benchmarks.scenarios.typed.scenario import WORKER, TypedScenario, drawings, figures_of
from nightwire.benchmarks.scenarios.typed.through_kafka import TYPED, through_kafka
from nightwire.benchmarks.scenarios.typed.worker import OTHER, SCHEMA, body_size, records_of, value_of
from nightwire.benchmarks.workers.pool import WorkerPool
from nightwire.core.kafka import read_to_end
from nightwire.schemas import Codec
from nightwire.schemas.wire import unframe

pytestmark = pytest.mark.slow

TINY = Plan(sizes=(20_000,), records=12, volume=160_000, events=40)


@pytest.mark.parametrize("size", SIZES)
def test_records_have_the_size_that_is_asked_for_and_doubles_make_it(size: int) -> None:
    codec, records = Codec(SCHEMA), records_of(size)
    values = [value_of(one, codec) for one in records]
    assert {len(value) for value in values} == {size}
    assert len(set(values)) == len(values)
    assert {body_size(size)} == {len(unframe(value)[1]) for value in values}
    assert 0 < size - 8 * len(records[0]["velocity"]) <= 24


def test_no_record_is_smaller_than_one_double() -> None:
    with pytest.raises(ValueError, match="the smallest has 24"):
        records_of(23)


def test_another_version_has_other_names_and_types_and_the_same_numbers() -> None:
    (record,) = islice(records_of(200), 1)
    other = Codec(SCHEMA, reader=OTHER).decode(Codec(SCHEMA).encode(record))
    assert other == {"wind_velocity": record["velocity"], "step": float(record["step"]), "note": None}
    assert isinstance(other["step"], float)


def test_sizes_go_from_100_bytes_to_a_megabyte() -> None:
    quick, full = (plan_of(TypedScenario.standard[profile]) for profile in ("quick", "full"))
    assert quick.sizes == DECADES == (100, 1_000, 10_000, 100_000, 1_000_000)
    assert full.sizes == SIZES
    assert len(SIZES) == 13
    assert [words_of(size) for size in (100, 5_000, 1_000_000)] == ["100 bytes", "5 kB", "1 MB"]
    assert rate_name("typed", 20_000) == "typed_20_kb_megabytes_per_second"


@pytest.mark.parametrize(("size", "count"), [(100, 12), (20_000, 8), (1_000_000, 1)])
def test_records_follow_each_other_up_to_a_number_or_a_volume(size: int, count: int) -> None:
    assert TINY.count(size) == count


def test_each_figure_has_a_name_of_its_own() -> None:
    figures = {figure.name: figure for figure in TypedScenario().figures}
    assert len(figures) == len(TypedScenario().figures) == 6 * len(SIZES) + 1 + 3 * len(FILTERS)
    assert figures["other_version_share"].share_of in figures


def test_bandwidth_is_that_of_all_records_that_are_taken_at_once() -> None:
    calls: list[int] = []
    rate = megabytes_per_second((lambda: calls.append(1), 10), 1_000)
    assert 0 < rate < float("inf")
    assert megabytes_per_second((lambda: sum(range(1_000)), 10), 10**9) > 10**4


def test_typed_and_raw_are_drawn_over_sizes() -> None:
    plan = Plan(sizes=(100, 1_000), records=1, volume=1, events=1)
    rates = [(Kind.SUBJECT, 100, 1.0), (Kind.SUBJECT, 100, 3.0), (Kind.SUBJECT, 1_000, 5.0)]
    rates.append((Kind.BASELINE, 100, 4.0))
    taken = [
        Sample("typed", kind, pair, {rate_name(TYPED, size): rate})
        for pair, (kind, size, rate) in enumerate(rates)
    ]
    (plot,) = drawings(plan, taken)
    lines = {line.name: (list(line.x), list(line.y)) for line in plot.lines}
    assert lines == {
        "nightwire, to dictionaries": ([100, 1_000], [2.0, 5.0]),
        "raw librdkafka": ([100], [4.0]),
    }
    assert list(drawings(plan, [])) == []


def test_the_codec_is_measured_beside_a_copy_of_the_same_bytes() -> None:
    alone = CodecAlone(Plan(sizes=(100,), records=1, volume=1, events=1))
    alone.prepare()
    names = {rate_name(way, 100) for way in WAYS}
    assert {kind: alone.run_once(kind).keys() for kind in Kind} == dict.fromkeys(Kind, names)


def test_a_record_that_does_not_come_back_is_not_measured() -> None:
    alone = CodecAlone(TINY)
    alone._codec = Codec(SCHEMA, reader=OTHER)
    with pytest.raises(AssertionError, match="does not come back"):
        alone.prepare()


def test_filters_pass_some_events_and_not_others() -> None:
    """One that passes all or none could be wrong unseen."""
    cost = FilterCost(make_pool(60), 60)
    cost.prepare()
    passed = {name: cost._evaluate(one, one.batch).mean() for name, one in cost._filters.items()}
    assert passed.keys() == FILTERS.keys()
    assert all(0.01 < share < 0.999 for share in passed.values()), passed


def test_a_filter_on_which_program_and_function_disagree_is_not_measured() -> None:
    cost = FilterCost(make_pool(20), 20)
    cost._call = lambda one, events: [not one.keep(cost._sim.view(event)) for event in events]  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match="do not agree"):
        cost.prepare()


@pytest.fixture(scope="module")
def workers(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerPool]:
    """Yield workers on a real Kafka."""
    one = WorkerPool(Context(tmp_path_factory.mktemp("workers"), Size(20, 1, 1.0), bootstrap=kafka), WORKER)
    yield one
    one.close()


@pytest.mark.kafka
@pytest.mark.parametrize("raw", [False, True])
def test_what_is_sent_lies_in_kafka_and_was_taken(workers: WorkerPool, kafka: str, raw: bool) -> None:
    through = through_kafka(workers, TINY)[0]
    with workers.cluster.topic("typed", partitions=1) as topic:
        order = {"topic": topic, "count": 12, "size": 500, "raw": raw, "work": "bytes" if raw else "dicts"}
        found, sent = through._results(order)
        values = [message.value() for message in read_to_end(kafka, [topic])]
    codec = Codec(SCHEMA)
    wanted = [value_of(one, codec) for one in records_of(500)]
    assert values == [*wanted, *wanted[:4]]
    assert (found["records"], found["size"]) == (12, 12 * 500)
    assert sent["began"] <= sent["handed"] <= sent["acknowledged"]


@pytest.mark.proof
@pytest.mark.kafka
@pytest.mark.slow
def test_a_tiny_run_has_every_figure_and_plot(kafka: str) -> None:
    said: list[str] = []
    result = run(TypedScenario(lambda _size: TINY), RunOptions(pairs=1, bootstrap=kafka), said.append)
    assert result["failed"] == []
    found = {entry["name"]: entry for entry in result["results"]}
    assert set(found) == {figure.name for figure in figures_of(TINY)}
    assert all(entry["value"] > 0 and entry["ratio"] > 0 for entry in found.values())
    assert [len(one["lines"]) for one in result["series"]] == [4, 4]
    assert all(list(line["x"]) == [20_000] for one in result["series"] for line in one["lines"])
    assert any("Reduced:" in note for note in result["notes"])
