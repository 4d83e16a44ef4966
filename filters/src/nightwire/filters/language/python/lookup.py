"""Compiling look-ups: attributes, fields by name, points by number, slices and masks."""

import ast
import math
from collections.abc import Mapping
from typing import Any

from nightwire.filters.language.builder import Builder
from nightwire.filters.language.operations import CANONICAL, ROOTS
from nightwire.filters.language.python.masks import is_mask, no_mask
from nightwire.filters.language.python.scope import (
    HANDLERS,
    OF_POINTS,
    Alert,
    Curve,
    Field,
    Function,
    Known,
    Method,
    Module,
    Point,
    PointAt,
    Points,
    Scope,
    Static,
    Values,
)

METHODS = frozenset({"get", "light_curve", "colour", "magnitudes", "healpix_at", "match", "in_moc"})
"""Methods of an alert."""

NOT_COLUMNS = {
    "stamps": "pictures are not read by compiled filters",
}


def attribute(scope: Scope, node: ast.Attribute) -> Static:
    """Compile ``alert.flux``, ``point.flux``, ``np.pi`` and methods not yet called."""
    owner = scope.value(node.value)
    if isinstance(owner, Alert):
        return _of_alert(scope, node.attr)
    if isinstance(owner, Module):
        return of_module(scope.build, owner.name, node.attr)
    if isinstance(owner, Point | PointAt):
        return of_point(scope, owner, node.attr)
    if isinstance(owner, Values) and owner.numpy and node.attr == "size":
        return scope.build.then(owner.guard, scope.build.points("count", owner.extent))
    return Method(owner, node.attr)


def _of_alert(scope: Scope, wanted: str) -> Static:
    if wanted in CANONICAL:
        return scope.build.leaf("field", wanted)
    if wanted == "history":
        return Points(scope.build.leaf("points", "history"))
    if wanted in NOT_COLUMNS:
        raise scope.build.refuse(f"alert.{wanted} cannot be compiled: {NOT_COLUMNS[wanted]}")
    if wanted in METHODS:
        return Method(Alert(), wanted)
    raise scope.build.refuse(f"an alert has no column {wanted}; a field of the survey is alert['{wanted}']")


SHARED_CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan}
CONSTANTS: Mapping[str, Mapping[str, float]] = {
    "math": {**SHARED_CONSTANTS, "tau": math.tau},
    "np": SHARED_CONSTANTS,
}
"""The constants of ``math`` and of NumPy, which has no tau, by the module's name in operations."""


def of_module(build: Builder, module: str, wanted: str) -> int | Function:
    """Return what the *module* ``math`` or ``np`` has by the name *wanted*.

    Raises:
        NotCompilable: It is tau of NumPy, which has none.
    """
    if wanted in CONSTANTS[module]:
        return build.constant(CONSTANTS[module][wanted])
    if wanted in CONSTANTS["math"]:
        raise build.refuse(f"NumPy has no {wanted}")
    return Function(module, wanted)


def of_point(scope: Scope, point: Point | PointAt, wanted: str) -> int:
    """Return the node of a point's attribute or field."""
    item = item_of(scope, point.extent, wanted)
    if isinstance(point, Point):
        return item
    return scope.build.then(point.guard, scope.build.points("at", point.extent, item, point.index))


def item_of(scope: Scope, extent: int, wanted: str) -> int:
    """Return the node of the values that the points of *extent* have by the name *wanted*."""
    node = scope.build.nodes[extent]
    if node[0] not in ROOTS:
        return scope.build.points("sift", extent, item_of(scope, node[1], wanted))
    allowed = OF_POINTS.get(node[1])
    if allowed is not None and wanted not in allowed:
        raise scope.build.refuse(
            f"a point of {node[1]} has no column {wanted}; it has {', '.join(sorted(allowed))}"
        )
    return scope.build.points("item", extent, wanted)


