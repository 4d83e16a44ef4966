"""What one schema wrote, read as another: Avro's resolution, and what nightwire adds."""

import io
import math
from datetime import UTC, datetime
from typing import Any

import fastavro
import pytest

from nightwire.schemas import Change, Codec, DecodeError, SchemaError

COLOUR = {"type": "enum", "name": "colour", "symbols": ["red", "green", "blue"]}
FEWER = {"type": "enum", "name": "colour", "symbols": ["green", "red"]}
HASH = {"type": "fixed", "name": "hash", "size": 2}
INNER = {"type": "record", "name": "inner", "fields": [{"name": "a", "type": "int"}]}
WIDER = {
    "type": "record",
    "name": "ns.inner",
    "fields": [{"name": "b", "type": "string", "default": "x"}, {"name": "a", "type": "double"}],
}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}


def schema(kind: Any, name: str = "x", **more: Any) -> dict[str, Any]:
    """Return the schema of a record of one field."""
    return {"type": "record", "name": "r", "fields": [{"name": name, "type": kind, **more}]}


@pytest.mark.parametrize(
    ("written", "wanted", "value"),
    [
        ("int", "long", 3),
        ("int", "float", 3),
        ("int", "double", -3),
        ("long", "float", 3),
        ("long", "double", 2**40),
        ("float", "double", 1.5),
        ("string", "bytes", "é"),
        ("bytes", "string", b"abc"),
        (["null", "int"], ["null", "double"], 3),
        (["null", "int"], ["null", "double"], None),
        (["int", "string"], ["string", "long"], 3),
        (["int", "string"], ["string", "long"], "a"),
        ("int", ["null", "long"], 3),
        (["null", "int"], "int", 3),
        (COLOUR, FEWER, "red"),
        (COLOUR, {**FEWER, "default": "green"}, "blue"),
        (HASH, {**HASH, "name": "other", "aliases": ["hash"]}, b"ab"),
        (INNER, WIDER, {"a": 3}),
        ({"type": "array", "items": INNER}, {"type": "array", "items": ["null", WIDER]}, [{"a": 3}] * 20),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "float"}, {"k": 3}),
        (MILLIS, MILLIS, datetime(2026, 1, 2, tzinfo=UTC)),
        (MILLIS, MICROS, datetime(2026, 1, 2, tzinfo=UTC)),
    ],
)
def test_what_avro_resolves_is_read_as_fastavro_reads_it(
    engine: str, written: Any, wanted: Any, value: Any
) -> None:
    codec = Codec(schema(written), reader=schema(wanted), engine=engine)
    body = codec.encode({"x": value})
    expected = fastavro.schemaless_reader(io.BytesIO(body), schema(written), schema(wanted))
    assert codec.decode(body) == expected
    assert list(map(type, codec.decode(body).values())) == list(map(type, expected.values()))


def test_a_field_is_found_under_its_alias_and_stands_where_the_reader_has_it(engine: str) -> None:
    writer = schema("int", "old")
    writer["fields"].append({"name": "gone", "type": "string"})
    reader = schema("long", "first", default=-1)
    reader["fields"].append({"name": "new", "type": "int", "aliases": ["old"]})
    codec = Codec(writer, reader=reader, engine=engine)
    assert codec.decode(codec.encode({"old": 3, "gone": "!"})) == {"first": -1, "new": 3}


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        ("bytes", "\u00ff\u0000", b"\xff\x00"),
        (HASH, "ab", b"ab"),
        ("float", 0.1, 0.10000000149011612),
        ("double", 1, 1.0),
        (MICROS, 1_000_000, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (["null", "int"], None, None),
        ({"type": "array", "items": "bytes"}, ["\u0001"], [b"\x01"]),
        (WIDER, {"a": 2}, {"b": "x", "a": 2.0}),
    ],
)
def test_a_field_that_was_not_written_has_its_default_as_if_it_had_been(
    engine: str, kind: Any, default: Any, value: Any
) -> None:
    codec = Codec(schema("int", "other"), reader=schema(kind, default=default), engine=engine)
    assert codec.decode(codec.encode({"other": 1})) == {"x": value}
    own = Codec(schema(kind, default=default), engine=engine)
    assert own.decode(own.encode({})) == {"x": value}


def test_a_default_that_can_be_changed_is_each_alerts_own(engine: str) -> None:
    reader = schema({"type": "array", "items": "int"}, default=[])
    codec = Codec(schema("int", "other"), reader=reader, engine=engine)
    codec.decode(codec.encode({"other": 1}))["x"].append(1)
    assert codec.decode(codec.encode({"other": 1})) == {"x": []}


