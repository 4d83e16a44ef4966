"""Operations on values row by row: over whole columns where that is exact, else by Python's own function."""

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from nightwire.filters.language.operations import ARITHMETIC, COMPARISONS, OPERATIONS
from nightwire.filters.language.vector.kernels import KERNELS
from nightwire.filters.language.vector.values import (
    NEEDS_PYTHON,
    Array,
    FaultTable,
    TypedValues,
    Value,
    ValueBuilder,
    python,
)

Function = Callable[..., Any]

LARGEST = {"**": 64, "array **": 64, "round_to": 400}
"""The largest second operand, a whole number, of operations that could make a number of any length."""

NO_NUMBER = frozenset({"none", "str"})
BY_TYPE = frozenset({*COMPARISONS, *ARITHMETIC, "np.clip/3"})
"""Operations on several values that look at their types before they look at anything else."""

GROWING = frozenset({"+", "*", "%", "&", "|", "^"})
"""Operations that could make a text, or a number, of any length."""


@cache
def function_of(operation: str) -> Function:
    """Return what Python would call for *operation*."""
    if operation == "array **":
        return operator.pow
    if operation == "np.diff/2":
        return _difference
    name, _, kind = operation.partition(".")
    if name == "np":
        found: Function = getattr(np, kind.partition("/")[0])
        return found
    function = OPERATIONS[operation].function
    if function is None:
        raise LookupError(operation)
    return function


def _difference(later: Any, earlier: Any) -> Any:
    return np.diff(np.array([earlier, later]))[0]


class Apply:
    """Applies operations to values of *size* rows.

    Args:
        faults: Numbers what faults say.
        sql: Whether a number that cannot be is nothing (SQL), no fault.
    """

    def __init__(self, faults: FaultTable, *, sql: bool = False) -> None:
        self._faults = faults
        self._sql = sql

    def __call__(self, operation: str, operands: Sequence[Value], size: int) -> Value:
        """Return what *operation* makes of *operands*."""
        rows = ValueBuilder(size)
        for lanes in product(*[value.lanes for value in operands]):
            where = _overlap(lanes)
            if where is None or where.any():
                self._lanes(operation, lanes, where, rows)
        return rows.value(first_fault(operands))

    def _lanes(
        self, operation: str, lanes: Sequence[TypedValues], where: Array | None, rows: ValueBuilder
    ) -> None:
        kinds = tuple([lane.kind for lane in lanes])
        quick = KERNELS.get(operation)
        answer = quick(kinds, [lane.values for lane in lanes]) if quick else None
        if answer is None:
            self._slowly(operation, lanes, where, rows)
            return
        kind, values, left = answer
        if left is not None:
            left = np.broadcast_to(left, rows.size) if where is None else left & where
            if left.any():
                self._slowly(operation, lanes, left, rows)
                where = ~left if where is None else where & ~left
        rows.lane(kind, values, where)

    def _slowly(
        self, operation: str, lanes: Sequence[TypedValues], where: Array | None, rows: ValueBuilder
    ) -> None:
        """Let Python do it, row by row."""
        chosen = np.arange(rows.size) if where is None else np.flatnonzero(where)
        if not len(chosen):
            return
        if _unbounded(operation, lanes):
            code = (
                self._faults.number("TypeError: texts cannot be computed with") if self._sql else NEEDS_PYTHON
            )
            rows.fault(code, _mask(chosen, rows.size))
            return
        function = function_of(f"sql.{operation}" if self._sql else operation)
        typed = len(lanes) == 1 or operation in BY_TYPE
        odd = typed and not NO_NUMBER.isdisjoint(lane.kind for lane in lanes)
        if odd and self._hopeless(function, lanes, chosen, rows):
            return
        columns = [python(lane, chosen) for lane in lanes]
        if operation in LARGEST:
            chosen, columns = self._small(LARGEST[operation], chosen, columns, rows)
        self._each(function, chosen, columns, rows)

    def _small(
        self, largest: int, chosen: Array, columns: list[list[Any]], rows: ValueBuilder
    ) -> tuple[Array, list[list[Any]]]:
        """Leave out what would grow too long."""
        large = [type(one) is int and abs(one) > largest for one in columns[1]]
        if not any(large):
            return chosen, columns
        rows.fault(NEEDS_PYTHON, _mask(chosen[large], rows.size))
        kept = [not one for one in large]
        return chosen[kept], [
            [one for one, keep in zip(column, kept, strict=True) if keep] for column in columns
        ]

    def _hopeless(
        self, function: Function, lanes: Sequence[TypedValues], chosen: Array, rows: ValueBuilder
    ) -> bool:
        """Return whether values of these types cannot be put together at all; note the fault."""
        try:
            function(*[python(lane, chosen[:1])[0] for lane in lanes])
        except (TypeError, AttributeError) as error:
            rows.fault(self._faults.of(error), _mask(chosen, rows.size))
            return True
        except Exception:  # noqa: BLE001 - a matter of the value, not of its type: seen again row by row
            return False
        return False

    def _each(
        self, function: Function, chosen: Array, columns: Sequence[Iterable[Any]], rows: ValueBuilder
    ) -> None:
        try:
            rows.scatter(
                chosen, map(self._sized, map(function, *columns)) if self._sql else map(function, *columns)
            )
        except Exception:  # noqa: BLE001 - some row has a fault: now one by one
            self._one_by_one(function, chosen, columns, rows)

    def _one_by_one(
        self, function: Function, chosen: Array, columns: Sequence[Iterable[Any]], rows: ValueBuilder
    ) -> None:
        good, values = [], []
        codes = np.zeros(rows.size, np.int32)
        for at, arguments in zip(chosen.tolist(), zip(*columns, strict=True), strict=True):
            try:
                value = function(*arguments)
            except (ArithmeticError, ValueError) as error:
                value = None
                codes[at] = 0 if self._sql else self._faults.of(error)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is this row's fault
                codes[at] = self._faults.of(error)
            if not codes[at]:
                good.append(at)
                values.append(self._sized(value) if self._sql else value)
        rows.fault(codes)
        rows.scatter(np.array(good, np.int64), values)

    @staticmethod
    def _sized(value: Any) -> Any:
        """Return what SQL makes of a number: nothing of NaN, a float of what is beyond 64 bits."""
        if type(value) is int and abs(value) >> 63:
            return float(value)
        return None if type(value) is complex or value != value else value  # NaN


def first_fault(operands: Iterable[Value]) -> Array | None:
    """Return each row's fault of the first operand that has one."""
    found: Array | None = None
    for value in operands:
        if value.fault is not None:
            found = value.fault if found is None else np.where(found, found, value.fault)
    return found


def _unbounded(operation: str, lanes: Sequence[TypedValues]) -> bool:
    kinds = {lane.kind for lane in lanes}
    if "tuple" in kinds:
        return operation != "in"
    return operation in GROWING and "str" in kinds and "none" not in kinds


def _overlap(lanes: Sequence[TypedValues]) -> Array | None:
    where: Array | None = None
    for lane in lanes:
        if lane.where is not None:
            where = lane.where if where is None else where & lane.where
    return where


def _mask(chosen: Array, size: int) -> Array:
    where = np.zeros(size, bool)
    where[chosen] = True
    return where
