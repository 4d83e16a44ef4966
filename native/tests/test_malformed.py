"""Bytes that nobody should have written: one error that says where, whatever they are."""

import contextlib
import resource
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from native.tests.single_field import codec, schema
from nightwire.schemas import Codec, DecodeError, EncodeError
from schemas.tests.avro.random_schemas import has_column, schemas, values

pytestmark = pytest.mark.native

NULLS = {"type": "array", "items": "null"}
NOTHING = {"type": "record", "name": "nothing", "fields": []}
NOTHINGS = {"type": "map", "values": NOTHING}
COLOUR = {"type": "enum", "name": "colour", "symbols": ["red", "green"]}
BEHIND = "the record ends at byte"
"""What is only noticed where the whole record is read."""
HUGE = "feffffffffffffffff01"  # 2**63 - 1

TABLE: list[tuple[Any, str, str]] = [
    ("boolean", "02", "at byte 0, in x: 2 is no boolean"),
    ("boolean", "", "at byte 0, in x: 1 bytes wanted, 0 left"),
    ("int", "80", "in x: 2 bytes wanted, 1 left"),
    ("int", "8080808010", "at byte 0, in x: 2147483648 is no integer of 32 bits"),
    ("long", "ff" * 10 + "01", "in x: an integer over 64 bits"),
    ("long", "ff" * 9 + "02", "in x: an integer over 64 bits"),
    ("float", "000000", "in x: 4 bytes wanted, 3 left"),
    ("double", "00000000000000", "in x: 8 bytes wanted, 7 left"),
    ("bytes", "0400", "in x: a length of 2, 1 bytes left"),
    ("bytes", "01", "in x: a length of -1, 0 bytes left"),
    ("bytes", HUGE, "in x: a length of 9223372036854775807"),
    ("string", "04c328", "at byte 0, in x: not UTF-8"),
    ({"type": "fixed", "name": "f", "size": 3}, "0000", "in x: 3 bytes wanted, 2 left"),
    (COLOUR, "04", "at byte 0, in x: there is no symbol 2, only 2"),
    (COLOUR, "01", "in x: there is no symbol -1"),
    (["null", "int"], "04", "at byte 0, in x: there is no branch 2, only 2"),
    (["null", "int"], "01", "in x: there is no branch -1"),
    (["null", "int"], "0280", "at byte 1, in x: 2 bytes wanted, 1 left"),
    ({"type": "array", "items": "int"}, "06020400", "in x[2]"[:4]),
    ({"type": "array", "items": "int"}, HUGE, "items, 0 bytes left"),
    ({"type": "array", "items": "int"}, "ffffffffffffffffff01 00", "bytes left"),
    ({"type": "array", "items": "double"}, "04" + "00" * 15, "2 items, 15 bytes left"),
    ({"type": "array", "items": "int"}, "01 06 02 00", "a block longer than what is left"),
    ({"type": "array", "items": "int"}, "01 04 02 00", "the block should end at byte 4"),
    ({"type": "array", "items": "int"}, "01 01 02 00", "a block longer than what is left"),
    (NULLS, HUGE + "00", "items, 1 bytes left"),
    (NULLS, "ffffffffffffffffff01 00 00", "items"),
    (NOTHINGS, HUGE + "00", "items"),
    ({"type": "map", "values": "int"}, "02 02 c3 02 00", "in x: not UTF-8"),
    ({"type": "map", "values": "int"}, "02 02 6b 80", "in x[k]"),
    ({"type": "string", "logicalType": "uuid"}, "02 61", "at byte 0, in x: ValueError badly formed"),
    ({"type": "long", "logicalType": "timestamp-millis"}, HUGE, "in x: OverflowError"),
    ("int", "0200", "the record ends at byte 1 of 2; is it of another schema?"),
]


@pytest.mark.parametrize(("kind", "body", "says"), TABLE)
def test_what_is_malformed_is_refused_and_the_place_named(kind: Any, body: str, says: str) -> None:
    with pytest.raises(DecodeError) as caught:
        codec(kind).decode(bytes.fromhex(body))
    assert says in str(caught.value)
    assert str(caught.value).startswith("one: ")


CONVERTED = ("uuid", "timestamp-millis")
"""Columns hold what was written: no converter is asked."""