@pytest.mark.parametrize("real", ["float", "double"])
def test_a_null_is_nan_where_the_reader_wants_a_number(engine: str, real: str) -> None:
    codec = Codec(schema(["null", real]), reader=schema(real), engine=engine)
    assert math.isnan(codec.decode(codec.encode({"x": None}))["x"])
    assert codec.decode(codec.encode({"x": 0.5})) == {"x": 0.5}
    (column,) = codec.columns([codec.encode({"x": None})], ["x"])
    assert math.isnan(column[0].as_py())


def test_what_was_not_written_and_has_no_default_is_null_or_nan(engine: str) -> None:
    reader = schema(["null", "int"])
    reader["fields"].append({"name": "y", "type": "double"})
    codec = Codec(schema("int", "other"), reader=reader, engine=engine)
    decoded = codec.decode(codec.encode({"other": 1}))
    assert decoded["x"] is None
    assert math.isnan(decoded["y"])


@pytest.mark.parametrize(
    ("written", "wanted", "refused", "says"),
    [
        (["null", "int"], "int", None, "a null is no int"),
        (["int", "string"], "int", "a", "a string is no int"),
        (COLOUR, FEWER, "blue", "the reader knows no symbol blue"),
    ],
)
def test_a_value_that_the_reader_cannot_hold_is_refused_by_name(
    engine: str, written: Any, wanted: Any, refused: Any, says: str
) -> None:
    codec = Codec(schema(written), reader=schema(wanted), engine=engine)
    with pytest.raises(DecodeError, match=rf"x: .*{says}"):
        codec.decode(codec.encode({"x": refused}))


@pytest.mark.parametrize(
    ("written", "wanted", "says"),
    [
        ("string", "int", "x: a string is no int"),
        ("double", "float", "x: a double is no float"),
        (HASH, {**HASH, "size": 3}, "x: 2 bytes are not 3"),
        (INNER, schema("int", "b") | {"name": "inner"}, r"x\.b: it was not written, and has no default"),
    ],
)
def test_a_pair_that_cannot_be_read_is_refused_at_once(
    engine: str, written: Any, wanted: Any, says: str
) -> None:
    with pytest.raises(SchemaError, match=rf"r cannot be read as r: {says}"):
        Codec(schema(written), reader=schema(wanted), engine=engine)


CHANGES = (
    Change("new", record="r", former=["old"], factor=10.0, offset=1.0),
    Change("count", former=["n"], null=0),
)


@pytest.mark.parametrize("nullable", [False, True])
def test_a_change_renames_and_converts_forth_and_back(engine: str, nullable: bool) -> None:
    def kind(name: str) -> Any:
        return ["null", name] if nullable else name

    old, new = schema(kind("long"), "old"), schema(kind("double"), "new")
    forth = Codec(old, reader=new, changes=CHANGES, engine=engine)
    back = Codec(new, reader=old, changes=CHANGES, engine=engine)
    assert forth.decode(forth.encode({"old": 4})) == {"new": 41.0}
    assert back.decode(back.encode({"new": 41.0})) == {"old": 4}
    assert isinstance(back.decode(back.encode({"new": 41.0}))["old"], int)
    if nullable:
        assert forth.decode(forth.encode({"old": None})) == {"new": None}


def test_a_change_may_say_what_a_null_means(engine: str) -> None:
    codec = Codec(schema(["null", "int"], "n"), reader=schema("int", "count"), changes=CHANGES, engine=engine)
    assert codec.decode(codec.encode({"n": None})) == {"count": 0}
    assert codec.columns([codec.encode({"n": None})], ["count"]).to_pylist() == [{"count": 0}]


def test_a_change_of_another_record_does_not_hold(engine: str) -> None:
    elsewhere = [Change("new", record="other", former=["old"])]
    with pytest.raises(SchemaError, match="new: it was not written"):
        Codec(schema("int", "old"), reader=schema("int", "new"), changes=elsewhere, engine=engine)


def test_recursive_types_are_resolved(engine: str) -> None:
    def tree(number: str) -> dict[str, Any]:
        one = schema(number)
        one["fields"].append({"name": "next", "type": ["null", "r"], "default": None})
        return one

    codec = Codec(tree("int"), reader=tree("double"), engine=engine)
    value = {"x": 1, "next": {"x": 2, "next": None}}
    assert codec.decode(codec.encode(value)) == {"x": 1.0, "next": {"x": 2.0, "next": None}}


def test_chosen_fields_are_the_readers(engine: str) -> None:
    writer = schema({"type": "array", "items": INNER})
    reader = schema({"type": "array", "items": WIDER}, "list", aliases=["x"])
    codec = Codec(writer, reader=reader, engine=engine)
    body = codec.encode({"x": [{"a": 1}, {"a": 2}]})
    assert codec.decode(body, ["list.a"]) == {"list": [{"a": 1.0}, {"a": 2.0}]}
    assert codec.columns([body], ["list.b"]).to_pylist() == [{"list.b": ["x", "x"]}]
    with pytest.raises(SchemaError, match="no 'x'; it has list"):
        codec.decode(body, ["x"])
