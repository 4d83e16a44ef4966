"""The codec: bytes, errors that name the culprit, columns."""

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.schemas import Codec, DecodeError, EncodeError, SchemaError

POINT = {
    "type": "record",
    "name": "t.point",
    "fields": [{"name": "mjd", "type": "double"}, {"name": "flux", "type": ["null", "float"]}],
}
ALERT: dict[str, Any] = {
    "type": "record",
    "name": "t.alert",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "source", "type": POINT},
        {"name": "earlier", "type": ["null", {"type": "array", "items": "t.point"}], "default": None},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "stamp", "type": ["null", "bytes"], "default": None},
        {
            "name": "seen",
            "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
            "default": None,
        },
        {"name": "counts", "type": {"type": "map", "values": "int"}, "default": {}},
        {"name": "kind", "type": {"type": "enum", "name": "kind", "symbols": ["a", "b"]}, "default": "a"},
        {"name": "tag", "type": {"type": "fixed", "name": "tag", "size": 2}, "default": "  "},
    ],
}
ONE = {
    "id": 7,
    "source": {"mjd": 61000.5, "flux": -1.5},
    "earlier": [{"mjd": 60999.5, "flux": None}, {"mjd": 60999.75, "flux": 2.0}],
    "name": "SN",
    "stamp": b"\x00\x01",
    "seen": datetime(2026, 11, 21, 1, 2, 3, 4000, tzinfo=UTC),
    "counts": {"x": 1},
    "kind": "b",
    "tag": b"ab",
}


@pytest.fixture(scope="module")
def codec(engine: str) -> Codec:
    """Return the codec of the schema above."""
    return Codec(ALERT, engine=engine)


finite = st.floats(allow_nan=False, allow_infinity=False)
points = st.fixed_dictionaries({"mjd": finite, "flux": st.none() | st.floats(width=32, allow_nan=False)})
alerts = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "source": points,
        "earlier": st.none() | st.lists(points, max_size=5),
        "name": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        "stamp": st.none() | st.binary(),
    }
)


def test_body_is_what_the_specification_says(engine: str) -> None:
    """Zigzag varints, little-endian floats, union branches by index: literal bytes."""
    point = Codec(POINT, engine=engine)
    assert point.encode({"mjd": 1.0, "flux": None}) == bytes.fromhex("000000000000f03f 00")
    assert point.encode({"mjd": 1.0, "flux": -1.5}) == bytes.fromhex("000000000000f03f 02 0000c0bf")
    assert point.decode(bytes.fromhex("000000000000f03f 02 0000c0bf")) == {"mjd": 1.0, "flux": -1.5}


def test_all_types_come_back(codec: Codec) -> None:
    assert codec.decode(codec.encode(ONE)) == ONE


@pytest.mark.slow
@given(alerts)
def test_decodes_what_was_encoded(codec: Codec, alert: dict[str, Any]) -> None:
    decoded = codec.decode(codec.encode(alert))
    assert {name: decoded[name] for name in alert} == alert


@given(alerts, st.data())
def test_a_body_that_is_cut_off_is_a_decode_error(
    codec: Codec, alert: dict[str, Any], data: st.DataObject
) -> None:
    body = codec.encode(alert)
    with pytest.raises(DecodeError, match=r"^t\.alert: "):
        codec.decode(body[: data.draw(st.integers(0, len(body) - 1))])


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_a_decode_error(codec: Codec, body: bytes) -> None:
    with contextlib.suppress(DecodeError):
        codec.decode(body)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"id": "seven"}, "id"),
        ({"id": None}, "id"),
        ({"id": 2**63}, "id"),
        ({"source": {"mjd": 1.0, "flux": "bright"}}, "flux"),
        ({"source": {"flux": 1.0}}, "mjd"),
        ({"source": {"mjd": 1.0, "flux": 1.0, "fluxx": 1.0}}, "fluxx"),
        ({"earlier": [{"mjd": 1.0, "flux": 1.0}, {"mjd": None, "flux": 1.0}]}, "mjd"),
        ({"kind": "z"}, "kind"),
        ({"tag": b"abc"}, "tag"),
        ({"extra": 1}, "extra"),
        ({"counts": {"x": 1.5}}, r"counts\[x\]"),
        ({"id": 1.5}, "id: 1.5 is a float, not an integer"),
        ({"id": True}, "id"),
        ({"source": {"mjd": None, "flux": 1.0}}, "source.mjd: None is a NoneType, not a number"),
        ({"earlier": {"mjd": 1.0}}, "earlier"),
        ({"counts": {"x": 2**31}}, "32 bits"),
        ({"seen": datetime(2026, 1, 1)}, "seen: .* has no time zone"),  # noqa: DTZ001
    ],
)
def test_what_does_not_fit_is_named(codec: Codec, change: dict[str, Any], named: str) -> None:
    with pytest.raises(EncodeError, match=rf"t\.alert.*{named}"):
        codec.encode({**ONE, **change})


def test_numpy_scalars_fit_where_their_values_do(codec: Codec, engine: str) -> None:
    point = Codec(POINT, engine=engine)
    body = point.encode({"mjd": np.float64(1.0), "flux": np.float32(-1.5)})
    assert body == point.encode({"mjd": 1.0, "flux": -1.5})
    assert codec.decode(codec.encode({**ONE, "id": np.int64(7)})) == ONE
    with pytest.raises(EncodeError, match="id"):
        codec.encode({**ONE, "id": np.float64(7)})


def test_a_missing_field_takes_its_default_or_is_named(codec: Codec) -> None:
    assert codec.decode(codec.encode({"id": 1, "source": ONE["source"]}))["name"] is None
    with pytest.raises(EncodeError, match="source"):
        codec.encode({"id": 1})


