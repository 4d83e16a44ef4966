"""Readers generated from a plan: Python source with one function per record, array, map and union.

A function takes the body and where to begin, and returns a value and where it ends.  It raises
whatever Python raises on bytes that are malformed; `reference_reader` then says what is wrong, and
where.
"""

import copy
import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

from nightwire.schemas.avro.generated.read_rows import Shapes
from nightwire.schemas.avro.generated.reference_reader import (
    MALFORMED,
    MAX_EMPTY,
    MalformedError,
    ReferenceReader,
)
from nightwire.schemas.avro.generated.source import Source, constant, converted, record_display, scaled
from nightwire.schemas.avro.plans.primitives import read_varint
from nightwire.schemas.avro.plans.program import Node, Program, recursive
from nightwire.schemas.avro.plans.validate import MAX_DEPTH
from nightwire.schemas.errors import DecodeError

Read = Callable[[Any, int], tuple[Any, int]]

BOOLEANS = (False, True)
FLOAT, DOUBLE = struct.Struct("<f"), struct.Struct("<d")


class UnreadableError(ValueError):
    """What the generated source raises; `reference_reader` finds better words."""


class Reader:
    """Reads bodies by a plan.  Safe to share between threads.

    Args:
        name: The record's full name, for messages.
        plan: What to do.
        views: Whether values of bytes and fixed are memoryviews into the body.
    """

    def __init__(self, name: str, plan: Program, *, views: bool = False) -> None:
        self._name = name
        self._plan = plan
        self._views = views
        self._read = _Generator(plan).reader()

    def __call__(self, body: Any) -> Any:
        """Return the value of *body*.

        Raises:
            DecodeError: It is cut off, malformed, or longer than its value.
        """
        # Arrow's buffers are of signed bytes
        body = memoryview(body).cast("B") if self._views else bytes(body)
        value, end = self.read(body, 0)
        if end != len(body) and not self._plan.partial:
            raise DecodeError(
                f"{self._name}: the record ends at byte {end} of {len(body)}; is it of another schema?"
            )
        return value

    def read(self, body: Any, start: int) -> tuple[Any, int]:
        """Return the value that begins at byte *start*, and where it ends.

        Raises:
            DecodeError: It is cut off or malformed; says where, counted from its beginning. [byte]
        """
        try:
            return self._read(body, start)
        except MALFORMED as error:
            raise DecodeError(f"{self._name}: {self._why(body[start:], error)}") from error

    def _why(self, body: Any, error: BaseException) -> str:
        try:
            ReferenceReader(self._plan, body).value()
        except MalformedError as malformed:
            return f"body is cut off or malformed {malformed}"
        return f"body is malformed: {type(error).__name__} {error}"


class _Generator:
    """Writes the source of one plan."""

    def __init__(self, plan: Program) -> None:
        self._plan = plan
        self.limited = recursive(plan) or any(self.may_be_empty(node) for node in plan.nodes)
        self.extra = ", c" if self.limited else ""
        self._written: set[int] = set()
        self.source = Source(
            BOOLEANS=BOOLEANS,
            FLOAT=FLOAT.unpack_from,
            DOUBLE=DOUBLE.unpack_from,
            NAN=math.nan,
            more=read_varint,
            wrong=_wrong,
            deeper=_deeper,
            empty=_empty,
            copied=copy.deepcopy,
            number=int.from_bytes,
        )

    def reader(self) -> Read:
        """Return the function that reads the plan's root."""
        self.function(self._plan.root)
        root = self.source.run()[f"read{self._plan.root}"]
        return (lambda body, at: root(body, at, [0, 0])) if self.limited else root

    def may_be_empty(self, node: Node) -> bool:
        return node["op"] == "array" and _takes_nothing(self._plan, node["items"], set())

    def function(self, at: int) -> str:
        """Write the function of a node, once, and return its name."""
        if at not in self._written:
            self._written.add(at)
            inner = _Function(self, self._plan, at)
            inner.write()
        return f"read{at}"


