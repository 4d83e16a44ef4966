"""Writers made from a layout: a function per node, generated source for records.

Most records hold values of the same types as many before them.  For such a row everything is
decided: which branch each union takes, and which values one `struct` packs together.  A value that
does not fit makes the functions raise; `validate` then says what is wrong with it.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any

from nightwire.schemas.avro.generated.write_rows import Rows
from nightwire.schemas.avro.plans.primitives import Memo, checked_varint, float_bytes
from nightwire.schemas.avro.plans.program import Node, Program, recursive
from nightwire.schemas.avro.plans.schema import CONVERSION_ERRORS, error_text
from nightwire.schemas.avro.plans.validate import MAX_DEPTH, Check, depth
from nightwire.schemas.errors import EncodeError

Write = Callable[[Any], bytes]

INTS, LONGS = Memo(checked_varint(32)), Memo(checked_varint(64))
DOUBLE = struct.Struct("<d")
UNENCODABLE = (*CONVERSION_ERRORS, RecursionError, struct.error)
"""What writing is seen to raise on values that do not fit."""


class UnfitError(ValueError):
    """A value does not fit; `validate` finds the words."""


class Writer:
    """Writes values by a layout.  Safe to share between threads.

    Args:
        name: The record's full name, for messages.
        layout: What to do.
        explain: Says why a value does not fit.
    """

    def __init__(self, name: str, layout: Program, explain: Check) -> None:
        self._name = name
        self._explain = explain
        self._recursive = recursive(layout)
        self._write = _Nodes(layout).writer(layout.root)

    def __call__(self, value: Any) -> bytes:
        """Return the Avro body of *value*.

        Raises:
            EncodeError: It does not fit; names the field.
        """
        if self._recursive and depth(value) > MAX_DEPTH:
            raise EncodeError(f"{self._name}: nested deeper than {MAX_DEPTH} levels")
        try:
            return self._write(value)
        except UNENCODABLE as error:
            why = self._explain(value) or f": {error_text(error)}"
            raise EncodeError(f"{self._name}{why}") from error


class _Nodes:
    """The functions of a layout's nodes, each made once."""

    def __init__(self, layout: Program) -> None:
        self._layout = layout
        self._made: dict[int, Write] = {}

    def writer(self, at: int) -> Write:
        """Return the function that writes node *at*."""
        if at not in self._made:
            node = self._layout.nodes[at]
            if node["op"] == "record":
                # keeps itself before its fields, which may name it
                self._made[at] = self._record(node, at)
            else:
                self._made[at] = self._converted(node, self._plain(node))
        return self._made[at]

    def _converted(self, node: Node, write: Write) -> Write:
        if "logical" not in node:
            return write
        convert = self._layout.converters[node["logical"]]
        return lambda value: write(convert(_checked_logical(node, value)))

    def _plain(self, node: Node) -> Write:
        match node["op"]:
            case "fixed":
                return partial(_fixed, node["size"])
            case "enum":
                numbers = {symbol: INTS[at] for at, symbol in enumerate(node["symbols"])}
                return numbers.__getitem__
            case "array":
                return partial(_array, self.writer(node["items"]))
            case "map":
                return partial(_map, self.writer(node["values"]))
            case "union":
                return Union(self._layout, node, [self.writer(branch) for branch in node["branches"]])
        return PRIMITIVES[node["op"]]

    def _record(self, node: Node, at: int) -> Write:
        rows = Rows(self._layout, node)
        self._made[at] = rows
        rows.writers += [self.writer(field["type"]) for field in node["fields"]]
        return rows


