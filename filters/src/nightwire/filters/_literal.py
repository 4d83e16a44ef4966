"""Plain values as Python source: how a constant that was made by running code travels.

Pure.  Text, numbers, and tuples, lists, sets, dictionaries and NumPy arrays of these; nothing that would
have to be unpickled.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

MOST = 50_000
"""Longest literal. [character]  A filter's source may have 100,000."""

DEEPEST = 20
"""Most levels of containers in one another."""

DTYPES: Mapping[str, str] = {"<f8": "float", "<i8": "int", "|b1": "bool"}
"""Kinds of arrays that have a name of Python's."""

ADVICE: Mapping[str, str] = {
    "DataFrame": "take the columns that the filter needs, as lists or arrays: frame['x'].to_list()",
    "Series": "write .to_list(), .to_dict() or .to_numpy() behind it",
    "Index": "write .to_list() behind it",
    "Table": "take the columns that the filter needs, as lists: list(table['x'])",
    "Column": "write .tolist() behind it",
    "MaskedArray": "write .filled(…) behind it",
    "Quantity": "write .to_value('unit') behind it",
    "Angle": "write .to_value('deg') behind it",
    "Time": "write .mjd behind it",
    "SkyCoord": "keep .ra.deg and .dec.deg, and make the SkyCoord of them by a constant",
    "Path": "a filter reads no files: read it in the notebook, and let the filter use what was in it",
    "PosixPath": "a filter reads no files: read it in the notebook, and let the filter use what was in it",
    "Counter": "write dict(…) around it",
    "defaultdict": "write dict(…) around it, and ask it by .get(key, default)",
    "function": "define it by def, at the top level",
    "partial": "write a function by def instead",
    "generator": "write list(…) around it",
    "module": "import it at the top level",
}
"""What to do with a value that does not travel, by the name of its type or of a base."""


class NotPlainError(ValueError):
    """A value that cannot be written as a literal; the message says what it is and what to do."""


def literal(value: Any) -> str:
    """Return an expression whose value is *value*; one of NumPy's arrays names ``numpy``.

    Raises:
        NotPlainError: It is no plain value, or its literal is longer than 50,000 characters.
    """
    text = _text(value, DEEPEST)
    if len(text) > MOST:
        raise NotPlainError(
            f"has {len(text):,} characters as a literal, limit is {MOST:,}: keep only what the filter needs"
        )
    return text


def assignment(name: str, value: Any) -> str:
    """Return the code that gives *name* this *value*.

    Raises:
        NotPlainError: As for `literal`.
    """
    text = literal(value)
    return f"{'import numpy' + chr(10) if 'numpy.array(' in text else ''}{name} = {text}"


def _text(value: Any, depth: int) -> str:
    if depth == 0:
        raise NotPlainError(f"is nested deeper than {DEEPEST} levels, or holds itself")
    if isinstance(value, np.generic) and value.dtype.kind in "biufcSU":
        value = value.item()
    if type(value) in (float, complex):
        return _number(value)
    if value is None or type(value) in (bool, int, str, bytes):
        return repr(value)
    if (write := _CONTAINERS.get(type(value))) is not None:
        return write(value, depth - 1)
    raise NotPlainError(_complaint(value))


def _number(value: float | complex) -> str:
    if isinstance(value, complex):
        return f"complex({_number(value.real)}, {_number(value.imag)})"
    return repr(value) if math.isfinite(value) else f"float({str(value)!r})"


def _joined(items: Any, depth: int) -> str:
    return ", ".join(_text(item, depth) for item in items)


def _tuple(value: tuple[Any, ...], depth: int) -> str:
    return f"({_joined(value, depth)}{',' if len(value) == 1 else ''})"


def _set(value: set[Any], depth: int) -> str:
    return f"{{{', '.join(sorted(_text(item, depth) for item in value))}}}" if value else "set()"


def _frozenset(value: frozenset[Any], depth: int) -> str:
    return f"frozenset({_set(set(value), depth)})" if value else "frozenset()"


def _dict(value: dict[Any, Any], depth: int) -> str:
    return f"{{{', '.join(f'{_text(k, depth)}: {_text(v, depth)}' for k, v in value.items())}}}"


def _array(value: np.ndarray[Any, Any], depth: int) -> str:
    if value.dtype.kind not in "biufcSU":
        raise NotPlainError(
            f"is an array of {value.dtype}: only arrays of numbers, truth values or text travel"
        )
    kind = DTYPES.get(value.dtype.str, repr(value.dtype.str))
    if 0 in value.shape:
        return f"numpy.array([], dtype={kind}).reshape({value.shape!r})"
    return f"numpy.array({_text(value.tolist(), depth)}, dtype={kind})"


_CONTAINERS: Mapping[type, Callable[[Any, int], str]] = {
    list: lambda value, depth: f"[{_joined(value, depth)}]",
    range: lambda value, _: repr(value),
    tuple: _tuple,
    set: _set,
    frozenset: _frozenset,
    dict: _dict,
    np.ndarray: _array,
}


def _complaint(value: Any) -> str:
    kinds = [kind.__name__ for kind in type(value).__mro__]
    advice = next((ADVICE[kind] for kind in kinds if kind in ADVICE), None)
    what = f"is a {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")
    return f"{what}; {advice or 'only numbers, text, and lists, sets, dictionaries or arrays of them travel'}"
