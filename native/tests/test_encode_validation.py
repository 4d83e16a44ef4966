"""What fits, and what is said of what does not: as the Python engine has it."""

import array
import collections
import contextlib
import datetime as dt
import enum
import io
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from types import MappingProxyType
from typing import Any, cast

import fastavro
import numpy as np
import pytest

from native.tests.single_field import schema
from nightwire.schemas import Codec, EncodeError
from nightwire.schemas.avro.plans.schema import parse
from nightwire.schemas.avro.plans.validate import compile_validator

pytestmark = pytest.mark.native

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
PAIR = {"type": "fixed", "name": "pair", "size": 2}
COLOUR = {"type": "enum", "name": "colour", "symbols": ["red", "green"]}
POINT = {
    "type": "record",
    "name": "point",
    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 1}],
}
OTHER = {
    "type": "record",
    "name": "other",
    "fields": [{"name": "a", "type": "int"}, {"name": "c", "type": ["null", "int"]}],
}
INTS = {"type": "array", "items": "int"}
MAP = {"type": "map", "values": "int"}
KINDS = [
    *("null", "boolean", "int", "long", "float", "double", "bytes", "string"),
    *(MILLIS, DECIMAL, PAIR, COLOUR, POINT, INTS, MAP),
    {"type": "int", "logicalType": "date"},
    {"type": "string", "logicalType": "uuid"},
    *(
        ["null", "boolean"],
        ["null", "int"],
        ["float", "null"],
        ["null", MILLIS],
        ["null", POINT],
        ["null", INTS],
    ),
    *(["null", "int", "string"], ["string", "bytes", INTS], ["float", "int", "double"], ["int", "float"]),
    *(
        [POINT, OTHER],
        [OTHER, POINT],
        [POINT, MAP],
        [MAP, "null", POINT],
        [COLOUR, "string"],
        [PAIR, "bytes"],
    ),
]


class Whole(int):
    """A subclass of int."""


class Colour(enum.StrEnum):
    """A text that is a symbol."""

    RED = "red"


VALUES = [
    *(None, True, False, 0, 1, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1, 2**63, 10**400),
    *(1.5, 1e300, Whole(3), Fraction(1, 2), Decimal("1.25"), Decimal("123.456"), 1j),
    *(
        np.int32(3),
        np.uint64(2**63),
        np.float32(1.5),
        np.float64(2.5),
        np.bool_(True),
        np.str_("a"),
        np.int8(-1),
    ),
    *(
        "",
        "red",
        "é",
        "\ud800",
        Colour.RED,
        "x" * 80,
        b"",
        b"ab",
        b"abc",
        bytearray(b"ab"),
        memoryview(b"ab"),
    ),
    *(
        [],
        [1, 2],
        (1, 2),
        [1, "x"],
        [True],
        range(3),
        array.array("i", [1]),
        np.array([1, 2]),
        collections.deque([1]),
    ),
    *(
        {},
        {"a": 1},
        {"b": 2, "a": 1},
        {"a": 1, "c": None},
        {"a": 1, "z": 2},
        {"a": "x"},
        {1: 1},
        {"k": 2**31},
    ),
    *(collections.OrderedDict(a=1), MappingProxyType({"a": 1, "b": 2}), collections.defaultdict(int, a=1)),
    *(
        dt.datetime(2026, 1, 1),  # noqa: DTZ001
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        dt.date(2026, 1, 1),
        dt.time(1),
        object,
    ),
    *(
        ("int", 3),
        ("null", None),
        ("point", {"a": 1}),
        ("colour", "red"),
        ("nothing", 1),
        ("int",),
        ("string", 3),
    ),
    *({"-type": "point", "a": 1}, {"-type": "other", "a": 1, "c": None}, {"-type": "else", "a": 1}),
]


def verdict(codec: Codec, value: Any) -> str:
    """Return the bytes, or what is said."""
    try:
        return codec.encode(value).hex()
    except EncodeError as error:
        return str(error)


def by_fastavro(kind: Any, value: Any) -> str | None:
    """Return fastavro's bytes; None where it refuses."""
    stream = io.BytesIO()
    try:
        fastavro.schemaless_writer(stream, parse(schema(kind)), {"x": value})
    except UNFIT:
        return None
    return stream.getvalue().hex()


UNFIT = (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, ArithmeticError)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_fits_is_as_the_check_says_and_its_bytes_are_fastavros(kind: Any) -> None:
    native, check = Codec(schema(kind), engine="native"), compile_validator(parse(schema(kind)))
    for value in VALUES:
        said, why, expected = (
            verdict(native, {"x": value}),
            misfit(check, {"x": value}),
            by_fastavro(kind, value),
        )
        fits = not said.startswith("one")
        assert not (fits and why), value
        if fits and expected is not None:
            assert said == expected, value
        if why and not isinstance(kind, list):
            assert said == f"one{why}", value


def misfit(check: Any, value: Any) -> str | None:
    """Return what `validate` says; nothing where NumPy makes it stumble."""
    with contextlib.suppress(ValueError):
        return cast("str | None", check(value))
    return None


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_both_engines_take_the_same(kind: Any) -> None:
    native, python = (Codec(schema(kind), engine=engine) for engine in ("native", "python"))
    for value in VALUES:
        if isinstance(value, np.ndarray):
            continue
        fits = [not verdict(codec, {"x": value}).startswith("one") for codec in (native, python)]
        assert fits[0] == fits[1], value


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (("nothing", 1), "one.x: 'nothing' is a str, not null or point"),
        ((1, 2, 3), r"one.x: (1, 2, 3) is a tuple, not null or point"),
        ({"a": 1, "-type": "other"}, "one.x: the schema has no field -type"),
        ({"a": "x"}, "one.x.a: 'x' is a str, not an integer of 32 bits"),
    ],
)
def test_in_a_union_the_culprit_is_named_too(value: Any, says: str) -> None:
    assert verdict(Codec(schema(["null", POINT]), engine="native"), {"x": value}) == says


@pytest.mark.parametrize("value", [{}, {"y": 1}, {"x": 1, "y": 1, "z": 2}, None, [], 3], ids=str)
def test_a_root_that_does_not_fit(value: Any) -> None:
    native, python = (Codec(schema("int"), engine=engine) for engine in ("native", "python"))
    assert verdict(native, value) == verdict(python, value)
    assert verdict(native, value).startswith("one")


def test_a_dict_that_changes_while_it_is_written_is_no_danger() -> None:
    """Conversions are Python code that may do anything: here one clears the record being
    written.
    """
    alert: dict[str, Any] = {}

    class Clears:
        def __float__(self) -> float:
            alert.clear()
            return 1.0

    Real.register(Clears)
    two = {"type": "record", "name": "two", "fields": [{"name": n, "type": "double"} for n in "ab"]}
    alert.update(a=Clears(), b=2.0)
    with pytest.raises(EncodeError, match=r"\.b: it is missing"):
        Codec(two, engine="native").encode(alert)