class Union:
    """Writes a value as the branch that it fits, chosen as fastavro does.

    That is the first that takes it, but: of records the one of which the value has most fields; a
    double rather than a float before it.  A tuple is a branch's name and its value.
    """

    def __init__(self, layout: Program, node: Node, writers: Sequence[Write]) -> None:
        nodes = [layout.nodes[branch] for branch in node["branches"]]
        self._ops = [one["op"] for one in nodes]
        self._names = [str(one.get("name", one["op"])) for one in nodes]
        self._writers = writers
        self._null = self._ops.index("null") if "null" in self._ops else None

    def __call__(self, value: Any) -> bytes:
        if value is None and self._null is not None:
            return LONGS[self._null]
        if isinstance(value, tuple):
            return self._named(*value)
        if isinstance(value, Mapping) and "-type" in value:
            named = {key: one for key, one in value.items() if key != "-type"}
            return self._named(value["-type"], named)
        if len(self._writers) == 2 and self._null is not None:
            at = 1 - self._null
            return LONGS[at] + self._writers[at](value)
        return self._chosen(value)

    def _named(self, name: str, value: Any) -> bytes:
        at = self._names.index(name)
        return LONGS[at] + self._writers[at](value)

    def _chosen(self, value: Any) -> bytes:
        best: tuple[int, bytes] | None = None
        fits = False
        for at, op in enumerate(self._ops):
            held = None if best is None else self._ops[best[0]]
            if (held == "float" and op != "double") or (held == "record" and op == "record"):
                continue
            body = _try_write(self._writers[at], value)
            fits = fits or body is not None
            if body is None and op == "array" and isinstance(value, bytes):
                # fastavro takes bytes for numbers
                body = _try_write(self._writers[at], list(value))
            if body is not None:
                best = at, body
                if op not in ("record", "float") and (fits or self._fits(value)):
                    break
        if best is None or not (fits or self._fits(value)):
            raise UnfitError
        return LONGS[best[0]] + best[1]

    def _fits(self, value: Any) -> bool:
        return any(_try_write(write, value) is not None for write in self._writers)


def _try_write(write: Write, value: Any) -> bytes | None:
    try:
        return write(value)
    except UNENCODABLE:
        return None


def _checked_logical(node: Node, value: Any) -> Any:
    """Return *value* unless it is a time of day that could be anywhere."""
    if value is None or (
        "-timestamp-" in node["logical_name"]
        and not node["logical_name"].startswith("long-local")
        and getattr(value, "tzinfo", value) is None
    ):
        raise UnfitError
    return value


def _null(value: Any) -> bytes:
    if value is not None:
        raise UnfitError
    return b""


def _boolean(value: Any) -> bytes:
    if type(value).__name__ not in ("bool", "bool_"):  # or NumPy's
        raise UnfitError
    return b"\x01" if value else b"\x00"


def _integer(memo: Memo[int, bytes], value: Any) -> bytes:
    if type(value) is int:
        return memo[value]
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise UnfitError
    return memo[int(value)]


def _real(pack: Callable[[Any], bytes], value: Any) -> bytes:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise UnfitError
    return pack(value)


def _string(value: Any) -> bytes:
    if not isinstance(value, str):
        raise UnfitError
    text = value.encode()
    return LONGS[len(text)] + text


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise UnfitError
    raw = bytes(value)
    return LONGS[len(raw)] + raw


def _fixed(size: int, value: Any) -> bytes:
    if not isinstance(value, bytes) or len(value) != size:
        raise UnfitError
    return value


def _array(item: Write, value: Any) -> bytes:
    if type(value) is not list and (not isinstance(value, Sequence) or isinstance(value, str | bytes)):
        raise UnfitError
    if not value:
        return b"\x00"
    return b"".join((LONGS[len(value)], *map(item, value), b"\x00"))


def _map(item: Write, value: Any) -> bytes:
    if not isinstance(value, Mapping):
        raise UnfitError
    if not value:
        return b"\x00"
    pairs = (part for key, one in value.items() for part in (_string(key), item(one)))
    return b"".join((LONGS[len(value)], *pairs, b"\x00"))


PRIMITIVES: Mapping[str, Write] = {
    "null": _null,
    "boolean": _boolean,
    "int": partial(_integer, INTS),
    "long": partial(_integer, LONGS),
    "float": partial(_real, float_bytes),
    "double": partial(_real, DOUBLE.pack),
    "string": _string,
    "bytes": _bytes,
}
