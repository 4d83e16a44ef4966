"""One encoded alert whose values can be replaced: a new alert costs a copy of its bytes.

The alert is encoded twice, the second time with marked values, whose first byte differs: so the
values are found in the bytes of any codec, without the schema.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from nightwire.schemas.wire import varint

Alert = Mapping[str, Any]
Value = int | float
Values = Mapping[str, Value]
ValuePaths = Mapping[str, Sequence[str]]
"""Dotted paths of a value, by its name; a path goes through arrays, and ends at a null."""

_DOUBLE = struct.Struct("<d")


class Template:
    """An alert whose values at *paths* can be replaced by others of the same length.

    Args:
        encode: Gives the bytes of an alert.
        alert: The alert.
        paths: The values that can be replaced: at most six longs and eight doubles.
    """

    def __init__(self, encode: Callable[[Alert], bytes], alert: Alert, paths: ValuePaths) -> None:
        values = {name: value for name in paths if (value := _first(alert, paths[name])) is not None}
        self._old = {name: spelled(value) for name, value in values.items()}
        bits = {name: _bit(values, name) for name in values}
        marks = {name: _mark(value, bits[name]) for name, value in values.items()}
        plain, marked = encode(alert), encode(replaced(alert, marks, paths))
        spellings = {name: (self._old[name], spelled(mark)) for name, mark in marks.items()}
        self._parts: list[bytes] = []
        self._holes: dict[str, list[int]] = {name: [] for name in values}
        end = 0
        for start, name in _found(plain, marked, spellings):
            self._parts += [plain[end:start], self._old[name]]
            self._holes[name].append(len(self._parts) - 1)
            end = start + len(self._old[name])
        self._parts.append(plain[end:])

    @property
    def names(self) -> set[str]:
        """Names of the values that this alert has."""
        return set(self._old)

    def filled(self, values: Values) -> bytes:
        """Return the alert's bytes with *values*; names that it has not are passed over.

        Raises:
            ValueError: A value takes more or fewer bytes than the template's.
        """
        parts = self._parts.copy()
        for name, value in values.items():
            if name not in self._old:
                continue
            new = spelled(value)
            if len(new) != len(self._old[name]):
                raise ValueError(f"{name} {value} takes {len(new)} bytes, not {len(self._old[name])}")
            for hole in self._holes[name]:
                parts[hole] = new
        return b"".join(parts)


def replaced(alert: Alert, values: Values, paths: ValuePaths) -> dict[str, Any]:
    """Return *alert* with *values* at their *paths*; null and missing ones stay so."""
    found = dict(alert)
    for name, value in values.items():
        for path in paths[name]:
            found = _with(found, path.split("."), value)
    return found


def spelled(value: Value) -> bytes:
    """Return *value* as Avro writes it: an int as a long, a float as a double."""
    return _DOUBLE.pack(value) if isinstance(value, float) else varint(value)


def _with(record: Any, steps: Sequence[str], value: Value) -> Any:
    if isinstance(record, list):
        return [_with(item, steps, value) for item in record]
    if not isinstance(record, Mapping) or record.get(steps[0]) is None:
        return record
    inner = value if len(steps) == 1 else _with(record[steps[0]], steps[1:], value)
    return {**record, steps[0]: inner}


def _first(record: Any, paths: Sequence[str]) -> Value | None:
    """Return the first value at one of *paths*; None without any."""
    for path in paths:
        found = record
        for step in path.split("."):
            if isinstance(found, list):
                found = found[0] if found else None
            found = found.get(step) if isinstance(found, Mapping) else None
        if isinstance(found, int | float):
            return found
    return None


def _bit(values: Values, name: str) -> int:
    """Return which bit marks *name*: no two longs, and no two doubles, have the same."""
    alike = [other for other, value in values.items() if type(value) is type(values[name])]
    return 1 << alike.index(name)


def _mark(value: Value, bit: int) -> Value:
    """Return a value of the same length whose first byte, and no other, differs."""
    if isinstance(value, int):
        return value ^ bit
    spelling = bytearray(_DOUBLE.pack(value))
    spelling[0] ^= bit
    return float(_DOUBLE.unpack(spelling)[0])


def _found(
    plain: bytes, marked: bytes, spellings: Mapping[str, tuple[bytes, bytes]]
) -> Iterator[tuple[int, str]]:
    """Yield where a marked value begins, and its name."""
    for at in _differences(plain, marked):
        yield (
            at,
            next(
                name
                for name, (old, new) in spellings.items()
                if plain.startswith(old, at) and marked.startswith(new, at)
            ),
        )


def _differences(plain: bytes, marked: bytes) -> list[int]:
    import numpy as np

    one, other = np.frombuffer(plain, dtype=np.uint8), np.frombuffer(marked, dtype=np.uint8)
    return [int(at) for at in np.flatnonzero(one != other)]
