"""Values of many alerts (or points) at once, as Python has them: each of its own type, or a fault.

The rows of a `Value` are spread over `TypedValues`, one for each type: a column of numbers with
gaps has typed values ``float`` and ``none``.  Each row is in exactly one of them, or has a fault.
"""

from collections.abc import Iterable, Sequence
from traceback import format_exception_only
from typing import Any, NamedTuple

import numpy as np

from nightwire.schemas import Column

Array = np.ndarray[Any, Any]

NEEDS_PYTHON = 1
"""Fault of rows that Python itself has to judge: integers beyond 64 bits, and such."""

EXACT = 1 << 53
"""Largest whole number up to which floats are exact."""

TYPES = {
    type(None): "none", bool: "bool", int: "int", float: "float", str: "str", np.str_: "str",
    np.float64: "npfloat", np.bool_: "npbool", np.int64: "npint",
}  # fmt: skip
DTYPES = {"bool": bool, "int": np.int64, "float": float, "npfloat": float, "npbool": bool, "npint": np.int64}
SAME_AS_NUMPY = {"bool": "npbool", "int": "npint", "float": "npfloat"}


class TypedValues(NamedTuple):
    """The rows of one type.

    Attributes:
        kind: ``none``, ``bool``, ``int``, ``float``, ``str``, ``npbool``, ``npint``, ``npfloat``,
            ``tuple``.
        values: An array, of any content elsewhere, or one Python value for all rows.
        where: Which rows; None for all.
    """

    kind: str
    values: Any
    where: Array | None

    def mask(self, size: int) -> Array:
        """Return for each of *size* rows whether it is of this type."""
        return np.ones(size, bool) if self.where is None else self.where

    def within(self, rows: Array) -> Array:
        """Return which of *rows*, a mask, are of this type."""
        return rows if self.where is None else rows & self.where


class Value(NamedTuple):
    """The values of n rows.

    Attributes:
        typed: The rows by type.
        fault: For each row, the number of its fault, 0 where it has none; None where no row has
            one.
    """

    typed: Sequence[TypedValues]
    fault: Array | None = None


class FaultTable:
    """Texts of faults, by number."""

    def __init__(self) -> None:
        self.texts = ["", "needs Python"]
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Return the number of the fault *text*."""
        known = self._numbers.get(text)
        if known is None:
            known = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return known

    def of(self, error: BaseException) -> int:
        """Return the number of the fault with the text of *error*."""
        if type(error).__module__ != "builtins":
            return self.number(format_exception_only(error)[-1].strip()[:300])
        text = str(error)
        return self.number(f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__)


NONE = Value((TypedValues("none", None, None),))


def constant(value: Any) -> Value:
    """Return one value for all rows."""
    return Value((TypedValues(TYPES.get(type(value), "tuple"), value, None),))


class ValueBuilder:
    """Collects the values of n rows, type by type.

    Args:
        size: How many rows.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._typed: dict[str, TypedValues] = {}
        self._fault: Array | None = None

    def add(self, kind: str, values: Any, where: Array | None) -> None:
        """Add rows of one type."""
        if isinstance(values, np.ndarray | np.generic) and not values.ndim:
            values = np.broadcast_to(values, self.size)
        known = self._typed.get(kind)
        if known is None or where is None:
            self._typed[kind] = TypedValues(kind, values, where)
        elif known.where is not None:
            mixed = None if kind == "none" else np.where(where, _array(values), _array(known.values))
            self._typed[kind] = TypedValues(kind, mixed, known.where | where)

    def none(self, where: Array) -> None:
        """Add rows of nothing."""
        if where.any():
            self.add("none", None, where)

    def fault(self, codes: Any, where: Array | None = None) -> None:
        """Add faults, the numbers *codes* *where* there are any."""
        if where is not None:
            codes = np.where(where, codes, 0)
        elif not isinstance(codes, np.ndarray):
            codes = np.full(self.size, codes)
        self._fault = codes if self._fault is None else np.where(self._fault, self._fault, codes)

    def scatter(self, rows: Array, values: Iterable[Any]) -> None:
        """Add Python values, one for each of *rows*; others than `TYPES` need Python."""
        values = list(values)
        kinds = [TYPES.get(type(one), "other") for one in values]
        for kind in set(kinds):
            chosen = [at for at, one in enumerate(kinds) if one == kind] if len(set(kinds)) > 1 else None
            self._some(
                kind,
                rows if chosen is None else rows[chosen],
                values if chosen is None else [values[at] for at in chosen],
            )

    def _some(self, kind: str, rows: Array, values: list[Any]) -> None:
        where = np.zeros(self.size, bool)
        where[rows] = True
        if kind == "none":
            self.add(kind, None, where)
            return
        filled = np.zeros(self.size, DTYPES.get(kind, object))
        try:
            filled[rows] = values if kind in DTYPES else _objects(values)
        except OverflowError:  # whole numbers beyond 64 bits
            large = np.array([abs(one) >> 63 != 0 for one in values])
            self._some(
                kind, rows[~large], [one for one, beyond in zip(values, large, strict=True) if not beyond]
            )
            where[rows[~large]] = False
            self.fault(NEEDS_PYTHON, where)
            return
        if kind == "other":
            self.fault(NEEDS_PYTHON, where)
        else:
            self.add(kind, filled, where)

    def value(self, fault: Array | None = None) -> Value:
        """Return all that was added; rows of *fault* had a fault before."""
        if fault is not None:
            self.fault(fault)
        codes = self._fault if self._fault is not None and self._fault.any() else None
        parts = tuple(self._typed.values())
        if codes is None and len(parts) == 1:
            parts = (parts[0]._replace(where=None),)
        return Value(parts, codes)


