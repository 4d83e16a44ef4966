"""Which schema may follow which."""

from typing import Any

import pytest

from nightwire.schemas.registry.compatibility import incompatibilities, unreadable


def record(*fields: Any, name: str = "r") -> dict[str, Any]:
    """Return a record schema of fields given as (name, type[, default])."""
    keys = ("name", "type", "default")
    return {
        "type": "record",
        "name": name,
        "fields": [dict(zip(keys, field, strict=False)) for field in fields],
    }


X = record(("x", "int"))
XY = record(("x", "int"), ("y", "int"))
XY_DEFAULT = record(("x", "int"), ("y", "int", 0))
LIST: dict[str, Any] = record(("next", ["null", "r"]))


@pytest.mark.parametrize(
    ("reader", "writer", "where"),
    [
        (X, X, None),
        (X, XY, None),
        (XY_DEFAULT, X, None),
        (XY, X, "y: it was not written"),
        (record(("x", "double")), X, None),
        (X, record(("x", "double")), "x: a double is no int"),
        (record(("x", ["null", "int"])), X, None),
        (X, record(("x", ["null", "int"])), "x: a null is no int"),
        (record(("x", ["null", "string"])), X, "x: a int is no null or string"),
        (record(("x", "bytes")), record(("x", "string")), None),
        (record(("x", "int"), name="a.r"), record(("x", "int"), name="b.r"), None),
        (record(("x", "int"), name="s"), X, "the record: a r is no s"),
        ({**record(("x", "int"), name="s"), "aliases": ["r"]}, X, None),
        (record(("z", "int")), X, "z: it was not written"),
        ({**X, "fields": [{"name": "z", "type": "int", "aliases": ["x"]}]}, X, None),
        (
            record(("x", {"type": "array", "items": "int"})),
            record(("x", {"type": "array", "items": "long"})),
            "x: a long is no int",
        ),
        (
            record(("x", {"type": "map", "values": "long"})),
            record(("x", {"type": "map", "values": "int"})),
            None,
        ),
        (record(("i", X | {"name": "i"})), record(("i", XY | {"name": "i"})), None),
        (record(("i", XY | {"name": "i"})), record(("i", X | {"name": "i"})), "i.y: it was not written"),
        (
            {"type": "enum", "name": "e", "symbols": ["a"]},
            {"type": "enum", "name": "e", "symbols": ["a", "b"]},
            "b not",
        ),
        (
            {"type": "enum", "name": "e", "symbols": ["a"], "default": "a"},
            {"type": "enum", "name": "e", "symbols": ["a", "b"]},
            None,
        ),
        ({"type": "fixed", "name": "f", "size": 2}, {"type": "fixed", "name": "f", "size": 3}, "3 bytes"),
        (LIST, LIST, None),
        ("long", "int", None),
    ],
)
def test_what_one_schema_reads_of_another(reader: Any, writer: Any, where: str | None) -> None:
    found = unreadable(reader, writer)
    assert (found == []) if where is None else (len(found) == 1 and where in found[0])


@pytest.mark.parametrize(
    ("level", "new", "earlier", "fine"),
    [
        ("NONE", XY, [X], True),
        ("BACKWARD", XY, [X], False),
        ("BACKWARD", XY_DEFAULT, [X], True),
        ("BACKWARD", X, [XY], True),
        ("FORWARD", XY, [X], True),
        ("FORWARD", X, [XY], False),
        ("FULL", X, [XY], False),
        ("FULL", XY_DEFAULT, [X], True),
        ("FULL", X, [XY_DEFAULT], True),
        ("BACKWARD", XY, [X, XY_DEFAULT], True),
        ("BACKWARD_TRANSITIVE", XY, [X, XY_DEFAULT], False),
        ("FULL_TRANSITIVE", X, [], True),
    ],
)
def test_levels(level: str, new: Any, earlier: list[Any], fine: bool) -> None:
    assert (incompatibilities(level, new, earlier) == []) is fine
