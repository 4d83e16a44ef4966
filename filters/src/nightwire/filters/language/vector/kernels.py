"""Kernels: operations on whole columns, where NumPy does exactly what Python does.

Each returns the kind and the values of the result, and which rows Python itself has to do (zero
divisors, whole numbers that grow beyond 64 bits, …); or None for types that it does not handle.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nightwire.filters.language.vector.values import DTYPES, EXACT, Array

MembershipResult = tuple[str, Array, Array | None] | None


def one_of(kinds: tuple[str, ...], values: Any) -> MembershipResult:
    """Return Python's ``in``, of texts and whole numbers."""
    if kinds[1] != "tuple" or kinds[0] not in ("str", "int") or not isinstance(values[0], np.ndarray):
        return None
    return "bool", _among(*values), None


def is_in(kinds: tuple[str, ...], values: Any) -> MembershipResult:
    """Return ``np.isin``, of texts among texts and of numbers among numbers."""
    if kinds[1] != "tuple" or not isinstance(values[0], np.ndarray):
        return None
    types = {type(one) for one in values[1]}
    if kinds[0] == "str" and types == {str}:
        return "npbool", _among(*values), None
    if kinds[0] in ("npfloat", "npint") and types <= {int, float} and max(map(abs, values[1])) <= EXACT:
        return "npbool", np.isin(values[0], values[1]), np.abs(values[0].astype(float)) > EXACT
    return None


def _among(values: Array, choices: Any) -> Array:
    return np.fromiter(map(frozenset(choices).__contains__, values.tolist()), bool, len(values))


KernelResult = tuple[str, Any, Array | None] | None
Kernel = Callable[[tuple[str, ...], Any], KernelResult]

WHOLE_ALONE = frozenset({"int", "npint"})
FLOATS = frozenset({"float", "npfloat"})
WHOLE = frozenset({"int", "npint", "bool"})
NUMBERS = FLOATS | WHOLE | {"npbool"}


def _numpy(kinds: tuple[str, ...]) -> bool:
    return any(kind.startswith("np") for kind in kinds)


def _wide(kinds: tuple[str, ...], values: Any) -> Array | None:
    """Return where a whole number is none of the floats exactly."""
    wide = None
    for kind, one in zip(kinds, values, strict=True):
        if kind in ("int", "npint"):
            large = np.asarray((one > EXACT) | (one < -EXACT))
            wide = large if wide is None else wide | large
    return wide


def _compared(function: Callable[[Any, Any], Any]) -> Kernel:
    def kernel(kinds: tuple[str, ...], values: Any) -> KernelResult:
        if kinds[0] in NUMBERS and kinds[1] in NUMBERS:
            mixed = kinds[0] != kinds[1] and not FLOATS.isdisjoint(kinds)
            wide = _wide(kinds, values) if mixed else None
            return "npbool" if _numpy(kinds) else "bool", function(*values), wide
        if kinds == ("str", "str") and function in (operator.eq, operator.ne):
            return "bool", function(*values), None
        return None

    return kernel


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return value.astype(np.int64) if isinstance(value, np.ndarray) and value.dtype == bool else value


def _result(kinds: tuple[str, ...]) -> str:
    return ("np" if _numpy(kinds) else "") + ("int" if FLOATS.isdisjoint(kinds) else "float")


def _arithmetic(function: Callable[[Any, Any], Any]) -> Kernel:
    def kernel(kinds: tuple[str, ...], values: Any) -> KernelResult:
        if not NUMBERS.issuperset(kinds) or "npbool" in kinds:
            return None
        left, right = map(_number, values)
        kind = _result(kinds)
        if kind.endswith("float"):
            return kind, function(left, right), None
        with np.errstate(over="ignore"):
            rough = np.abs(function(np.asarray(left, float), np.asarray(right, float)))
            return kind, function(np.asarray(left), np.asarray(right)), rough >= 2.0**62

    return kernel


def _divided(kinds: tuple[str, ...], values: Any) -> KernelResult:
    if not NUMBERS.issuperset(kinds) or "npbool" in kinds:
        return None
    left, right = (np.asarray(_number(one), float) for one in values)
    if _numpy(kinds):
        return "npfloat", left / right, None
    wide = _wide(kinds, values) if FLOATS.isdisjoint(kinds) else None
    zero = right == 0
    return "float", left / right, zero if wide is None else zero | wide


def _signed(function: Callable[[Any], Any]) -> Kernel:
    def kernel(kinds: tuple[str, ...], values: Any) -> KernelResult:
        if kinds[0] in FLOATS:
            return kinds[0], function(values[0]), None
        if kinds[0] in ("int", "npint"):
            value = np.asarray(values[0])
            return kinds[0], function(value), value == np.iinfo(np.int64).min
        return None

    return kernel


def _bits(function: Callable[[Any, Any], Any]) -> Kernel:
    def kernel(kinds: tuple[str, ...], values: Any) -> KernelResult:
        if set(kinds) <= {"bool", "npbool"}:
            return "npbool" if _numpy(kinds) else "bool", function(*map(np.asarray, values)), None
        if set(kinds) == {"int"}:
            return "int", function(*values), None
        return None

    return kernel