def _array(values: Any) -> Any:
    """Return *values* as they are; one text for all as an object, however long it is."""
    return np.asarray(values, object) if isinstance(values, str) else values


def _objects(values: list[Any]) -> Array:
    found = np.empty(len(values), object)
    found[:] = values
    return found


def truth(value: Value, size: int) -> tuple[Array, Array | None]:
    """Return which rows Python takes for true, and the faults; what has a fault is not true."""
    fault = value.fault
    if len(value.typed) == 1 and value.typed[0].where is None:
        return _true(value.typed[0], size), fault
    found = np.zeros(size, bool)
    for typed in value.typed:
        if typed.kind != "none":
            found |= typed.within(_true(typed, size))
    return found, fault


def _true(typed: TypedValues, size: int) -> Array:
    values = typed.values
    if not isinstance(values, np.ndarray):
        return np.full(size, bool(values))
    if values.dtype == bool:
        return np.asarray(values)
    if values.dtype.kind == "U":
        return np.asarray(values != "")
    return np.asarray((values != "") & (values != 0) if typed.kind == "str" else values != 0)


def choose(taken: Array, fault: Array | None, first: Value, second: Value) -> Value:
    """Return *first* where *taken*, else *second*; and *fault* where the condition has one."""
    size = len(taken)
    builder = ValueBuilder(size)
    other = ~taken if fault is None else ~taken & (fault == 0)
    for value, where in ((first, taken), (second, other)):
        for typed in value.typed:
            chosen = typed.within(where)
            if chosen.any():
                builder.add(typed.kind, typed.values, chosen)
        if value.fault is not None:
            builder.fault(value.fault, where)
    return builder.value(fault)


def take(value: Value, index: Array) -> Value:
    """Return the rows of *value* at *index*."""
    parts = [
        TypedValues(
            typed.kind,
            typed.values[index] if isinstance(typed.values, np.ndarray) else typed.values,
            None if typed.where is None else typed.where[index],
        )
        for typed in value.typed
    ]
    fault = None if value.fault is None else value.fault[index]
    if fault is not None and not fault.any():
        fault = None
    kept = [typed for typed in parts if typed.where is None or typed.where.any()]
    if fault is None and len(kept) == 1:
        kept = [kept[0]._replace(where=None)]
    return Value(tuple(kept), fault)


def python(typed: TypedValues, rows: Array) -> list[Any]:
    """Return the *typed* values at *rows* as Python has them."""
    if not isinstance(typed.values, np.ndarray):
        return [typed.values] * len(rows)
    chosen = typed.values[rows]
    return list(chosen) if typed.kind.startswith("np") else chosen.tolist()


def objects(value: Value, index: Array) -> list[Any]:
    """Return the values at *index* as Python has them; what has a fault is None."""
    found: list[Any] = [None] * len(index)
    for typed in value.typed:
        here = np.arange(len(index)) if typed.where is None else np.flatnonzero(typed.where[index])
        for at, one in zip(here.tolist(), python(typed, index[here]), strict=True):
            found[at] = one
    return found


SHORT = 16
"""Longest text that is kept in an array of fixed-width texts. [character]"""


def of_column(column: Column) -> Value:
    """Return the values of a column of scalars."""
    return of_array(column.values, column.null)


def of_array(values: Array, null: Array, *, numpy: bool = False) -> Value:
    """Return *values*, nothing where *null*; of NumPy's types if *numpy*."""
    kind = {"f": "float", "i": "int", "b": "bool"}.get(values.dtype.kind)
    if kind is None:
        return _of_objects(values, null)
    kind = SAME_AS_NUMPY[kind] if numpy else kind
    if not null.any():
        return Value((TypedValues(kind, values, None),))
    return Value((TypedValues(kind, values, ~null), TypedValues("none", None, null)))


def _of_objects(values: Array, null: Array) -> Value:
    there = values if not null.any() else values[~null]
    if set(map(type, there.tolist())) <= {str}:
        texts = compact(there)
        if len(there) == len(values):
            return Value((TypedValues("str", texts, None),))
        filled = np.zeros(len(values), texts.dtype)
        filled[~null] = texts
        return Value((TypedValues("str", filled, ~null), TypedValues("none", None, null)))
    rows = np.arange(len(values))
    builder = ValueBuilder(len(values))
    builder.none(null)
    builder.scatter(rows[~null], there.tolist())
    return builder.value()


def compact(texts: Array) -> Array:
    """Return short texts as fixed-width ones, which compare much faster; long ones as they are."""
    lengths = [*map(len, texts.tolist())]
    if max(lengths, default=0) > SHORT:
        return texts
    found = texts.astype(f"<U{max(lengths, default=1) or 1}")
    same = (np.char.str_len(found) == lengths).all()  # NumPy drops null characters at an end
    return found if same else texts