@pytest.mark.parametrize(
    ("kind", "body", "says"),
    [
        row
        for row in TABLE
        if not (isinstance(row[0], dict) and row[0].get("logicalType") in CONVERTED) and BEHIND not in row[2]
    ],
)
def test_columns_refuse_the_same(kind: Any, body: str, says: str) -> None:
    good = codec(kind)
    with pytest.raises(DecodeError, match=r"^message 0: one: ") as caught:
        good.columns([bytes.fromhex(body)], ["x"])
    assert says in str(caught.value)


def test_columns_do_not_look_behind_the_last_field_that_was_asked_for() -> None:
    assert codec("int").columns([b"\x02\x07"], ["x"])["x"].to_pylist() == [1]


def test_the_message_that_is_malformed_is_named() -> None:
    with pytest.raises(DecodeError, match=r"^message 2: one: "):
        codec("int").columns([b"\x02", b"\x04", b""], ["x"])


def test_a_million_items_without_bytes_are_read_and_no_more() -> None:
    """2**20 nulls in one body; the limit is for all its arrays together."""
    just = codec(NULLS).decode(bytes.fromhex("80808001 00"))
    assert len(just["x"]) == 2**20
    with pytest.raises(DecodeError, match="items"):
        codec(NULLS).decode(bytes.fromhex("80808001 02 00"))


def chain(depth: int) -> tuple[dict[str, Any], bytes]:
    """Return a schema that contains itself, and a body of so many levels."""
    again = {"type": "record", "name": "one", "fields": [{"name": "x", "type": ["null", "one"]}]}
    return again, b"\x02" * (depth - 1) + b"\x00"


def test_records_lie_inside_each_other_200_deep_and_no_deeper() -> None:
    again, body = chain(200)
    deep = Codec(again, engine="native")
    alert = deep.decode(body)
    assert deep.encode(alert) == body
    with pytest.raises(EncodeError, match="nested deeper than 200 levels"):
        deep.encode({"x": alert})
    with pytest.raises(DecodeError, match="nested deeper than 200 levels"):
        deep.decode(chain(201)[1])
    with pytest.raises(DecodeError, match="nested deeper"):
        deep.decode(b"\x02" * 10_000_000)


def test_an_alert_that_contains_itself_is_refused() -> None:
    alert: dict[str, Any] = {}
    alert["x"] = alert
    with pytest.raises(EncodeError, match="nested deeper than 200 levels"):
        Codec(chain(1)[0], engine="native").encode(alert)


def reads(one: Codec, body: bytes, fields: list[str]) -> None:
    """Let all readers have it: a value or a DecodeError."""
    with contextlib.suppress(DecodeError):
        one.decode(body)
    with contextlib.suppress(DecodeError):
        one.decode(body, fields)
    with contextlib.suppress(DecodeError):
        one.columns([body], fields)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(0, 2**32 - 1))
def test_any_bytes_are_a_value_or_an_error(data: st.DataObject, seed: int) -> None:
    """Of each of a hundred schemas one body, changed in fifty ways."""
    random = np.random.default_rng(seed)
    drawn = data.draw(schemas())
    one = Codec(drawn, engine="native")
    fields = [field["name"] for field in drawn["fields"] if has_column(field["type"])]
    body = one.encode(data.draw(values(drawn)))
    for _ in range(50):
        reads(one, mutated(random, body), fields)


def mutated(random: np.random.Generator, body: bytes) -> bytes:
    """Return *body* with bytes changed, cut off or added."""
    raw = bytearray(body)
    for at in random.integers(0, max(len(raw), 1), size=random.integers(0, 4)):
        raw[at : at + 1] = [random.choice([0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF, random.integers(0, 256)])]
    if random.random() < 0.3:
        del raw[random.integers(0, len(raw) + 1) :]
    return bytes(raw) + random.bytes(random.integers(0, 3) * random.integers(0, 8))


def test_no_body_makes_us_ask_for_much_memory() -> None:
    """Counts and lengths of up to 2**63 - 1 in every place of a short body."""
    kinds = ["bytes", "string", NULLS, {"type": "array", "items": "int"}, {"type": "map", "values": "string"}]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for kind in kinds:
        one = Codec(schema({"type": "array", "items": kind}), engine="native")
        for count in range(63):
            huge = np.uint64(2 << count).item()
            body = b"\x08" + bytes(_varint(huge)) + b"\x00" * 8
            reads(one, body, ["x"])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # [kB]
    assert grown < 100_000


def _varint(bits: int) -> list[int]:
    low, rest = bits & 0x7F, bits >> 7
    return [low | 0x80, *_varint(rest)] if rest else [low]