def _inverted(kinds: tuple[str, ...], values: Any) -> KernelResult:
    if kinds[0] in ("npbool", "int", "npint"):
        return kinds[0], ~np.asarray(values[0]), None
    return None


def _float(kinds: tuple[str, ...], values: Any) -> KernelResult:
    if kinds[0] not in NUMBERS:
        return None
    return "float", np.asarray(values[0], float), None


def _bool(kinds: tuple[str, ...], values: Any) -> KernelResult:
    return ("bool", np.asarray(values[0]) != 0, None) if kinds[0] in NUMBERS else None


def _extreme(better: Callable[[Any, Any], Any]) -> Kernel:
    def kernel(kinds: tuple[str, ...], values: Any) -> KernelResult:
        if set(kinds) not in ({"float"}, {"npfloat"}):
            return None
        best, *others = values
        for one in others:
            best = np.where(better(one, best), one, best)
        return kinds[0], best, None

    return kernel


def _root(kinds: tuple[str, ...], values: Any) -> KernelResult:
    if kinds[0] != "float":
        return None
    value = np.asarray(values[0])
    return "float", np.sqrt(value), value < 0


def _ufunc(function: Callable[..., Any], kind: str = "npfloat") -> Kernel:
    def kernel(kinds: tuple[str, ...], values: Any) -> KernelResult:
        if not FLOATS.issuperset(kinds):
            return None
        return kind, function(*map(np.asarray, values)), None

    return kernel


def _tested(function: Callable[..., Any]) -> Kernel:
    def kernel(kinds: tuple[str, ...], values: Any) -> KernelResult:
        return ("bool", function(np.asarray(values[0])), None) if kinds[0] in FLOATS else None

    return kernel


def _array_power(kinds: tuple[str, ...], values: Any) -> KernelResult:
    if kinds[0] != "npfloat" or kinds[1] not in NUMBERS:
        return None
    return "npfloat", np.asarray(values[0]) ** values[1], None


def _difference(kinds: tuple[str, ...], values: Any) -> KernelResult:
    if set(kinds) == {"npbool"}:
        return "npbool", np.not_equal(*values), None
    return _subtracted(kinds, values)


_subtracted = _arithmetic(operator.sub)


def _where(kinds: tuple[str, ...], values: Any) -> KernelResult:
    if not NUMBERS.issuperset(kinds):
        return None
    condition, first, second = map(np.asarray, values)
    whole = FLOATS.isdisjoint(kinds[1:])
    kind = ("npbool" if whole and WHOLE_ALONE.isdisjoint(kinds[1:]) else "npint") if whole else "npfloat"
    return kind, np.where(condition, first, second).astype(DTYPES[kind]), None


def _clipped(kinds: tuple[str, ...], values: Any) -> KernelResult:
    value, *limits = kinds
    if value in FLOATS and (NUMBERS | {"none"}).issuperset(limits) and set(limits) != {"none"}:
        low, high = (None if one is None else np.asarray(one, float) for one in values[1:])
        return "npfloat", np.clip(np.asarray(values[0]), low, high), None
    if WHOLE_ALONE.issuperset(kinds):
        return "npint", np.clip(*map(np.asarray, values)), None
    return None


SAME_ONE_BY_ONE = ("sqrt", "fabs", "floor", "ceil", "trunc", "sign", "square", "abs")
SAME_TWO_BY_TWO = ("minimum", "maximum", "fmin", "fmax", "copysign")

KERNELS: Mapping[str, Kernel] = {
    "<": _compared(operator.lt),
    "<=": _compared(operator.le),
    ">": _compared(operator.gt),
    ">=": _compared(operator.ge),
    "==": _compared(operator.eq),
    "!=": _compared(operator.ne),
    "in": one_of,
    "np.isin/2": is_in,
    "+": _arithmetic(operator.add),
    "-": _arithmetic(operator.sub),
    "*": _arithmetic(operator.mul),
    "/": _divided,
    "neg": _signed(operator.neg),
    "abs": _signed(np.abs),
    "&": _bits(operator.and_),
    "|": _bits(operator.or_),
    "^": _bits(operator.xor),
    "~": _inverted,
    "float": _float,
    "bool": _bool,
    "smallest": _extreme(operator.lt),
    "largest": _extreme(operator.gt),
    "math.sqrt": _root,
    "math.isnan": _tested(np.isnan),
    "math.isinf": _tested(np.isinf),
    "math.isfinite": _tested(np.isfinite),
    "array **": _array_power,
    "np.diff/2": _difference,
    "np.where/3": _where,
    "np.clip/3": _clipped,
    **{f"np.{name}/1": _ufunc(getattr(np, name)) for name in SAME_ONE_BY_ONE},
    **{f"np.{name}/2": _ufunc(getattr(np, name)) for name in SAME_TWO_BY_TWO},
    **{f"np.{name}/1": _ufunc(getattr(np, name), "npbool") for name in ("isnan", "isinf", "isfinite")},
}
"""By operation.  What is not here, Python's own function does, value by value."""
