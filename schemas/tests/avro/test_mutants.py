"""The generated engine, broken on purpose: each mutant is killed by a row of literal bytes."""

import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import nightwire.schemas

FOLDER = Path(nightwire.schemas.__file__ or "").parent / "avro"
PACKAGE = "nightwire.schemas.avro"

FLAT = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "l", "type": "long"},
        {"name": "i", "type": "int"},
        {"name": "f", "type": ["null", "float"]},
        {"name": "d", "type": ["double", "null"]},
        {"name": "s", "type": "string"},
        {"name": "b", "type": "boolean"},
        {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["x", "y"]}},
        {"name": "w", "type": ["int", "boolean"]},
        {"name": "o", "type": "int", "default": 7},
    ],
}
NESTED = {
    "type": "record",
    "name": "n",
    "fields": [
        {"name": "a", "type": {"type": "array", "items": "int"}},
        {"name": "m", "type": {"type": "map", "values": "bytes"}},
        {"name": "u", "type": ["null", "float", "double", "string"]},
        {"name": "z", "type": {"type": "fixed", "name": "z", "size": 2}},
    ],
}
ROWS = {
    "type": "record",
    "name": "rows",
    "fields": [{"name": "rows", "type": {"type": "array", "items": FLAT}}],
}
ROW = {"l": -65, "i": 64, "f": 1.5, "d": None, "s": "é", "b": True, "e": "y", "w": 1, "o": 7}
ROW_BYTES = "8101 8001 02 0000c03f 02 04c3a9 01 02 0002 0e"
HISTORY = {"a": [1, -2], "m": {"k": b"\x01"}, "u": 0.5, "z": b"ab"}
HISTORY_BYTES = "04 02 03 00 02 02 6b 02 01 00 04 000000000000e03f 6162"
NEGATIVE_BLOCK = "03 04 02 03 00 01 06 02 6b 00 00 00 6162"
CUT_OFF = ["", "81", "8101 8001 02 0000", "8101 8001 02 0000c03f 02 04c3", "8101 8001 04", f"{ROW_BYTES} 00"]


@contextmanager
def mutated(module: str, old: str, new: str) -> Iterator[ModuleType]:
    """Yield `nightwire.schemas.avro.codec` as it is where *module* has *new* for *old*."""
    path = FOLDER.joinpath(*module.split(".")).with_suffix(".py")
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{module} has no {old!r}: the mutant needs another one"

    class Loader(importlib.abc.InspectLoader):
        def get_source(self, fullname: str) -> str:
            return text.replace(old, new)

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
            wanted = fullname == f"{PACKAGE}.{module}"
            return importlib.util.spec_from_loader(fullname, Loader()) if wanted else None

    original = take_modules()
    sys.meta_path.insert(0, Finder())
    try:
        yield importlib.import_module(f"{PACKAGE}.codec")
    finally:
        sys.meta_path.pop(0)
        take_modules()
        sys.modules.update(original)
        setattr(nightwire.schemas, "avro", original[PACKAGE])  # noqa: B010  (mypy knows it as a package)


def take_modules() -> dict[str, ModuleType]:
    """Remove the modules of the package from those that are imported, and return them."""
    names = [name for name in sys.modules if name == PACKAGE or name.startswith(f"{PACKAGE}.")]
    return {name: sys.modules.pop(name) for name in names}


