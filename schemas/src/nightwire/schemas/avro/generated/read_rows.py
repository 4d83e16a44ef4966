"""Shapes of flat records: rows of a history, of which one is laid out as the next.

A flat record has no arrays, maps or records in it.  Its *shape* is which branches its unions take
and how many bytes its numbers and strings have.  Where a shape is known, one comparison of all its
tags at once (``number & mask == wanted``) tells whether a row has it, and one `struct` reads the
row.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any, Self

from nightwire.schemas.avro.generated.source import (
    Source,
    constant,
    converted,
    record_display,
    scaled,
    worth_learning,
)
from nightwire.schemas.avro.plans.primitives import Memo, integer, read_varint, zigzag
from nightwire.schemas.avro.plans.program import Node, Program

MAX_SHAPES = 8
"""Shapes of a record that are tried; the one met last comes first."""
FLAT = frozenset(
    {
        "null",
        "nan",
        "constant",
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "bytes",
        "string",
        "enum",
        "fixed",
    }
)
INTS, LONGS = Memo(integer(32)), Memo(integer(64))
STRINGS: Memo[bytes, str] = Memo(lambda raw: str(raw, "utf-8"))

Shape = tuple[int, int, int, Callable[[Any, int], dict[str, Any]]]
"""Size [byte], mask, what the masked bytes are, and what reads a row of it."""


class Shapes:
    """The shapes of one record that are known.  Safe to share between threads."""

    def __init__(self, plan: Program, node: Node, source: Source) -> None:
        self.known: tuple[Shape, ...] = ()
        self._plan = plan
        self._node = node
        self._names = source.names
        self._unknown = 0

    @classmethod
    def of(cls, plan: Program, at: int, source: Source) -> Self | None:
        """Return the shapes of a record; None where it is not flat, or too short to gain."""
        node = plan.nodes[at]
        flat = all(_is_flat(plan, field["type"]) for field in node["fields"])
        return cls(plan, node, source) if flat and len(node["fields"]) > 3 else None

    def move_first(self, shape: Shape) -> None:
        """Try *shape* first from now on."""
        self.known = (shape, *(one for one in self.known if one is not shape))

    def learn(self, body: Any, start: int) -> None:
        """Learn the shape of the sound row that begins at byte *start*."""
        self._unknown += 1
        if not worth_learning(self._unknown):
            return
        shape = _Row(self._plan, self._node, body, start).shape(self._names)
        self.known = (shape, *self.known[: MAX_SHAPES - 1])


class _Row:
    """One row, taken apart for its shape."""

    def __init__(self, plan: Program, node: Node, body: Any, start: int) -> None:
        self._plan = plan
        self._node = node
        self._body = body
        self._start = self._at = start
        self._mask, self._wanted = bytearray(), bytearray()
        self._format = ["<"]
        self._read: list[str] = []

    def shape(self, names: dict[str, Any]) -> Shape:
        """Return the row's shape; its source may refer to *names*."""
        source = Source(**names)
        source.names |= {"INTS": INTS, "LONGS": LONGS, "STRINGS": STRINGS}
        texts = [self._field(source, field) for field in self._node["fields"]]
        unpack = source.name("unpack", struct.Struct("".join(self._format)).unpack_from)
        with source.block("def row(b, p)"):
            if self._read:
                source.line(f"{', '.join(self._read)}, = {unpack}(b, p)")
            source.line(f"return {record_display(source, self._plan, self._node, lambda n: texts[n])}")
        size = self._at - self._start
        mask, wanted = (int.from_bytes(one, "little") for one in (self._mask, self._wanted))
        return size, mask, wanted, source.run()["row"]

    def _field(self, source: Source, field: Node) -> str:
        if field["name"] is not None:
            return self._value(source, self._plan.nodes[field["type"]])
        start, read, written = self._at, len(self._read), len(self._format)
        self._value(source, self._plan.nodes[field["type"]])
        del self._read[read:], self._format[written:]  # its tags are compared, its values left out
        self._format.append(f"{self._at - start}x")
        return ""

    def _value(self, source: Source, node: Node) -> str:
        """Return the expression of a value, and go on behind it."""
        match node["op"]:
            case "union":
                branch = node["branches"][zigzag(self._exact())]
                text = self._value(source, self._plan.nodes[branch])
            case "scale":
                text = self._value(source, self._plan.nodes[node["of"]])
                if text == "None":
                    return text
                text = scaled(node, text)
            case "null":
                text = "None"
            case "nan":
                text = "NAN"
            case "constant":
                text = constant(source, self._plan, node)
            case _:
                text = self._simple(source, node)
        return converted(source, self._plan, node, text)

    def _simple(self, source: Source, node: Node) -> str:
        match node["op"]:
            case "boolean":
                return self._take(1, "?", mask=0xFE)
            case "float":
                return self._take(4, "f")
            case "double":
                return self._take(8, "d")
            case "string":
                size = zigzag(self._exact())
                return f"STRINGS[{self._take(size, f'{size}s')}]"
            case "bytes":
                return self._slice(zigzag(self._exact()))
            case "fixed":
                return self._slice(node["size"])
            case "enum":
                symbols = tuple(node["symbols"])
                return f"{source.name('symbols', Memo(_symbol(symbols)))}[{self._varint()}]"
        return f"{'INTS' if node['op'] == 'int' else 'LONGS'}[{self._varint()}]"

    def _take(self, size: int, form: str, mask: int = 0) -> str:
        self._note(bytes([mask]) * size, bytes(size))
        self._format.append(form)
        self._read.append(f"v{len(self._read)}")
        return self._read[-1]

    def _slice(self, size: int) -> str:
        """Return the expression of bytes; views into the body stay views."""
        offset = self._at - self._start
        self._note(bytes(size), bytes(size))
        self._format.append(f"{size}x")
        return f"b[p + {offset}:p + {offset + size}]"

    def _exact(self) -> int:
        """Return the number that comes next, which is part of the shape."""
        number, end = read_varint(self._body, self._at)
        raw = bytes(self._body[self._at : end])
        self._note(b"\xff" * len(raw), raw)
        self._format.append(f"{len(raw)}x")
        return number

    def _varint(self) -> str:
        """Return the expression of a number's bytes; the shape fixes only their count."""
        size = read_varint(self._body, self._at)[1] - self._at
        self._note(b"\x80" * size, b"\x80" * (size - 1) + b"\x00")
        self._format.append(f"{size}s")
        self._read.append(f"v{len(self._read)}")
        return self._read[-1]

    def _note(self, mask: bytes, wanted: bytes) -> None:
        self._mask += mask
        self._wanted += wanted
        self._at += len(mask)


def _symbol(symbols: Sequence[str | None]) -> Callable[[bytes], str | None]:
    """Return a function of an index's bytes to a symbol.  It raises ValueError for no symbol."""
    number = integer(32)

    def make(raw: bytes) -> str | None:
        at = number(raw)
        if not 0 <= at < len(symbols) or symbols[at] is None:
            raise ValueError("no such symbol")
        return symbols[at]

    return make


def _is_flat(plan: Program, at: int) -> bool:
    node = plan.nodes[at]
    if node["op"] == "union":
        return all(plan.nodes[branch]["op"] in FLAT | {"refuse"} for branch in node["branches"])
    return node["op"] in FLAT or (node["op"] == "scale" and _is_flat(plan, node["of"]))
