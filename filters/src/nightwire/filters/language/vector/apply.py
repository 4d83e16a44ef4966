"""Operations on values: by kernels over whole columns where exact, else by Python row by row."""

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
"""Largest second operand of operations that could make a number of any length."""

NO_NUMBER = frozenset({"none", "str"})
BY_TYPE = frozenset({*COMPARISONS, *ARITHMETIC, "np.clip/3"})
"""Operations on several values that check their types first of all."""

GROWING = frozenset({"+", "*", "%", "&", "|", "^"})
"""Operations that could make a text, or a number, of any length."""


@cache
def function_of(operation: str) -> Function:
    """Return Python's function for *operation*."""
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
        faults: Numbers the faults.
        sql: Whether a number that cannot be is nothing (SQL), no fault.
    """

    def __init__(self, faults: FaultTable, *, sql: bool = False) -> None:
        self._faults = faults
        self._sql = sql

    def __call__(self, operation: str, operands: Sequence[Value], size: int) -> Value:
        """Return the result of *operation* on *operands*."""
        builder = ValueBuilder(size)
        for typed_values in product(*[value.typed for value in operands]):
            where = _overlap(typed_values)
            if where is None or where.any():
                self._apply(operation, typed_values, where, builder)
        return builder.value(first_fault(operands))

    def _apply(
        self, operation: str, typed_values: Sequence[TypedValues], where: Array | None, builder: ValueBuilder
    ) -> None:
        kinds = tuple([typed.kind for typed in typed_values])
        kernel = KERNELS.get(operation)
        result = kernel(kinds, [typed.values for typed in typed_values]) if kernel else None
        if result is None:
            self._fallback(operation, typed_values, where, builder)
            return
        kind, values, left = result
        if left is not None:
            left = np.broadcast_to(left, builder.size) if where is None else left & where
            if left.any():
                self._fallback(operation, typed_values, left, builder)
                where = ~left if where is None else where & ~left
        builder.add(kind, values, where)

    def _fallback(
        self, operation: str, typed_values: Sequence[TypedValues], where: Array | None, builder: ValueBuilder
    ) -> None:
        """Have Python compute the rows, one by one."""
        chosen = np.arange(builder.size) if where is None else np.flatnonzero(where)
        if not len(chosen):
            return
        if _unbounded(operation, typed_values):
            code = (
                self._faults.number("TypeError: texts cannot be computed with") if self._sql else NEEDS_PYTHON
            )
            builder.fault(code, _mask(chosen, builder.size))
            return
        function = function_of(f"sql.{operation}" if self._sql else operation)
        by_type = len(typed_values) == 1 or operation in BY_TYPE
        odd = by_type and not NO_NUMBER.isdisjoint(typed.kind for typed in typed_values)
        if odd and self._fails_by_type(function, typed_values, chosen, builder):
            return
        columns = [python(typed, chosen) for typed in typed_values]
        if operation in LARGEST:
            chosen, columns = self._small(LARGEST[operation], chosen, columns, builder)
        self._each(function, chosen, columns, builder)

    def _small(
        self, largest: int, chosen: Array, columns: list[list[Any]], builder: ValueBuilder
    ) -> tuple[Array, list[list[Any]]]:
        """Leave out the rows whose result would grow too long."""
        large = [type(one) is int and abs(one) > largest for one in columns[1]]
        if not any(large):
            return chosen, columns
        builder.fault(NEEDS_PYTHON, _mask(chosen[large], builder.size))
        kept = [not one for one in large]
        return chosen[kept], [
            [one for one, keep in zip(column, kept, strict=True) if keep] for column in columns
        ]

    def _fails_by_type(
        self, function: Function, typed_values: Sequence[TypedValues], chosen: Array, builder: ValueBuilder
    ) -> bool:
        """Return whether *function* takes no values of these types; note the fault."""
        try:
            function(*[python(typed, chosen[:1])[0] for typed in typed_values])
        except (TypeError, AttributeError) as error:
            builder.fault(self._faults.of(error), _mask(chosen, builder.size))
            return True
        except Exception:  # noqa: BLE001 - a matter of the value, not of its type: seen again row by row
            return False
        return False

    def _each(
        self, function: Function, chosen: Array, columns: Sequence[Iterable[Any]], builder: ValueBuilder
    ) -> None:
        try:
            builder.scatter(
                chosen, map(self._sized, map(function, *columns)) if self._sql else map(function, *columns)
            )
        except Exception:  # noqa: BLE001 - some row has a fault: now one by one
            self._one_by_one(function, chosen, columns, builder)

    def _one_by_one(
        self, function: Function, chosen: Array, columns: Sequence[Iterable[Any]], builder: ValueBuilder
    ) -> None:
        good, values = [], []
        codes = np.zeros(builder.size, np.int32)
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
        builder.fault(codes)
        builder.scatter(np.array(good, np.int64), values)

    @staticmethod
    def _sized(value: Any) -> Any:
        """Return a number as SQL has it: NULL for NaN, a float beyond 64 bits."""
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


def _unbounded(operation: str, typed_values: Sequence[TypedValues]) -> bool:
    kinds = {typed.kind for typed in typed_values}
    if "tuple" in kinds:
        return operation != "in"
    return operation in GROWING and "str" in kinds and "none" not in kinds


def _overlap(typed_values: Sequence[TypedValues]) -> Array | None:
    where: Array | None = None
    for typed in typed_values:
        if typed.where is not None:
            where = typed.where if where is None else where & typed.where
    return where


def _mask(chosen: Array, size: int) -> Array:
    where = np.zeros(size, bool)
    where[chosen] = True
    return where
