"""Records written by the types of their values: source generated once for each combination."""

import struct
from collections.abc import Callable, Mapping
from itertools import groupby
from numbers import Integral, Real
from typing import Any, NamedTuple

from nightwire.schemas.avro.generated.source import Source, worth_learning
from nightwire.schemas.avro.plans.primitives import Memo, checked_varint
from nightwire.schemas.avro.plans.program import Node, Program

MAX_COMBINATIONS = 128
SHORT = 64
"""Longest string that is remembered with its bytes."""

Row = Callable[..., bytes]


def text(value: str) -> bytes:
    """Return a string with its length in front."""
    raw = value.encode()
    return bytes(LONGS[len(raw)]) + raw


INTS, LONGS, TEXTS = Memo(checked_varint(32)), Memo(checked_varint(64)), Memo(text)


class Packed(NamedTuple):
    """A value that a `struct` packs: its format, and the expression."""

    form: str
    text: str


class Rows:
    """Writes one kind of record.  Safe to share between threads.

    Attributes:
        writers: What writes each field, whatever its value's type.
    """

    def __init__(self, layout: Program, node: Node) -> None:
        self.writers: list[Callable[[Any], bytes]] = []
        self._layout = layout
        self._fields = node["fields"]
        self._names = tuple(field["name"] for field in self._fields)
        self._known: dict[tuple[type, ...], Row] = {}
        self._unknown = 0

    def __call__(self, value: Any) -> bytes:
        """Return the bytes of a record.  Raises anything where it does not fit."""
        if type(value) is not dict or tuple(value) != self._names:
            values = self._ordered(value)
        else:
            values = tuple(value.values())
        row = self._known.get(tuple(map(type, values)))
        if row is None:
            return self._write_and_learn(values)
        try:
            return row(*values)
        # a float too large for 32 bits is infinite, an integer misfit
        except (OverflowError, struct.error):
            return self._field_by_field(values)

    def _ordered(self, value: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the values in the order of the fields, defaults where there is none."""
        if not isinstance(value, Mapping) or not value.keys() <= set(self._names):
            raise ValueError("no record, or one with other fields")
        constants = self._layout.constants
        return tuple(
            value[field["name"]] if field["name"] in value else constants[field["default"]]
            for field in self._fields
        )

    def _field_by_field(self, values: tuple[Any, ...]) -> bytes:
        return b"".join([write(value) for write, value in zip(self.writers, values, strict=True)])

    def _write_and_learn(self, values: tuple[Any, ...]) -> bytes:
        body = self._field_by_field(values)
        self._unknown += 1
        if worth_learning(self._unknown):
            if len(self._known) >= MAX_COMBINATIONS:
                self._known.clear()
            types = tuple(map(type, values))
            self._known[types] = self._row(types)
        return body

    def _row(self, types: tuple[type, ...]) -> Row:
        """Return a writer of records whose values have these *types*."""
        source = Source(join=b"".join, INTS=INTS, LONGS=LONGS, TEXTS=TEXTS, text=text)
        pieces = [
            piece
            for at, (field, kind) in enumerate(zip(self._fields, types, strict=True))
            for piece in self._pieces(source, self._layout.nodes[field["type"]], kind, at)
        ]
        with source.block(f"def row({', '.join(f'v{at}' for at in range(len(types)))})"):
            source.line(f"return join(({', '.join([*_packed(source, pieces), ''])}))")
        return source.run()["row"]  # type: ignore[no-any-return]

    def _pieces(self, source: Source, node: Node, kind: type, at: int) -> list[Packed | str]:
        """Return what a field's value adds to the body."""
        if node["op"] == "union" and len(node["branches"]) == 2:
            branches = [self._layout.nodes[branch] for branch in node["branches"]]
            for number, branch in enumerate(branches):
                other = branches[1 - number]
                if (kind is type(None)) == (branch["op"] == "null") and "null" in (branch["op"], other["op"]):
                    simple = self._simple(source, branch, kind, f"v{at}")
                    return (
                        [Packed("B", str(2 * number)), *simple]
                        if simple is not None
                        else self._any(source, at)
                    )
        simple = self._simple(source, node, kind, f"v{at}")
        return self._any(source, at) if simple is None else simple

    def _any(self, source: Source, at: int) -> list[Packed | str]:
        return [f"{source.name('write', self.writers[at])}(v{at})"]

    def _simple(self, source: Source, node: Node, kind: type, value: str) -> list[Packed | str] | None:
        """Return what a value adds; None where its type alone does not show how it is written."""
        if "logical" in node:
            return None
        number = kind is not bool  # which Python counts among the integers
        match node["op"]:
            case "null" if kind is type(None):
                return []
            case "boolean" if kind is bool:
                return [Packed("?", value)]
            case "float" | "double" as op if number and issubclass(kind, Real):
                return [Packed(op[0], value)]
            case "int" | "long" as op if number and issubclass(kind, Integral):
                return [f"{'INTS' if op == 'int' else 'LONGS'}[int({value})]"]
            case "string" if kind is str:
                return [f"(TEXTS[{value}] if len({value}) < {SHORT} else text({value}))"]
            case "bytes" if kind is bytes:
                return [f"LONGS[len({value})]", value]
        return None


def _packed(source: Source, pieces: list[Packed | str]) -> list[str]:
    """Return expressions of bytes, those that a struct can pack together in one."""
    out: list[str] = []
    for packed, group in groupby(pieces, lambda piece: isinstance(piece, Packed)):
        if not packed:
            out += [str(piece) for piece in group]
            continue
        together = [piece for piece in group if isinstance(piece, Packed)]
        if all(piece.form == "B" for piece in together):
            out.append(repr(bytes(int(piece.text) for piece in together)))
        else:
            pack = struct.Struct("<" + "".join(piece.form for piece in together)).pack
            out.append(f"{source.name('pack', pack)}({', '.join(piece.text for piece in together)})")
    return out
