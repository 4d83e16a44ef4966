"""Small values that come again and again, decoded or encoded once."""

import struct
from collections.abc import Callable
from typing import Any, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

REMEMBERED = 1 << 14
"""Values that a memo holds before it starts anew."""

LIMITS = {32: (-(1 << 31), (1 << 31) - 1), 64: (-(1 << 63), (1 << 63) - 1)}


class Memo(dict[Key, Value]):
    """A cache: a dictionary that makes missing values, and holds *most* at most."""

    def __init__(self, make: Callable[[Key], Value], most: int = REMEMBERED) -> None:
        super().__init__()
        self._make = make
        self._most = most

    def __missing__(self, key: Key) -> Value:
        value = self._make(key)
        if len(self) >= self._most:
            self.clear()
        self[key] = value
        return value


def read_varint(body: Any, at: int) -> tuple[int, int]:
    """Return the unsigned number at byte *at*, and where it ends.

    Raises:
        IndexError: The body ends in it.
        ValueError: It has more than 64 bits.
    """
    value = shift = 0
    while True:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than ten bytes")
    if value >> 64:
        raise ValueError("a number of more than 64 bits")
    return value, at


def zigzag(number: int) -> int:
    """Return the signed number that Avro wrote as the unsigned *number*."""
    return (number >> 1) ^ -(number & 1)


def integer(bits: int) -> Callable[[bytes], int]:
    """Return a function of a varint's bytes to a signed number of *bits* bits."""

    def make(raw: bytes) -> int:
        value = zigzag(read_varint(raw, 0)[0])
        if bits == 32 and not -(1 << 31) <= value < 1 << 31:
            raise ValueError(f"{value} has more than 32 bits")
        return value

    return make


def varint(value: int) -> bytes:
    """Return the bytes of a signed number, zigzag and variable-length."""
    number = (value << 1) ^ (value >> 63)
    if number < 0x80:
        return bytes((number,))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def checked_varint(bits: int) -> Callable[[int], bytes]:
    """Return what makes the bytes of an integer.  It raises OverflowError beyond *bits* bits."""
    low, high = LIMITS[bits]

    def make(value: int) -> bytes:
        if not low <= value <= high:
            raise OverflowError(f"{value} has more than {bits} bits")
        return varint(value)

    return make


_FLOAT = struct.Struct("<f")


def float_bytes(value: Any) -> bytes:
    """Return the four bytes of a number, rounded as IEEE 754 says: too large ones are infinite."""
    number = float(value)
    try:
        return _FLOAT.pack(number)
    except OverflowError:
        return _FLOAT.pack(float("inf") if number > 0 else float("-inf"))
