"""A reader that executes a plan step by step: slow, but errors name byte and field.

The generated reader says only that something is wrong.  This says what, at which byte and in which
field; and it is what a plan means, in a page, for who writes another engine.
"""

import copy
import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

from nightwire.schemas.avro.plans.primitives import LIMITS, read_varint, zigzag
from nightwire.schemas.avro.plans.program import Node, Program
from nightwire.schemas.avro.plans.validate import MAX_DEPTH

MAX_EMPTY = 1 << 20
"""Most items in a body that take no bytes, so that a few bytes cannot claim terabytes."""

FLOAT, DOUBLE = struct.Struct("<f"), struct.Struct("<d")
MALFORMED = (
    *(ValueError, IndexError, KeyError, TypeError, OverflowError, ArithmeticError, RecursionError),
    struct.error,
)
"""What reading is seen to raise on bytes that are cut off or are not of their schema."""


class MalformedError(ValueError):
    """Bytes do not follow the plan; the message names the byte, the field and the reason."""

    def __init__(self, at: int, path: str, why: str) -> None:
        super().__init__(f"at byte {at}{', in ' + path.lstrip('.') if path else ''}: {why}")


class ReferenceReader:
    """Reads a body by a plan.  One use each.

    Args:
        plan: What to do.
        body: The bytes.
    """

    def __init__(self, plan: Program, body: Any) -> None:
        self._plan = plan
        self._body = body
        self._empty_items = 0
        self.at = 0

    def value(self) -> Any:
        """Return the value, and leave `at` behind its last byte.

        Raises:
            MalformedError: The bytes break off or do not fit.
        """
        return self._node(self._plan.root, "", 0)

    def _node(self, index: int, path: str, depth: int) -> Any:
        node = self._plan.nodes[index]
        start = self.at
        try:
            return self._finished(node, self._read(node, path, depth))
        except MalformedError:
            raise
        except MALFORMED as error:
            raise MalformedError(start, path, _reason(error)) from error

    def _finished(self, node: Node, value: Any) -> Any:
        match node.get("as"):
            case "float" | "double":
                value = float(value)
            case "string":
                value = str(value, "utf-8")
            case "bytes":
                value = value.encode()
        return (
            value if value is None or "logical" not in node else self._plan.converters[node["logical"]](value)
        )

    def _read(self, node: Node, path: str, depth: int) -> Any:
        if node["op"] in SIMPLE:
            return SIMPLE[node["op"]](self, node)
        match node["op"]:
            case "union":
                return self._node(self._branch(node), path, depth)
            case "scale":
                value = self._node(node["of"], path, depth)
                return None if value is None else float(value) * node["factor"] + node["offset"]
            case "constant":
                return copy.deepcopy(self._plan.constants[node["constant"]])
            case "refuse":
                self._node(node["of"], path, depth)
                raise ValueError(node["why"])
        if depth >= MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
        return self._compound(node, path, depth + 1)

    def _compound(self, node: Node, path: str, depth: int) -> Any:
        if node["op"] == "record":
            return self._record(node, path, depth)
        out: Any = [] if node["op"] == "array" else {}
        while count := self._block():
            size, before = count[1], self.at
            for _ in range(count[0]):
                self._item(node, out, path, depth)
            if size is not None and self.at - before != size:
                raise ValueError(f"a block of {size} bytes takes {self.at - before}")
        return out

    def _item(self, node: Node, out: Any, path: str, depth: int) -> None:
        before = self.at
        if node["op"] == "array":
            out.append(self._node(node["items"], f"{path}[{len(out)}]", depth))
        else:
            key = str(self.take(self.integer(64)), "utf-8")
            out[key] = self._node(node["values"], f"{path}[{key}]", depth)
        self._empty_items += self.at == before
        if self._empty_items > MAX_EMPTY:
            raise ValueError(f"more than {MAX_EMPTY} items of no bytes")

    def _block(self) -> tuple[int, int | None] | None:
        """Return how many items come next, and their bytes where that is said; None at the end."""
        count = self.integer(64)
        if count == 0:
            return None
        return (count, None) if count > 0 else (-count, self.integer(64))

    def _record(self, node: Node, path: str, depth: int) -> dict[str, Any]:
        values = {}
        for field in node["fields"]:
            here = f"{path}.{field['name']}" if field["name"] is not None else path
            value = self._node(field["type"], here, depth)
            if field["name"] is not None:
                values[field["name"]] = value
        for field in node.get("absent", ()):
            values[field["name"]] = copy.deepcopy(self._plan.constants[field["constant"]])
        return {name: values[name] for name in node.get("order", values)}

    def enum(self, node: Node) -> Any:
        """Read an enum's symbol."""
        index = self.integer(32)
        if not 0 <= index < len(node["symbols"]):
            raise ValueError(f"an enum of {len(node['symbols'])} symbols has no number {index}")
        if node["symbols"][index] is None:
            raise ValueError(f"the reader knows no symbol {node['writer_symbols'][index]}")
        return node["symbols"][index]

    def _branch(self, node: Node) -> int:
        index = self.integer(64)
        if not 0 <= index < len(node["branches"]):
            raise ValueError(f"a union of {len(node['branches'])} branches has no number {index}")
        return int(node["branches"][index])

    def boolean(self) -> bool:
        """Read a boolean."""
        byte = self.take(1)[0]
        if byte > 1:
            raise ValueError(f"a boolean is 0 or 1, not {byte}")
        return bool(byte)

    def integer(self, bits: int) -> int:
        """Read a signed number of so many bits."""
        number, self.at = read_varint(self._body, self.at)
        value = zigzag(number)
        if not LIMITS[bits][0] <= value <= LIMITS[bits][1]:
            raise ValueError(f"{value} has more than {bits} bits")
        return value

    def take(self, size: int) -> Any:
        """Take so many bytes off the front."""
        left = len(self._body) - self.at
        if not 0 <= size <= left:
            raise ValueError(f"{size} bytes are wanted, {left} are left")
        self.at += size
        return self._body[self.at - size : self.at]


SIMPLE: Mapping[str, Callable[[ReferenceReader, Node], Any]] = {
    "null": lambda _reader, _node: None,
    "nan": lambda _reader, _node: math.nan,
    "boolean": lambda reader, _node: reader.boolean(),
    "int": lambda reader, _node: reader.integer(32),
    "long": lambda reader, _node: reader.integer(64),
    "float": lambda reader, _node: FLOAT.unpack(reader.take(4))[0],
    "double": lambda reader, _node: DOUBLE.unpack(reader.take(8))[0],
    "bytes": lambda reader, _node: reader.take(reader.integer(64)),
    "string": lambda reader, _node: str(reader.take(reader.integer(64)), "utf-8"),
    "fixed": lambda reader, node: reader.take(node["size"]),
    "enum": lambda reader, node: reader.enum(node),
}


def _reason(error: BaseException) -> str:
    if isinstance(error, IndexError):
        return "the body ends"
    return str(error) if isinstance(error, ValueError) else f"{type(error).__name__} {error}".strip()
