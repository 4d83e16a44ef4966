"""Reductions of each alert's points: sums, extremes, means, to the bit as Python and NumPy.

Alerts with equally many points are put into one matrix, along whose rows NumPy does what it does to
an array.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from nightwire.filters.language.vector.apply import Apply, function_of
from nightwire.filters.language.vector.ragged import RaggedPoints, broadcast, first_of_each, of_first
from nightwire.filters.language.vector.values import (
    EXACT,
    NEEDS_PYTHON,
    SAME_AS_NUMPY,
    TYPES,
    Array,
    FaultTable,
    TypedValues,
    Value,
    ValueBuilder,
    objects,
    truth,
)

Along = Callable[[float, Array], tuple[Any, Array | None]]
"""Of a further argument and a matrix: a value for each row, and the rows left to Python."""

LARGEST_SUM = 2.0**62
"""Sums of whole numbers beyond may not fit 64 bits."""

QUANTILES = frozenset({"percentile", "quantile", "nanpercentile"})
WITH_DDOF = frozenset({"std", "var", "nanstd", "nanvar"})

NUMPY = (
    "sum", "mean", "max", "min", "any", "all", "prod", "nansum", "nanmean", "nanmax", "nanmin", "argmax",
    "argmin", "count_nonzero", "ptp", "median", "std", "var", "nanstd", "nanvar", *sorted(QUANTILES),
)  # fmt: skip

COUNTED = TYPES[type(np.count_nonzero(np.zeros(1)))]
"""Kind of counts: a whole number of Python's, or, in later versions, of NumPy's."""


def of_numpy(name: str, extra: float, values: Array, **axis: int) -> Any:
    """Return what NumPy's function *name* makes of *values*."""
    function = getattr(np, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in WITH_DDOF:
            return function(values, ddof=extra, **axis)
        return function(values, extra, **axis) if name in QUANTILES else function(values, **axis)


def _along(name: str) -> Along:
    def apply(extra: float, matrix: Array) -> tuple[Any, Array | None]:
        return of_numpy(name, extra, matrix, axis=1), None

    return apply


def _sum(extra: float, matrix: Array) -> tuple[Any, Array | None]:
    return np.cumsum(matrix, axis=1)[:, -1] + 0.0, None


def _whole_sum(extra: float, matrix: Array) -> tuple[Any, Array | None]:
    return matrix.sum(axis=1, dtype=np.int64), too_large(matrix)


def too_large(matrix: Array) -> Array | None:
    """Return the rows of whole numbers whose sum may not fit 64 bits; None where all do."""
    if matrix.dtype == bool:
        return None
    return np.asarray(np.abs(matrix.astype(float)).sum(axis=1) >= LARGEST_SUM)


def _extreme(function: Any) -> Along:
    def apply(extra: float, matrix: Array) -> tuple[Any, Array | None]:
        found = function(matrix, axis=1)
        return found, np.isnan(found) | (found == 0)  # which of 0.0 and -0.0 came first?

    return apply


def _whole_extreme(function: Any) -> Along:
    return lambda extra, matrix: (function(matrix, axis=1), None)


OF_FLOATS: Mapping[str, Along] = {
    **{f"np.{name}": _along(name) for name in NUMPY},
    "max": _extreme(np.max),
    "min": _extreme(np.min),
    **(
        {} if sys.version_info >= (3, 12) else {"sum": _sum}
    ),  # since then, Python corrects what rounding loses
}
OF_WHOLE: Mapping[str, Along] = {
    **{f"np.{name}": _along(name) for name in NUMPY},
    "max": _whole_extreme(np.max),
    "min": _whole_extreme(np.min),
    "sum": _whole_sum,
}


def along(name: str, kind: str) -> Along | None:
    """Return the reduction *name* along a matrix of a *kind* of values, if there is one."""
    if kind in ("float", "npfloat"):
        return OF_FLOATS.get(name)
    if kind in ("npint", "npbool") or (kind in ("int", "bool") and not name.startswith("np.")):
        return OF_WHOLE.get(name)
    return None


def kind_of(name: str, kind: str, values: Any) -> str:
    """Return the kind of the reduction *name* of values of a *kind*."""
    if name == "np.count_nonzero":
        return COUNTED
    if name.startswith("np."):
        return SAME_AS_NUMPY[{"f": "float", "i": "int", "b": "bool"}[np.asarray(values).dtype.kind]]
    return {"bool": "int", "npbool": "npint"}.get(kind, kind) if name == "sum" else kind


def any_or_all(name: str, ragged: RaggedPoints, item: Value) -> Value:
    """Return ``any`` or ``all``, which ask no further once they know."""
    true, _ = truth(item, len(ragged))
    fault = ragged.faulty(item)
    decides = true if name == "any" else ~true
    alerts, first = first_of_each(ragged, decides if fault is None else decides | (fault != 0))
    found = np.full(len(ragged.lengths), name == "all")
    found[alerts] = true[first]
    builder = ValueBuilder(len(found))
    if fault is None:
        builder.add("bool", found, None)
        return builder.value()
    codes = np.zeros(len(found), np.int32)
    codes[alerts] = fault[first]
    builder.add("bool", found, codes == 0)
    return builder.value(codes)


def reduced(name: str, ragged: RaggedPoints, item: Value, faults: FaultTable, extra: float = 0) -> Value:
    """Return the reduction *name* of each alert's points."""
    builder = ValueBuilder(len(ragged.lengths))
    fault = ragged.faulty(item)
    codes = np.zeros(builder.size, np.int32) if fault is None else of_first(ragged, fault)
    if fault is not None and name in AS_IT_GOES:
        codes = _sooner(codes, fault, ragged, item, function_of(name), faults)
    left = codes == 0
    typed = _main(item, len(ragged))
    function = along(name, typed.kind) if typed is not None else None
    if typed is not None and function is not None:
        with suppress(TypeError, ValueError):  # no such percentile: each list tells
            left &= ~_by_matrix(function, name, extra, typed, ragged, left, builder)
    one = partial(_one, name, extra)
    _nothing(one, left & (ragged.lengths == 0), builder, faults)
    chosen = np.flatnonzero(left & (ragged.lengths > 0))
    _row_by_row(one, _lists(ragged, item, chosen), chosen, builder, faults)
    return builder.value(codes if codes.any() else None)


def folded(start: Value, ragged: RaggedPoints, item: Value, faults: FaultTable) -> Value:
    """Return *start* and then each of the points added, in their order."""
    builder = ValueBuilder(len(ragged.lengths))
    fault = ragged.faulty(item)
    codes = np.zeros(builder.size, np.int32) if fault is None else of_first(ragged, fault)
    if fault is not None:
        codes = _sooner(codes, fault, ragged, item, partial(reduce, add), faults, start)
    if start.fault is not None:
        codes = np.where(start.fault, start.fault, codes)
    left = codes == 0
    typed = _main(item, len(ragged))
    if typed is not None and len(start.typed) == 1:
        left &= ~_added_up(start.typed[0], typed, ragged, left, builder)
    chosen = np.flatnonzero(left)
    lists = zip(objects(start, chosen), _lists(ragged, item, chosen), strict=True)
    _row_by_row(partial(reduce, add), [[one, *some] for one, some in lists], chosen, builder, faults)
    return builder.value(codes if codes.any() else None)


def among(value: Value, ragged: RaggedPoints, item: Value, apply: Apply) -> Value:
    """Return whether *value* is among each alert's points; NaN, perhaps identical, needs Python."""
    found = any_or_all("any", ragged, apply("==", [broadcast(ragged, value), item], len(ragged)))
    builder = ValueBuilder(len(ragged.lengths))
    if value.fault is not None:
        builder.fault(value.fault)
    for typed in value.typed:
        if typed.kind in ("float", "npfloat"):
            nan = np.isnan(np.broadcast_to(typed.values, builder.size))
            builder.fault(NEEDS_PYTHON, typed.within(nan))
    faulty = builder.value(found.fault).fault
    for typed in found.typed:
        builder.add(typed.kind, typed.values, None if faulty is None else faulty == 0)
    return builder.value()


def distinct(ragged: RaggedPoints, item: Value, faults: FaultTable) -> Value:
    """Return how many different points each alert has; NaN, perhaps identical, needs Python."""
    builder = ValueBuilder(len(ragged.lengths))
    fault = ragged.faulty(item)
    codes = np.zeros(builder.size, np.int32) if fault is None else of_first(ragged, fault)
    chosen = np.flatnonzero(codes == 0)
    lists = [set(some) for some in _lists(ragged, item, chosen)]
    nan = np.array([any(one != one for one in some) for some in lists], bool)
    codes[chosen[nan]] = NEEDS_PYTHON
    builder.scatter(chosen[~nan], [len(some) for some, odd in zip(lists, nan, strict=True) if not odd])
    return builder.value(codes if codes.any() else None)


AS_IT_GOES = frozenset({"sum", "max", "min"})
"""Reductions that take value after value; NumPy takes all together."""


def _sooner(
    codes: Array, fault: Array, ragged: RaggedPoints, item: Value, function: Callable[[list[Any]], Any],
    faults: FaultTable, start: Value | None = None,
) -> Array:  # fmt: skip
    """Return *codes*, with the faults of reductions that fail before a point with a fault."""
    found = codes.copy()
    alerts, first = first_of_each(ragged, fault != 0)
    begun = [None] * len(alerts) if start is None else objects(start, alerts)
    for alert, end, one in zip(alerts.tolist(), first.tolist(), begun, strict=True):
        values = objects(item, np.arange(ragged.offsets[alert], end))
        values = values if start is None else [one, *values]
        try:
            function(values or [0])
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this alert's fault
            found[alert] = faults.of(error)
    return found


def _lists(ragged: RaggedPoints, item: Value, chosen: Array) -> list[list[Any]]:
    """Return the values of each of the *chosen* alerts."""
    lengths = ragged.lengths[chosen]
    ends = np.cumsum(lengths)
    first = np.repeat(ragged.offsets[chosen] - ends + lengths, lengths)
    values = objects(item, first + np.arange(len(first)))
    spans = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    return [values[begin:end] for begin, end in spans]


def _main(item: Value, size: int) -> TypedValues | None:
    """Return the typed numbers that most points are among, their values an array."""
    typed_values = [typed for typed in item.typed if typed.kind not in ("none", "str", "tuple")]
    if not typed_values:
        return None
    found = max(typed_values, key=lambda typed: size if typed.where is None else typed.where.sum())
    return found._replace(values=np.broadcast_to(np.asarray(found.values), size))


def _by_matrix(
    function: Along,
    name: str,
    extra: float,
    typed: TypedValues,
    ragged: RaggedPoints,
    left: Array,
    builder: ValueBuilder,
) -> Array:
    """Reduce the alerts whose points are all in *typed*; return which were."""
    able = _whole(typed, ragged, left)
    found: Array | None = None
    for alerts, points in _groups(ragged, able):
        values, failed = function(extra, typed.values[points])
        if failed is not None:
            able[alerts[failed]] = False
        if found is None:
            found = np.zeros(builder.size, np.asarray(values).dtype)
        found[alerts] = values
    if found is not None:
        builder.add(kind_of(name, typed.kind, found), found, able)
    return able


def _added_up(
    start: TypedValues, typed: TypedValues, ragged: RaggedPoints, left: Array, builder: ValueBuilder
) -> Array:
    """Add up the alerts whose points are all in *typed*, numbers of Python's; return which were."""
    whole = "bool", "int"
    if start.kind not in (*whole, "float") or typed.kind not in (*whole, "float"):
        return np.zeros(builder.size, bool)
    kind = "float" if "float" in (start.kind, typed.kind) else "int"
    able = _whole(typed, ragged, left)
    found = np.zeros(builder.size, float if kind == "float" else np.int64)
    first = np.broadcast_to(np.asarray(start.values), builder.size)
    for alerts, points in _groups(ragged, able):
        parts = first[alerts][:, None], typed.values[points]
        failed = np.zeros(len(alerts), bool)
        for part in parts:
            if part.dtype.kind == "i":
                failed |= np.abs(part.astype(float)).sum(axis=1) >= EXACT
        matrix = np.concatenate([part.astype(found.dtype) for part in parts], axis=1)
        found[alerts] = np.cumsum(matrix, axis=1)[:, -1]
        able[alerts[failed]] = False
    if able.any():
        builder.add(kind, found, able)
    return able


def _whole(typed: TypedValues, ragged: RaggedPoints, left: Array) -> Array:
    """Return which of the alerts *left* have points, all in *typed*."""
    able = left & (ragged.lengths > 0)
    if typed.where is not None:
        able[ragged.owners[~typed.where]] = False
    return able


def _groups(ragged: RaggedPoints, able: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the groups of *ragged*, of the alerts *able* alone."""
    for alerts, points in ragged.groups:
        whole = able[alerts]
        if whole.all():
            yield alerts, points
        elif whole.any():
            yield alerts[whole], points[whole]


def _nothing(
    function: Callable[[list[Any]], Any], where: Array, builder: ValueBuilder, faults: FaultTable
) -> None:
    """Reduce the empty lists, which are all alike."""
    if not where.any():
        return
    try:
        found = function([])
    except Exception as error:  # noqa: BLE001 - whatever it is, it is these alerts' fault
        builder.fault(faults.of(error), where)
    else:
        chosen = np.flatnonzero(where)
        builder.scatter(chosen, [found] * len(chosen))


def _row_by_row(
    function: Any, lists: list[Any], chosen: Array, builder: ValueBuilder, faults: FaultTable
) -> None:
    good, values = [], []
    codes = np.zeros(builder.size, np.int32)
    for at, one in zip(chosen.tolist(), lists, strict=True):
        if any(type(value) is str for value in one):
            codes[at] = NEEDS_PYTHON  # texts can grow
            continue
        try:
            values.append(function(one))
            good.append(at)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this alert's fault
            codes[at] = faults.of(error)
    if codes.any():
        builder.fault(codes)
    builder.scatter(np.array(good, np.int64), values)


def _one(name: str, extra: float, values: list[Any]) -> Any:
    """Reduce one list as Python or NumPy does."""
    module, _, function = name.rpartition(".")
    return of_numpy(function, extra, np.array(values)) if module else function_of(name)(values)
