"""Literal bytes: what the specification says, type by type, against the three native classes.

A round trip cannot see a mistake that is made on both sides.
"""

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from native.tests.single_field import codec
from nightwire.schemas import Codec
from nightwire.schemas.avro.native_engine import batcher, decoder
from nightwire.schemas.avro.plans.program import Program

pytestmark = pytest.mark.native

COLOUR = {"type": "enum", "name": "colour", "symbols": ["red", "green", "blue"]}
PAIR = {"type": "fixed", "name": "pair", "size": 2}
POINT = {
    "type": "record",
    "name": "point",
    "fields": [{"name": "i", "type": "int"}, {"name": "f", "type": ["null", "float"]}],
}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-millis"}
DATE = {"type": "int", "logicalType": "date"}
TIME_MILLIS = {"type": "int", "logicalType": "time-millis"}
TIME_MICROS = {"type": "long", "logicalType": "time-micros"}
UUID = {"type": "string", "logicalType": "uuid"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
NOON = dt.datetime(1970, 1, 2, 12, 0, 0, 5000, tzinfo=dt.UTC)

TABLE: list[tuple[Any, Any, str]] = [
    ("null", None, ""),
    ("boolean", True, "01"),
    ("boolean", False, "00"),
    ("int", 0, "00"),
    ("int", -1, "01"),
    ("int", 1, "02"),
    ("int", 63, "7e"),
    ("int", 64, "8001"),
    ("int", 2**31 - 1, "feffffff0f"),
    ("int", -(2**31), "ffffffff0f"),
    ("long", -65, "8101"),
    ("long", 2**63 - 1, "feffffffffffffffff01"),
    ("long", -(2**63), "ffffffffffffffffff01"),
    ("float", 1.5, "0000c03f"),
    ("float", -math.inf, "000080ff"),
    ("double", 1.5, "000000000000f83f"),
    ("double", -2.0, "00000000000000c0"),
    ("bytes", b"", "00"),
    ("bytes", b"\x00\xff", "0400ff"),
    ("string", "é", "04c3a9"),
    ("string", "x" * 64, "8001" + "78" * 64),
    (PAIR, b"ab", "6162"),
    (COLOUR, "red", "00"),
    (COLOUR, "blue", "04"),
    (["null", "long"], None, "00"),
    (["null", "long"], 3, "0206"),
    (["long", "null"], None, "02"),
    (["long", "null"], 3, "0006"),
    ({"type": "array", "items": "int"}, [], "00"),
    ({"type": "array", "items": "int"}, [1, -2], "04020300"),
    ({"type": "map", "values": "int"}, {}, "00"),
    ({"type": "map", "values": "int"}, {"k": 1}, "02026b0200"),
    (POINT, {"i": -3, "f": 1.5}, "05020000c03f"),
    (["null", POINT], {"i": -3, "f": None}, "020500"),
    (["null", POINT], None, "00"),
    ({"type": "array", "items": POINT}, [{"i": 1, "f": None}], "02020000"),
    (MILLIS, NOON, "8aa8cc7b"),
    (MICROS, NOON, "908e99ccc507"),
    (LOCAL, NOON.replace(tzinfo=None), "8aa8cc7b"),
    (DATE, dt.date(1970, 1, 3), "04"),
    (TIME_MILLIS, dt.time(0, 0, 1, 2000), "d40f"),
    (TIME_MICROS, dt.time(0, 0, 0, 64), "8001"),
    (UUID, uuid.UUID(int=1), "48" + b"00000000-0000-0000-0000-000000000001".hex()),
    (DECIMAL, Decimal("-1.28"), "04ff80"),
    (DECIMAL, Decimal("1.28"), "040080"),
]


@pytest.mark.parametrize(("kind", "value", "body"), TABLE)
def test_a_value_and_its_bytes(kind: Any, value: Any, body: str) -> None:
    one = codec(kind)
    assert one.encode({"x": value}).hex() == body
    assert one.decode(bytes.fromhex(body)) == {"x": value}
    assert one.decode(bytes.fromhex(body), ["x"]) == {"x": value}


@pytest.mark.parametrize(("kind", "value", "body"), TABLE)
def test_a_value_and_its_column(kind: Any, value: Any, body: str) -> None:
    batch = codec(kind).columns([bytes.fromhex(body)] * 2, ["x"])
    assert batch.num_rows == 2
    batch.validate(full=True)
    assert batch.column(0).to_pylist() == [in_arrow(value)] * 2


@pytest.mark.parametrize(("kind", "value", "body"), TABLE)
def test_a_value_that_nobody_asks_for_is_stepped_over(kind: Any, value: Any, body: str) -> None:
    fields = [{"name": "x", "type": kind}, {"name": "last", "type": "int"}]
    two = Codec({"type": "record", "name": "two", "fields": fields}, engine="native")
    raw = bytes.fromhex(body + "08")
    assert two.decode(raw) == {"x": value, "last": 4}
    assert two.decode(raw, ["last"]) == {"last": 4}
    assert two.columns([raw], ["last"]).to_pylist() == [{"last": 4}]


def in_arrow(value: Any) -> Any:
    """Return what Arrow gives for a decoded value: maps as pairs, uuids as text."""
    if isinstance(value, dict) and value.keys() == {"i", "f"}:
        return value
    if isinstance(value, dict):
        return list(value.items())
    return str(value) if isinstance(value, uuid.UUID) else value


FIELDS = {
    "type": "record",
    "name": "fields",
    "fields": [
        {"name": "a", "type": {"type": "array", "items": "int"}},
        {"name": "m", "type": {"type": "map", "values": "int"}},
        {"name": "z", "type": "int", "default": 7},
    ],
}


@pytest.mark.parametrize(
    "body",
    [
        "04 02 04 00   02 02 6b 02 00      04",
        "03 04 02 04 00   01 06 02 6b 02 00   04",  # counts are negative, sizes follow
        "02 02 01 02 04 00   02 02 6b 02 00   04",  # blocks of one item each, of both kinds
    ],
)
def test_items_come_in_blocks_which_may_say_their_size(body: str) -> None:
    fields = Codec(FIELDS, engine="native")
    raw = bytes.fromhex(body)
    assert fields.decode(raw) == {"a": [1, 2], "m": {"k": 1}, "z": 2}
    assert fields.decode(raw, ["z"]) == {"z": 2}
    assert fields.columns([raw], ["z"]).to_pylist() == [{"z": 2}]
    assert fields.columns([raw], ["m", "a"]).to_pylist() == [{"a": [1, 2], "m": [("k", 1)]}]


def test_a_missing_field_is_written_as_its_default() -> None:
    assert Codec(FIELDS, engine="native").encode({"a": [], "m": {}}).hex() == "00000e"


def test_a_union_of_several_takes_the_branch_that_fastavro_takes() -> None:
    one = codec(["null", "float", "double", "string", PAIR, COLOUR])
    assert one.encode({"x": 0.5}).hex() == "04" + "000000000000e03f"  # a double rather than a float
    assert one.encode({"x": "red"}).hex() == "0606" + b"red".hex()  # the first that fits
    assert one.encode({"x": ("colour", "red")}).hex() == "0a00"
    assert one.encode({"x": b"ab"}).hex() == "086162"


NODES = [
    {"op": "record", "name": "r", "fields": [{"name": "x", "type": 1}, {"name": None, "type": 3}]},
    {"op": "union", "branches": [2, 4]},
    {"op": "null"},
    {"op": "int"},
]
"""A record of a field that is null or node 4, which follows, and of an int that nobody asks for."""


@pytest.mark.parametrize(
    ("branch", "kind", "of_null", "of_three"),
    [
        ({"op": "scale", "of": 3, "factor": 2.0, "offset": 1.0}, pa.float64(), None, 7.0),
        ({"op": "int", "as": "double"}, pa.float32(), None, 3.0),
        ({"op": "constant", "constant": 0}, pa.int32(), None, 42),
    ],
)
def test_what_a_plan_may_do_to_a_value(branch: Any, kind: Any, of_null: Any, of_three: Any) -> None:
    plan = Program(0, [*NODES, branch], constants=[42])
    decode = decoder("t", plan)
    tail = "" if branch["op"] == "constant" else "06"
    bodies = [bytes.fromhex("00 02"), bytes.fromhex(f"02 {tail} 02")]
    assert [decode(body) for body in bodies] == [{"x": of_null}, {"x": of_three}]
    batch = batcher("t", plan, [["x"]], pa.schema([("x", kind)]))(bodies)
    assert batch.column(0).to_pylist() == [of_null, of_three]


def test_null_becomes_nan_where_the_reader_wants_a_plain_float() -> None:
    record = {"op": "record", "name": "r", "fields": [{"name": "x", "type": 1}]}
    plan = Program(0, [record, {"op": "union", "branches": [2, 3]}, {"op": "nan"}, {"op": "float"}])
    assert math.isnan(decoder("t", plan)(b"\x00")["x"])
    column = batcher("t", plan, [["x"]], pa.schema([("x", pa.float32())]))([b"\x00"]).column(0)
    assert math.isnan(column[0].as_py())


def test_what_the_writer_lacks_comes_from_the_plan_and_each_alert_has_its_own() -> None:
    absent = [{"name": "y", "constant": 0}, {"name": "z", "constant": 1}]
    record = {"op": "record", "name": "r", "fields": [{"name": "x", "type": 1}], "absent": absent}
    plan = Program(0, [record, {"op": "int"}], constants=[[1], "text"])
    decode = decoder("t", plan)
    first, second = decode(b"\x02"), decode(b"\x04")
    assert (first, second) == ({"x": 1, "y": [1], "z": "text"}, {"x": 2, "y": [1], "z": "text"})
    assert first["y"] is not second["y"]
    schema = pa.schema([("y", pa.list_(pa.int32())), ("z", pa.string())])
    batch = batcher("t", plan, [["y"], ["z"]], schema)([b"\x02", b"\x04"])
    assert batch.to_pylist() == [{"y": [1], "z": "text"}] * 2