def check(codec: ModuleType) -> None:
    """Check the engine against literal bytes, often enough that it uses learned rows."""
    flat, nested = (codec.Codec(schema, engine="python") for schema in (FLAT, NESTED))
    for _ in range(3):
        assert flat.encode(ROW).hex() == ROW_BYTES.replace(" ", "")
        assert flat.decode(bytes.fromhex(ROW_BYTES)) == ROW
        assert nested.encode(HISTORY).hex() == HISTORY_BYTES.replace(" ", "")
        assert nested.decode(bytes.fromhex(HISTORY_BYTES)) == HISTORY
    without = {name: value for name, value in ROW.items() if name != "o"}
    assert flat.encode(without) == flat.encode(ROW)
    assert flat.decode(flat.encode({**ROW, "f": None, "l": -1})) == {**ROW, "f": None, "l": -1}
    assert flat.decode(flat.encode({**ROW, "l": -(2**63)}))["l"] == -(2**63)
    assert nested.decode(bytes.fromhex(NEGATIVE_BLOCK)) == {
        "a": [1, -2],
        "m": {"k": b""},
        "u": None,
        "z": b"ab",
    }
    history = codec.Codec(ROWS, engine="python")
    rows = {"rows": [ROW, ROW, {**ROW, "f": None}, {**ROW, "w": True}, {**ROW, "l": 1, "i": 8192}, ROW]}
    assert history.decode(history.encode(rows)) == rows
    for body in CUT_OFF:
        refused(flat, bytes.fromhex(body))
    refused(nested, bytes.fromhex(NEGATIVE_BLOCK.replace("03 04", "03 06")))
    refused(nested, bytes.fromhex("00 00 00 61"), ["z"])
    refused(flat, bytes.fromhex("8101 8001 02 0000c03f 02 06c3a9"), ["s"])
    assert flat.decode(bytes.fromhex(ROW_BYTES), ["d", "s"]) == {"d": None, "s": "é"}


def refused(codec: Any, body: bytes, fields: list[str] | None = None) -> None:
    """Check that *body* is refused; by name, as the error's class is another one in each copy."""
    with pytest.raises(Exception, match=r"cut off or malformed|ends at byte") as caught:
        codec.decode(body, fields)
    assert type(caught.value).__name__ == "DecodeError"


MUTANTS = [
    ("byte order of a float", "generated.read", 'struct.Struct("<f")', 'struct.Struct(">f")'),
    ("byte order of a double", "generated.read", 'struct.Struct("<d")', 'struct.Struct(">d")'),
    ("byte order of a row that is read", "generated.read_rows", '["<"]', '[">"]'),
    ("byte order of a row that is written", "generated.write_rows", '"<" + ', '">" + '),
    ("zigzag in a row", "plans.primitives", "-(number & 1)", "(number & 1)"),
    ("zigzag of one value", "generated.read", "^ -({to} & 1)", "^ ({to} & 1)"),
    ("zigzag that is written", "plans.primitives", "(value << 1) ^ (value >> 63)", "value << 1"),
    ("seven bits of a byte", "plans.primitives", "(byte & 0x7F) << shift", "(byte & 0x3F) << shift"),
    ("continuation of a number", "plans.primitives", "number & 0x7F | 0x80", "number & 0x7F"),
    ("union index that is read", "generated.read", "== {2 * number}", "== {2 * (1 - number)}"),
    ("union index in a row", "generated.write_rows", "str(2 * number)", "str(2 * (1 - number))"),
    ("union index that is written", "generated.write", "LONGS[best[0]]", "LONGS[0]"),
    ("a double before a float", "generated.write", 'held == "float" and op != "double"', "held == 'float'"),
    (
        "a union's tag is compared",
        "generated.read_rows",
        'b"\\xff" * len(raw), raw',
        "bytes(len(raw)), bytes(len(raw))",
    ),
    (
        "how long a number is, is compared",
        "generated.read_rows",
        'b"\\x80" * size, b"\\x80" * (size - 1) + b"\\x00"',
        "bytes(size), bytes(size)",
    ),
    (
        "default",
        "plans.layout",
        'made["default"] = self.draft.constant(default)',
        'made["default"] = self.draft.constant(0)',
    ),
    ("negative block count", "generated.read", 'lines.line("n = -n")', 'lines.line("pass")'),
    ("size of a negative block", "generated.read", '"if end is not None and end != p"', '"if False"'),
    ("end of an array", "generated.write", '*map(item, value), b"\\x00"))', "*map(item, value)))"),
    ("end of a string", "generated.read", "if q < p or q > len(b): wrong()", "pass"),
    ("end of a fixed", "generated.read", "if q > len(b): wrong()", "pass"),
    ("end of the body", "generated.read", "if end != len(body) and not self._plan.partial", "if False"),
]


def test_the_engine_as_it_is_passes() -> None:
    with mutated("plans.primitives", "zigzag", "zigzag") as codec:
        check(codec)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "old", "new"), [row[1:] for row in MUTANTS], ids=[row[0] for row in MUTANTS]
)
def test_a_mutant_is_killed(module: str, old: str, new: str) -> None:
    with mutated(module, old, new) as codec, pytest.raises((Exception, pytest.fail.Exception)):
        check(codec)
