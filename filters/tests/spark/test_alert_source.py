"""The Spark source `nightwire`: a real Spark, librdkafka's mock cluster, and the user's page."""

import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from nightwire.core.kafka import producer
from nightwire.filters.spark.options import parse_options
from nightwire.filters.spark.session import session
from nightwire.filters.spark_source import register

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

PAGE = Path(__file__).parents[3] / "docs/user/spark.md"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Yield a small Spark that knows the format."""
    one = session(tmp_path_factory.mktemp("spark"), master="local[1]", memory="512m")
    register(one)
    yield one
    one.stop()


def write(bootstrap: str, topic: str, values: list[bytes]) -> None:
    """Write records to a topic, in turn to its partitions."""
    writer: Producer = producer(bootstrap)
    partitions = len(writer.list_topics(topic, timeout=10).topics[topic].partitions)
    for number, value in enumerate(values):
        writer.produce(topic, value, partition=number % partitions)
    assert writer.flush(30) == 0


@pytest.fixture(scope="module")
def alerts(bootstrap: str, encode: Callable[..., bytes]) -> str:
    """Return a topic with a hundred alerts."""
    write(bootstrap, "alerts.spark", [encode(number, 10.0 * number, band="r") for number in range(1, 101)])
    return "alerts.spark"


def reading(reader: Any, bootstrap: str, topic: str, fields: str, **more: str) -> Any:
    """Return the data frame of some fields of a topic's alerts."""
    return (
        reader.format("nightwire")
        .options(survey="sim", topic=topic, bootstrap=bootstrap, fields=fields, **more)
        .load()
    )


def test_alerts_are_a_table(spark: SparkSession, bootstrap: str, alerts: str) -> None:
    fields = "id, visit, band, flux, history.flux, diaSource.psfFlux, solar_system_id"
    table = reading(spark.read, bootstrap, alerts, fields)
    assert [(one.name, one.dataType.simpleString()) for one in table.schema] == [
        ("id", "bigint"),
        ("visit", "bigint"),
        ("band", "string"),
        ("flux", "double"),
        ("history_flux", "array<double>"),
        ("diaSource_psfFlux", "float"),
        ("solar_system_id", "bigint"),
    ]
    rows = table.where("flux > 905").orderBy("id").collect()
    assert [row.id for row in rows] == list(range(91, 101))
    assert rows[0].asDict() == {
        "id": 91,
        "visit": 7,
        "band": "r",
        "flux": 910.0,
        "history_flux": [],
        "diaSource_psfFlux": 910.0,
        "solar_system_id": None,
    }


def test_a_stream_stops_at_what_was_there_and_goes_on_later(
    spark: SparkSession, bootstrap: str, encode: Callable[..., bytes], tmp_path: Path
) -> None:
    topic = "alerts.spark-stream"
    write(bootstrap, topic, [encode(number) for number in range(1, 51)])
    seen: list[list[int]] = []

    def note(batch: Any, _: int) -> None:
        seen.append(sorted(row.id for row in batch.select("id").collect()))
        if len(seen) == 1:  # what comes now belongs to the next run
            write(bootstrap, topic, [encode(number) for number in range(51, 56)])

    for _ in range(2):
        stream = reading(spark.readStream, bootstrap, topic, "id", starting="earliest", batch="20")
        writer = stream.writeStream.foreachBatch(note).option("checkpointLocation", str(tmp_path / "check"))
        assert writer.trigger(availableNow=True).start().awaitTermination(120)
    assert [len(one) for one in seen] == [20, 20, 10, 5]
    assert sorted(chain.from_iterable(seen)) == list(range(1, 56))


@pytest.mark.parametrize(
    ("fields", "more", "said"),
    [
        ("id, diaSource.psfFlx", {}, r"unknown field diaSource\.psfFlx: no 'psfFlx'; it has .*psfFlux"),
        ("id, fluxx", {}, "unknown field fluxx: no 'fluxx'; it has diaSourceId"),
        ("id, id", {}, "more than one would be the column id"),
        ("id", {"feilds": "x"}, "unknown option feilds; there are: survey, topic, fields"),
        ("id", {"starting": "soon"}, "'soon' is neither earliest nor latest nor a time"),
    ],
)
def test_what_cannot_be_is_said_at_load(
    spark: SparkSession, bootstrap: str, alerts: str, fields: str, more: dict[str, str], said: str
) -> None:
    with pytest.raises(AnalysisException, match=said):
        reading(spark.read, bootstrap, alerts, fields, **more)


def test_a_record_that_cannot_be_read_is_named_or_left_out(
    spark: SparkSession, bootstrap: str, encode: Callable[..., bytes]
) -> None:
    topic = "alerts.spark-bad"
    write(bootstrap, topic, [b"\x01nonsense", encode(1), encode(2)])
    with pytest.raises(PySparkException, match=r"alerts\.spark-bad\[0\] offset 0 cannot be read"):
        reading(spark.read, bootstrap, topic, "id").collect()
    kept = reading(spark.read, bootstrap, topic, "id", mode="dropmalformed").collect()
    assert sorted(row.id for row in kept) == [1, 2]


def test_the_users_page(
    spark: SparkSession,
    bootstrap: str,
    encode: Callable[..., bytes],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The code on the page runs as it stands there."""
    write(bootstrap, "alerts.sim", [encode(number, band="g") for number in range(1, 6)])
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", bootstrap)
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(code, str(PAGE), "exec"), {"spark": spark})  # noqa: S102
    assert {row.band for row in spark.table("bands").collect()} >= {"g"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"survey": "atlas"}, "'atlas' is none; there are: elasticc, lsst, sim, ztf"),
        ({"survey": "sim", "batch": "0"}, "option batch: '0' is no whole number above 0"),
        ({"survey": "sim", "mode": "odd"}, "'ODD' is none of FAILFAST, DROPMALFORMED"),
        ({"survey": "sim", "fields": " ,"}, "option fields: it names none"),
    ],
)
def test_faulty_options_are_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_options(given, "latest")


def test_options_have_defaults() -> None:
    chosen = parse_options({"topic": "alerts.lsst", "Starting": "1970-01-01T00:00:01"}, "latest")
    assert (chosen.survey, chosen.starting, chosen.drop) == ("lsst", 1000, False)