def subscript(scope: Scope, node: ast.Subscript) -> Static:
    """Compile ``alert["diaSource"]``, ``curve["flux"]``, ``points[-1]``, ``flux[band == "r"]``."""
    owner = scope.value(node.value)
    if isinstance(owner, Field) and isinstance(node.slice, ast.Slice):
        owner = points_of(scope, owner, indexed=True)
    if isinstance(owner, Values | Points):
        return chosen(scope, owner, node.slice)
    if isinstance(owner, Known) and isinstance(owner.value, dict):
        key = scope.scalar(node.slice)
        return looked_up(scope, owner.value, key, scope.build.of("no_key", key))
    found = _by_key(scope, owner, key_of(scope, node.slice))
    if found is None:
        what = ast.unparse(node)[:60]
        raise scope.build.refuse(f"`{what}`: fields are chosen by name, points by number")
    return found


def _by_key(scope: Scope, owner: Static, key: Any) -> Static | None:
    if isinstance(owner, Curve):
        return _of_curve(scope, key)
    if isinstance(owner, Known) and key is not None:
        return _of_known(scope, owner, key)
    if isinstance(owner, Field) and isinstance(key, int):
        points = points_of(scope, owner, indexed=True)
        return single(scope, points, key)
    return _named(scope, owner, key) if isinstance(key, str) else None


def _named(scope: Scope, owner: Static, key: str) -> Static | None:
    if isinstance(owner, Alert):
        return top_field(scope, key, "[]")
    if isinstance(owner, Field):
        return scope.step(owner, key, "[]")
    return _own_field(scope, owner, key) if isinstance(owner, Point | PointAt) else None


def top_field(scope: Scope, key: str, how: str) -> Field:
    """Return the survey's own field *key* of the alert."""
    if key in CANONICAL or key in OF_POINTS:
        raise scope.build.refuse(f"alert[{key!r}] is no survey's field; what all surveys have is alert.{key}")
    return Field(((key, how),))


def _own_field(scope: Scope, owner: Point | PointAt, key: str) -> int:
    root = owner.extent
    while scope.build.nodes[root][0] not in ROOTS:
        root = scope.build.nodes[root][1]
    if scope.build.nodes[root][1] in OF_POINTS:
        raise scope.build.refuse(
            f"[{key!r}]: the history joins several lists of the survey; take its attributes (.flux), or "
            f"go over the survey's own list, such as alert['prvDiaSources']"
        )
    return of_point(scope, owner, key)


def _of_curve(scope: Scope, key: Any) -> Values:
    if key not in OF_POINTS["light_curve"]:
        raise scope.build.refuse(
            f"a light curve has no {key!r}; it has {', '.join(sorted(OF_POINTS['light_curve']))}"
        )
    extent = scope.build.leaf("points", "light_curve")
    return Values(extent, scope.build.points("item", extent, key), numpy=True)


def _of_known(scope: Scope, owner: Known, key: Any) -> Static:
    try:
        found = owner.value[key]
    except (LookupError, TypeError) as error:
        raise scope.build.refuse(f"{type(error).__name__}: {error}") from error
    return Known(found) if isinstance(found, tuple | frozenset) else scope.build.constant(found)


def looked_up(scope: Scope, table: Mapping[Any, Any], key: int, missing: int) -> int:
    """Return the node of what the dict *table* of constants holds for *key*, else of *missing*."""
    found = missing
    for one, value in reversed(list(table.items())):
        same = scope.build.of("==", key, scope.build.constant(one))
        found = scope.build.of("if", same, scope.build.constant(value), found)
    return scope.build.then(key, found)


def points_of(scope: Scope, field: Field, *, indexed: bool = False) -> Points:
    """Return the records of the array at *field* as points; *indexed*: indexed by ``[ ]``."""
    build = scope.build
    extent = build.leaf("points", field.path)
    guard = build.points("chosen" if field.empty or indexed else "each", extent)
    if indexed and not field.empty:
        guard = build.then(scope.unless_none(field), guard)
    return Points(extent, build.both(scope.asked(field), guard))


HANDLERS[ast.Attribute] = attribute
HANDLERS[ast.Subscript] = subscript


