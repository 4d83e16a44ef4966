"""Compiling NumPy's functions: of values, of arrays value by value, of arrays as a whole."""

import ast
from collections.abc import Callable, Mapping
from typing import Any

from nightwire.filters.language.operations import NUMPY, REDUCTIONS
from nightwire.filters.language.python.expressions import combine
from nightwire.filters.language.python.lists import array, reduction
from nightwire.filters.language.python.masks import failure
from nightwire.filters.language.python.scope import Known, Points, Scope, Static, Values

SAME = {"absolute": "abs", "amax": "max", "amin": "min"}
"""Functions that have two names."""


def of_numpy(scope: Scope, name: str, node: ast.Call) -> Static:
    """Compile a call of NumPy's function *name*."""
    name = SAME.get(name, name)
    if name in SPECIAL:
        return SPECIAL[name](scope, node)
    values = [scope.value(one) for one in node.args[:2]]
    if f"np.{name}" in REDUCTIONS and values and isinstance(values[0], Points | Values):
        return reduction(scope, f"np.{name}", values[0], node.args[1:], node)
    operation = f"np.{name}/{len(node.args)}"
    if operation not in NUMPY or node.keywords:
        raise scope.build.refuse(f"np.{name} of these arguments cannot be compiled")
    return _one_by_one(scope, operation, values)


def _one_by_one(scope: Scope, operation: str, values: list[Static]) -> Static:
    if not any(isinstance(one, Values) for one in values):
        return scope.build.of(operation, *[scope.plain(one) for one in values])
    arrays = [array(scope, one) if isinstance(one, Values) else one for one in values]
    return combine(scope, operation, *arrays)


def _array(scope: Scope, node: ast.Call) -> Values:
    given = [*node.args[1:], *[word.value for word in node.keywords if word.arg == "dtype"]]
    floats = [ast.unparse(one) in ("float", "np.float64", "'float'") for one in given]
    if not node.args or not all(floats) or len(given) != len(node.args) - 1 + len(node.keywords):
        raise scope.build.refuse(f"`{ast.unparse(node)[:60]}`: only dtype=float can be compiled")
    return array(scope, scope.value(node.args[0]), floats=bool(floats))


def _where(scope: Scope, node: ast.Call) -> Static:
    if len(node.args) != 3 or node.keywords:
        raise scope.build.refuse(
            "np.where takes a condition and two values; to choose points, say flux[mask]"
        )
    values = [scope.value(one) for one in node.args]
    if not any(isinstance(one, Values) for one in values):
        raise scope.build.refuse("np.where of single values: say `a if condition else b`")
    return _one_by_one(scope, "np.where/3", values)


def _clip(scope: Scope, node: ast.Call) -> Static:
    if len(node.args) != 3 or node.keywords:
        raise scope.build.refuse("np.clip takes a value and its two limits: np.clip(flux, 0, None)")
    values = [scope.value(one) for one in node.args]
    if all(one == scope.build.constant(None) for one in values[1:]):
        raise scope.build.refuse("np.clip takes at least one limit")
    return _one_by_one(scope, "np.clip/3", values)


def _isin(scope: Scope, node: ast.Call) -> Static:
    if len(node.args) != 2 or node.keywords:
        raise scope.build.refuse("np.isin takes an array and a list of constants")
    value, among = scope.value(node.args[0]), _choices(scope, scope.value(node.args[1]))
    if not isinstance(value, Values):
        raise scope.build.refuse("np.isin of a single value: say `x in (…)`")
    value = array(scope, value)
    item = scope.build.of("np.isin/2", value.item, scope.build.constant(among))
    guard = scope.build.both(value.guard, failure(scope.build, value.extent, item))
    return Values(value.extent, item, guard, numpy=True)


def _choices(scope: Scope, among: Static) -> tuple[Any, ...]:
    """Return the values to look in; NumPy takes a set for one value."""
    found = among.value if isinstance(among, Known) and isinstance(among.value, tuple) else ()
    kinds = {type(one) for one in found}
    if not (kinds == {str} or (kinds and kinds <= {int, float})):
        raise scope.build.refuse("np.isin looks in a list or tuple of constants, all numbers or all texts")
    return found


def _diff(scope: Scope, node: ast.Call) -> Values:
    if len(node.args) != 1 or node.keywords:
        raise scope.build.refuse("np.diff takes one array")
    value = scope.value(node.args[0])
    whole = array(scope, value)
    extent = scope.build.points("slice", whole.extent, 1, None)
    later = scope.build.points("sift", extent, whole.item)
    earlier = scope.build.points("before", extent, whole.item)
    item = scope.build.of("np.diff/2", later, earlier)
    guard = scope.build.both(whole.guard, failure(scope.build, extent, item))
    return Values(extent, item, guard, numpy=True)


SPECIAL: Mapping[str, Callable[[Scope, ast.Call], Static]] = {
    "array": _array,
    "asarray": _array,
    "where": _where,
    "clip": _clip,
    "diff": _diff,
    "isin": _isin,
}
"""Functions that work neither value by value nor reduce."""