class _Function:
    """Writes the function of one record, array, map or union."""

    def __init__(self, generator: _Generator, plan: Program, at: int) -> None:
        self._generator = generator
        self._plan = plan
        self._at = at
        self._node = plan.nodes[at]
        self._extra = generator.extra
        self._source = generator.source
        self.lines = Source()  # apart, as functions that are called are written meanwhile
        self._limited = generator.limited

    def write(self) -> None:
        lines = self.lines
        writers = {"record": self._record, "array": self._items, "map": self._items}
        with lines.block(f"def read{self._at}(b, p{self._extra})"):
            if self._limited and self._node["op"] in writers:
                lines.line("deeper(c)")
            writers.get(self._node["op"], self._plain)()
        for line in lines.text.splitlines():
            self._source.line(line)

    def _return(self, value: str) -> None:
        if self._limited and self._node["op"] in ("record", "array", "map"):
            self.lines.line("c[0] -= 1")
        self.lines.line(f"return {value}, p")

    def _plain(self) -> None:
        if self._node["op"] == "union":
            self._union(self._node, "v", whole=True)
        else:
            self._value(self._at, "v")
        self._return("v")

    def _record(self) -> None:
        shapes = None if self._limited else Shapes.of(self._plan, self._at, self._source)
        if shapes is not None:
            self._known_shapes(self._source.name("shapes", shapes))
        for number, field in enumerate(self._node["fields"]):
            self._value(field["type"], f"v{number}" if field["name"] is not None else "_")
        if shapes is not None:
            self.lines.line(f"{self._source.name('learn', shapes.learn)}(b, start)")
        self._return(record_display(self._source, self._plan, self._node, lambda number: f"v{number}"))

    def _known_shapes(self, shapes: str) -> None:
        lines = self.lines
        lines.line(f"known = {shapes}.known")
        with lines.block("for s in known"):
            lines.line("q = p + s[0]")
            with lines.block("if number(b[p:q], 'little') & s[1] == s[2] and q <= len(b)"):
                lines.line(f"if s is not known[0]: {shapes}.move_first(s)")
                lines.line("return s[3](b, p), q")
        lines.line("start = p")

    def _items(self) -> None:
        """Blocks of an array or a map."""
        lines, is_map = self.lines, self._node["op"] == "map"
        lines.line(f"out = {'{}' if is_map else '[]'}")
        with lines.block("while True"):
            self.write_long("n")
            with lines.block("if not n"):
                lines.line("break")
            lines.line("end = None")
            with lines.block("if n < 0"):
                lines.line("n = -n")
                self.write_long("end")
                lines.line("end += p")
            if not is_map and self._generator.may_be_empty(self._node):
                lines.line("empty(c, n)")
            with lines.block("for _ in range(n)"):
                self._item(is_map=is_map)
            with lines.block("if end is not None and end != p"):
                lines.line("wrong()")
        self._return("out")

    def _item(self, *, is_map: bool) -> None:
        if is_map:
            self.write_bytes("k", "str(b[p:q], 'utf-8')")
            self._value(self._node["values"], "v")
            self.lines.line("out[k] = v")
        else:
            self._value(self._node["items"], "v")
            self.lines.line("out.append(v)")

    def _value(self, at: int, to: str) -> None:
        """Write the lines that read node *at* into the variable *to*."""
        node = self._plan.nodes[at]
        write = SIMPLE.get(node["op"])
        if write is not None:
            write(self, node, to)
            text = to if node["op"] == "scale" else converted(self._source, self._plan, node, to)
            if text != to:
                self.lines.line(f"{to} = {text}")
        elif node["op"] == "union" and _inline(self._plan, node):
            self._union(node, to, whole=False, at=at)
        else:
            self.lines.line(f"{to}, p = {self._generator.function(at)}(b, p{self._extra})")

    def _union(self, node: Node, to: str, *, whole: bool, at: int = 0) -> None:
        lines = self.lines
        lines.line("x = b[p]")
        lines.line("p += 1")
        if whole:
            with lines.block("if x > 127"):
                lines.line("x, p = more(b, p - 1)")
        order = sorted(range(len(node["branches"])), key=lambda n: self._is_null(node["branches"][n]))
        for place, number in enumerate(order):
            with lines.block(f"{'elif' if place else 'if'} x == {2 * number}"):
                self._value(node["branches"][number], to)
        with lines.block("else"):
            rest = f"{to}, p = {self._generator.function(at)}(b, p - 1{self._extra})"
            lines.line("wrong()" if whole else rest)

    def _is_null(self, at: int) -> bool:
        return self._plan.nodes[at]["op"] in ("null", "nan", "constant")

    def write_long(self, to: str) -> None:
        self.lines.line(f"{to} = b[p]")
        self.lines.line("p += 1")
        self.lines.line(f"if {to} > 127: {to}, p = more(b, p - 1)")
        self.lines.line(f"{to} = ({to} >> 1) ^ -({to} & 1)")

    def write_int(self, to: str) -> None:
        self.write_long(to)
        self.lines.line(f"if not -2147483648 <= {to} <= 2147483647: wrong()")

    def write_bytes(self, to: str, text: str) -> None:
        self.write_long("q")
        self.lines.line("q += p")
        self.lines.line("if q < p or q > len(b): wrong()")
        self.lines.line(f"{to} = {text}")
        self.lines.line("p = q")

    def write_enum(self, node: Node, to: str) -> None:
        symbols = self._source.name("symbols", tuple(node["symbols"]))
        self.write_int(to)
        self.lines.line(f"if {to} < 0: wrong()")
        self.lines.line(f"{to} = {symbols}[{to}]")
        if None in node["symbols"]:
            self.lines.line(f"if {to} is None: wrong()")

    def write_fixed(self, node: Node, to: str) -> None:
        self.lines.line(f"q = p + {int(node['size'])}")
        self.lines.line("if q > len(b): wrong()")
        self.lines.line(f"{to} = b[p:q]")
        self.lines.line("p = q")

    def write_number(self, to: str, size: str, unpack: str) -> None:
        self.lines.line(f"{to} = {unpack}(b, p)[0]")
        self.lines.line(f"p += {size}")

    def write_boolean(self, to: str) -> None:
        self.lines.line(f"{to} = BOOLEANS[b[p]]")
        self.lines.line("p += 1")

    def write_scale(self, node: Node, to: str) -> None:
        self._value(node["of"], to)
        text = converted(self._source, self._plan, node, scaled(node, to))
        self.lines.line(f"if {to} is not None: {to} = {text}")

    def write_constant(self, node: Node, to: str) -> None:
        self.lines.line(f"{to} = {constant(self._source, self._plan, node)}")

    def write_refuse(self, node: Node, to: str) -> None:
        self._value(node["of"], to)
        self.lines.line("wrong()")


