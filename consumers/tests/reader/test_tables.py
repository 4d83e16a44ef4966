"""Chosen fields as tables: on librdkafka's own broker."""

import itertools
import os
import sys
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import polars
import pyarrow as pa
import pytest

from nightwire.consumers import AlertReader, BadRecord
from nightwire.consumers.alert.deduplication import Deduplicator, RecentKeys
from nightwire.consumers.reader.batch import ColumnDecoder, DecodingContext
from nightwire.consumers.reader.connection import schema_for
from nightwire.consumers.reader.unpack import TableUnpacker
from nightwire.core.kafka import ensure_topics
from nightwire.schemas import (
    AlertDecoder,
    Codec,
    RegistryAwayError,
    SchemaError,
    SchemaRegistry,
    sim_alert_schema,
)
from nightwire.schemas.topics import TopicSettings
from nightwire.schemas.wire import frame

Encode = Callable[..., bytes]
Write = Callable[..., None]

FIELDS = ["diaSourceId", "diaSource.ra", "diaSource.band"]
WAIT = 60.0
UNKNOWN = b"\x00\x00\x00\x04\x4cbody"

numbers = itertools.count()


@pytest.fixture
def topic(bootstrap: str, encode: Encode, write: Write) -> str:
    """Return a topic of the survey sim with alerts 0 to 9 in one of its partitions."""
    name = f"tables.{os.getpid()}.{next(numbers)}"
    write(
        bootstrap, name, [encode(number) for number in range(10)], partition=0, timestamp_ms=1_700_000_000_000
    )
    return name


@pytest.fixture
def read(bootstrap: str, topic: str) -> Callable[..., AlertReader]:
    """Return a function that makes a reader of ten alerts."""

    def make(**how: Any) -> AlertReader:
        return AlertReader(topic, bootstrap=bootstrap, follow=False, timeout=WAIT, **how)

    return make


def test_a_table_has_a_row_an_alert_and_a_column_a_field(read: Callable[..., AlertReader]) -> None:
    with read() as reader:
        tables = list(reader.tables(FIELDS, size=6))
    assert [table.num_rows for table in tables] == [6, 4]
    assert tables[0].column_names == FIELDS
    assert tables[1].to_pylist()[0] == {"diaSourceId": 6, "diaSource.ra": 10.5, "diaSource.band": "r"}
    assert reader.count == 10


def test_metadata_tells_where_each_row_lay(read: Callable[..., AlertReader], topic: str) -> None:
    names = ["topic", "partition", "offset", "timestamp", "key", "survey"]
    with read() as reader:
        (table,) = reader.tables(["diaSourceId"], metadata=names)
    assert table.column_names == [*names, "diaSourceId"]
    first = table.slice(3, 1).to_pylist()[0]
    assert first.pop("timestamp").timestamp() == 1_700_000_000
    assert first == {
        "topic": topic,
        "partition": 0,
        "offset": 3,
        "key": None,
        "survey": "sim",
        "diaSourceId": 3,
    }


def test_tables_are_what_was_asked_for(read: Callable[..., AlertReader]) -> None:
    import pandas as pd

    kinds: dict[str, type] = {"arrow": pa.Table, "pandas": pd.DataFrame, "polars": polars.DataFrame}
    for name, kind in kinds.items():
        with read() as reader:
            (table,) = reader.tables(FIELDS, to=name)  # type: ignore[arg-type]
        assert isinstance(table, kind)
        assert list(table["diaSourceId"]) == list(range(10)) if name != "arrow" else table.num_rows == 10