def key_of(scope: Scope, node: ast.expr) -> Any:
    """Return the constant that *node* is; None where it is none."""
    if isinstance(node, ast.Constant):
        return node.value
    value = scope.value(node) if not isinstance(node, ast.Slice | ast.Tuple) else None
    found = scope.build.nodes[value] if isinstance(value, int) else ("",)
    return found[1] if found[0] == "const" else None


def chosen(scope: Scope, owner: Values | Points, index: ast.expr) -> Static:
    """Compile ``points[-1]``, ``flux[np.argmax(flux)]``, ``points[1:]``, ``flux[flux > 0]``."""
    if isinstance(owner, Values) and owner.lazy:
        raise scope.build.refuse("a generator has no [ ]: make a list of it")
    if isinstance(index, ast.Slice):
        return _sliced(scope, owner, index)
    by = scope.value(index)
    by = scope.read(by) if isinstance(by, Field) else by
    if isinstance(by, int):
        node = scope.build.nodes[by]
        whole = node[0] == "const" and type(node[1]) is int
        return single(scope, owner, node[1]) if whole else _by_value(scope, owner, by)
    if isinstance(by, Values) and isinstance(owner, Values) and owner.numpy and by.numpy:
        return _masked(scope, owner, by)
    raise scope.build.refuse(
        f"[{ast.unparse(index)[:60]}]: points are chosen by a whole number, a slice or a mask"
    )


def single(scope: Scope, owner: Values | Points, key: int) -> Static:
    """Return the point number *key*."""
    build = scope.build
    if isinstance(owner, Values):
        return build.then(owner.guard, build.points("at", owner.extent, owner.item, key))
    there = build.points("at", owner.extent, build.constant(True), key)
    return PointAt(owner.extent, key, build.both(owner.guard, there))


def _by_value(scope: Scope, owner: Values | Points, index: int) -> Static:
    """Return the point whose number is computed: ``time[np.argmax(flux)]``."""
    build = scope.build
    if build.extents[index] >= 0 or build.nodes[index][0] == "const":
        raise build.refuse("points are chosen by a whole number, a slice or a mask")
    extent = build.points("nth", owner.extent, index)
    guard = build.both(build.both(owner.guard, index), build.points("chosen", extent))
    if isinstance(owner, Points):
        return PointAt(extent, 0, guard)
    return build.then(guard, build.points("at", extent, build.points("sift", extent, owner.item), 0))


def _sliced(scope: Scope, owner: Values | Points, index: ast.Slice) -> Static:
    ends = [None if end is None else key_of(scope, end) for end in (index.lower, index.upper)]
    step = None if index.step is None else key_of(scope, index.step)
    wrong = [
        end
        for end, given in zip(ends, (index.lower, index.upper), strict=True)
        if given and type(end) is not int
    ]
    if wrong or (index.step is not None and step != 1):
        raise scope.build.refuse(
            f"[{ast.unparse(index)}]: the ends of a slice are constant whole numbers, in steps of 1"
        )
    return cut(scope, owner, scope.build.points("slice", owner.extent, *ends))


def _masked(scope: Scope, owner: Values, mask: Values) -> Static:
    build = scope.build
    if owner.extent != mask.extent:
        raise build.refuse("a mask must be made of the same points as the array that it chooses from")
    if not is_mask(build, mask.item):
        raise build.refuse("a mask is true or false for each point: flux[flux > 0]")
    guard = build.both(build.both(owner.guard, mask.guard), no_mask(build, mask.item))
    owner = Values(owner.extent, owner.item, guard, numpy=True)
    return cut(scope, owner, build.points("where", owner.extent, mask.item))


def cut(scope: Scope, owner: Values | Points, extent: int) -> Points | Values:
    """Return the points of *owner* that *extent* has kept."""
    if isinstance(owner, Points):
        return Points(extent, owner.guard)
    item = scope.build.points("sift", extent, owner.item)
    return Values(extent, item, owner.guard, owner.numpy, owner.lazy)