SIMPLE: Mapping[str, Callable[[_Function, Node, str], None]] = {
    "null": lambda self, _node, to: self.lines.line(f"{to} = None"),
    "nan": lambda self, _node, to: self.lines.line(f"{to} = NAN"),
    "boolean": lambda self, _node, to: self.write_boolean(to),
    "int": lambda self, _node, to: self.write_int(to),
    "long": lambda self, _node, to: self.write_long(to),
    "float": lambda self, _node, to: self.write_number(to, "4", "FLOAT"),
    "double": lambda self, _node, to: self.write_number(to, "8", "DOUBLE"),
    "bytes": lambda self, _node, to: self.write_bytes(to, "b[p:q]"),
    "string": lambda self, _node, to: self.write_bytes(to, "str(b[p:q], 'utf-8')"),
    "fixed": lambda self, node, to: self.write_fixed(node, to),
    "enum": lambda self, node, to: self.write_enum(node, to),
    "scale": lambda self, node, to: self.write_scale(node, to),
    "constant": lambda self, node, to: self.write_constant(node, to),
    "refuse": lambda self, node, to: self.write_refuse(node, to),
}


def _inline(plan: Program, node: Node) -> bool:
    """Whether a union has two plain branches, so that its source stands in its reader's."""
    return len(node["branches"]) == 2 and all(
        plan.nodes[branch]["op"] != "union" for branch in node["branches"]
    )


def _wrong() -> None:
    raise UnreadableError


def _deeper(counts: list[int]) -> None:
    counts[0] += 1
    if counts[0] > MAX_DEPTH:
        raise UnreadableError


def _empty(counts: list[int], items: int) -> None:
    counts[1] += items
    if counts[1] > MAX_EMPTY:
        raise UnreadableError


def _takes_nothing(plan: Program, at: int, above: set[int]) -> bool:
    """Whether values of a node take no bytes."""
    node = plan.nodes[at]
    match node["op"]:
        case "null" | "nan" | "constant":
            return True
        case "fixed":
            return bool(node["size"] == 0)
        case "scale" | "refuse":
            return _takes_nothing(plan, node["of"], above)
        case "record":
            return at not in above and all(
                _takes_nothing(plan, field["type"], above | {at}) for field in node["fields"]
            )
    return False