def test_who_lacks_polars_is_told_how_to_get_it(
    read: Callable[..., AlertReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ModuleNotFoundError, match=r"need the package polars: pip install .*\[tables\]'"):
        read().tables(FIELDS, to="polars")


def test_all_that_is_wrong_with_a_table_is_said_before_anything_is_read(
    read: Callable[..., AlertReader],
) -> None:
    words = r"offset is asked for twice; no metadata 'moon'; there are: topic, .*; to='csv' is none of"
    with pytest.raises(ValueError, match=words):
        read().tables(["offset"], metadata=["offset", "moon"], to="csv")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no field to read"):
        read().tables([])


def test_a_field_that_is_not_there_stops_it_and_skips_nothing(read: Callable[..., AlertReader]) -> None:
    with read() as reader:
        with pytest.raises(SchemaError, match="unknown field moon"):
            next(reader.tables(["moon"]))
        assert len(next(reader.batches())) == 10


def test_a_table_with_bad_records_has_the_good_ones_and_the_others_are_reported(
    read: Callable[..., AlertReader], topic: str, bootstrap: str, encode: Encode, write: Write
) -> None:
    bad: list[BadRecord] = []
    write(bootstrap, topic, [b"garbage", encode(11), encode(12)[:5], b""], partition=0)
    with read(on_bad=bad.append) as reader:
        (table,) = reader.tables(["diaSourceId"], metadata=["offset"])
    assert table["diaSourceId"].to_pylist() == [*range(10), 11]
    assert table["offset"].to_pylist() == [*range(10), 11]
    assert [one.offset for one in bad] == [10, 12, 13]
    assert bad[0].reason.startswith("not in wire format")


def test_what_waits_for_its_schema_ends_a_table_and_is_not_skipped(
    read: Callable[..., AlertReader], topic: str, bootstrap: str, encode: Encode, write: Write
) -> None:
    write(bootstrap, topic, [UNKNOWN, encode(11)], partition=0)
    with read() as reader:
        tables = reader.tables(["diaSourceId"])
        assert next(tables).num_rows == 10
        with pytest.raises(RegistryAwayError, match=rf"{topic}\[0\]@10 waits for its schema"):
            next(tables)


@pytest.mark.slow
def test_duplicates_are_left_out_of_tables_by_place_and_by_id(
    read: Callable[..., AlertReader], topic: str, bootstrap: str, encode: Encode, write: Write
) -> None:
    place = [("survey", b"sim"), ("topic", b"alerts.sim"), ("partition", b"0"), ("offset", b"7")]
    write(bootstrap, topic, [encode(20), encode(20)], partition=0, headers=place)
    write(bootstrap, topic, [encode(20), b"garbage"], partition=0)
    for dedup, expected in ((None, [20, 20, 20]), ("offset", [20, 20]), ("alert", [20])):
        for size in (3, 256):
            with read(dedup=dedup) as reader:
                tables = list(reader.tables(["diaSource.ra", "diaSourceId"], size=size))
            assert [one for table in tables for one in table["diaSourceId"].to_pylist()] == [
                *range(10),
                *expected,
            ]
            assert reader.duplicates == 3 - len(expected)
            assert reader.undecodable == 1


def test_the_id_is_read_for_dedup_and_not_handed_out(read: Callable[..., AlertReader]) -> None:
    with read(dedup="alert") as reader:
        (table,) = reader.tables(["diaSource.ra"])
    assert (table.column_names, table.num_rows) == (["diaSource.ra"], 10)


async def test_async_for_reads_tables(read: Callable[..., AlertReader]) -> None:
    async with read() as reader:
        assert [table.num_rows async for table in reader.tables(FIELDS, size=6)] == [6, 4]


# Versions


def later_schema() -> dict[str, Any]:
    """Return the schema of simulated alerts with a field more."""
    schema = deepcopy(sim_alert_schema())
    schema["fields"].append({"name": "grade", "type": "float", "default": 0.5})
    return schema


class Two:
    """Knows two versions of a schema."""

    def __init__(self) -> None:
        self.schemas = {1100: sim_alert_schema(), 1101: later_schema()}

    def codec(self, schema_id: int) -> Codec:
        return Codec(self.schemas[schema_id])


@pytest.mark.kafka
def test_a_topic_without_alerts_gives_one_table_without_rows(kafka: str) -> None:
    topic = f"tables.{os.getpid()}.{next(numbers)}"
    ensure_topics(kafka, [TopicSettings(topic, 1, {})])
    with AlertReader(topic, bootstrap=kafka, follow=False) as reader:
        (table,) = reader.tables(FIELDS, metadata=["offset"])
    assert (table.num_rows, table.column_names) == (0, ["offset", *FIELDS])
    with AlertReader(topic, bootstrap=kafka, follow=False, as_version=sim_alert_schema()) as reader:
        (frame_,) = reader.tables(FIELDS, to="polars")
    assert list(frame_.schema.values()) == [polars.Int64, polars.Float64, polars.String]


@pytest.mark.kafka
def test_columns_without_rows_are_of_the_registered_types(kafka: str, registry_url: str) -> None:
    topic = f"tables.{os.getpid()}.{next(numbers)}"
    ensure_topics(kafka, [TopicSettings(topic, 1, {})])
    with SchemaRegistry(registry_url) as registry:
        registry.register(f"{topic}-value", sim_alert_schema())
    with AlertReader(topic, bootstrap=kafka, registry=registry_url, follow=False) as reader:
        (table,) = reader.tables(FIELDS)
    assert table.schema.types == [pa.int64(), pa.float64(), pa.string()]


def test_two_versions_in_a_table_look_like_the_one_that_was_asked_for(
    make_alert: Callable[..., dict[str, Any]],
) -> None:
    from confluent_kafka import Message

    two = Two()
    values = [
        frame(1100, two.codec(1100).encode(make_alert(1))),
        frame(1101, two.codec(1101).encode(make_alert(2) | {"grade": 0.75})),
    ]
    messages = [
        Message(topic="alerts.sim", partition=0, offset=at, value=one) for at, one in enumerate(values)
    ]
    decoder: ColumnDecoder = AlertDecoder(two, reader=schema_for("11.1", two.schemas.__getitem__))
    tables = TableUnpacker(
        DecodingContext(decoder, None, Deduplicator(None, RecentKeys()), partial(decoder.columns, [])),
        ["diaSourceId", "grade"],
        [],
        "arrow",
    )
    assert tables(messages).item.to_pylist() == [
        {"diaSourceId": 1, "grade": 0.5},
        {"diaSourceId": 2, "grade": 0.75},
    ]


def test_a_reader_reads_as_a_schema(read: Callable[..., AlertReader]) -> None:
    with read(as_version=later_schema()) as reader:
        assert next(reader).alert["grade"] == 0.5
        assert next(reader.tables(["grade"]))["grade"].to_pylist() == [0.5] * 9


@pytest.mark.parametrize(
    ("version", "schema_id"), [("11.0", 1100), ("7.4", 704), (100_100, 100_100), ("1100", 1100)]
)
def test_a_version_is_a_schema_id(version: int | str, schema_id: int) -> None:
    assert schema_for(version, lambda asked: {"asked": asked}) == {"asked": schema_id}


def test_what_is_no_version_is_refused() -> None:
    with pytest.raises(
        ValueError, match="as_version='newest' is neither a schema, nor its id, nor a version"
    ):
        schema_for("newest", SchemaRegistry(None).schema)