@pytest.mark.parametrize("held", [bytes, bytearray, memoryview, lambda body: memoryview(pa.py_buffer(body))])
def test_a_body_is_read_from_whatever_holds_bytes(codec: Codec, held: Callable[[bytes], Any]) -> None:
    """Bytes above 127 are in it; in Arrow's buffers they are signed."""
    wanted = ONE | {"id": 77_777, "stamp": b"\xff\x80", "name": "é"}
    body = held(codec.encode(wanted))
    assert codec.decode(body) == wanted
    found = codec.decode(body, ["id", "source", "earlier", "name", "stamp"])
    assert found == {name: wanted[name] for name in ("id", "source", "earlier", "name", "stamp")}
    assert codec.columns([body], ["id", "name"]).to_pylist() == [{"id": 77_777, "name": "é"}]


def test_bytes_after_the_record_are_an_error_that_names_the_offset(codec: Codec) -> None:
    body = codec.encode(ONE)
    with pytest.raises(DecodeError, match=f"ends at byte {len(body)} of {len(body) + 1}"):
        codec.decode(body + b"\x00")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "record", "name": "r", "fields": [{"name": "x", "type": "nothing"}]},
        {"type": "record", "name": "r"},
        {"type": "record", "fields": []},
        {"type": "array", "items": "int"},
        {},
        {
            "type": "record",
            "name": "r",
            "fields": [{"name": "x", "type": POINT}, {"name": "y", "type": POINT}],
        },
    ],
)
def test_what_is_no_record_schema_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        Codec(schema)


def test_the_schema_stays_as_it_was_given(codec: Codec) -> None:
    assert codec.schema == ALERT


def test_columns_have_the_types_of_the_schema(codec: Codec) -> None:
    fields = ["id", "source.flux", "earlier.mjd", "name", "stamp", "seen", "counts", "kind", "tag", "source"]
    batch = codec.columns([codec.encode(ONE), codec.encode({"id": 1, "source": ONE["source"]})], fields)
    assert batch.schema.names == fields
    assert dict(zip(fields, batch.schema.types, strict=True)) == {
        "id": pa.int64(),
        "source.flux": pa.float32(),
        "earlier.mjd": pa.list_(pa.float64()),
        "name": pa.string(),
        "stamp": pa.binary(),
        "seen": pa.timestamp("ms", tz="UTC"),
        "counts": pa.map_(pa.string(), pa.int32()),
        "kind": pa.string(),
        "tag": pa.binary(2),
        "source": pa.struct([("mjd", pa.float64()), ("flux", pa.float32())]),
    }
    first, second = batch.to_pylist()
    assert first == {
        **{name: value for name, value in ONE.items() if name not in ("earlier", "counts")},
        "source.flux": -1.5,
        "earlier.mjd": [60999.5, 60999.75],
        "counts": [("x", 1)],
    }
    assert second["earlier.mjd"] is None


def test_columns_of_nothing_are_empty_and_typed(codec: Codec) -> None:
    batch = codec.columns([], ["id", "earlier.flux"])
    assert batch.num_rows == 0
    assert batch.schema.types == [pa.int64(), pa.list_(pa.float32())]
    assert codec.columns([codec.encode(ONE)] * 3, []).num_rows == 3


@pytest.mark.parametrize(
    ("field", "says"),
    [
        ("flux", "no 'flux'; it has id, source"),
        ("source.mag", "no 'mag'; it has mjd, flux"),
        ("earlier.x", "no 'x'"),
        ("id.x", "no record there"),
        ("counts.x", "inside a map"),
        ("", "unknown field"),
    ],
)
def test_an_unknown_field_is_named_with_those_there_are(codec: Codec, field: str, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        codec.columns([], [field])


def test_columns_name_the_message_that_is_malformed(codec: Codec) -> None:
    with pytest.raises(DecodeError, match="message 1: "):
        codec.columns([codec.encode(ONE), b"\x81"], ["id"])


def test_recursive_and_mixed_types_have_no_column(engine: str) -> None:
    mixed = Codec(
        {
            "type": "record",
            "name": "r",
            "fields": [
                {"name": "next", "type": ["null", "r"]},
                {"name": "x", "type": "int"},
                {"name": "either", "type": ["int", "string"]},
            ],
        },
        engine=engine,
    )
    with pytest.raises(SchemaError, match="union of 2 types"):
        mixed.columns([], ["either"])
    with pytest.raises(SchemaError, match="contains itself"):
        mixed.columns([], ["next"])
    assert mixed.columns([], ["next.next.x"]).num_columns == 1


REPEATED: dict[str, Any] = {
    "type": "record",
    "name": "alert",
    "fields": [
        {"name": "mag", "type": {"type": "record", "name": "measured", "fields": [
            {"name": "value", "type": "float"},
            {"name": "band", "type": "int"},
            {"name": "value", "type": ["null", "string"]},
        ]}},
        {"name": "earlier", "type": {"type": "array", "items": "measured"}},
    ],
}  # fmt: skip


def test_of_fields_of_one_name_the_last_is_read(engine: str) -> None:
    """As fastavro does: WINTER's real alerts have some."""
    measured = b"\x00\x00\x80?" + bytes([4, 2, 4]) + b"hi"
    body = measured + bytes([2]) + measured + bytes([0])
    expected = {"value": "hi", "band": 2}
    for codec in (Codec(REPEATED, engine=engine), Codec(REPEATED, reader=REPEATED, engine=engine)):
        assert codec.decode(body) == {"mag": expected, "earlier": [expected]}
        columns = codec.columns([body], ["mag.value", "mag", "earlier.value", "earlier"])
        assert columns.to_pylist() == [
            {"mag.value": "hi", "mag": expected, "earlier.value": ["hi"], "earlier": [expected]}
        ]
