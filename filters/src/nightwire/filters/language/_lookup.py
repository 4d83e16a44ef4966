"""Compiling what is looked up: attributes, fields by name, points by number, slices and masks."""

import ast
from collections.abc import Mapping
from typing import Any

from nightwire.filters.language._indices import chosen, key_of, single
from nightwire.filters.language._operations import ROOTS
from nightwire.filters.language._scope import HANDLERS, Scope
from nightwire.filters.language._statics import (
    CANONICAL,
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
    Static,
    Values,
)

METHODS = frozenset({"get", "light_curve", "colour", "magnitudes", "healpix_at"})
"""What an alert can be asked for."""

NOT_COLUMNS = {
    "stamps": "pictures are not read by compiled filters",
}


def attribute(scope: Scope, node: ast.Attribute) -> Static:
    """Compile ``alert.flux``, ``point.flux``, ``np.pi`` and methods not yet called."""
    owner = scope.value(node.value)
    if isinstance(owner, Alert):
        return _of_alert(scope, node.attr)
    if isinstance(owner, Module):
        return _of_module(scope, owner, node.attr)
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


CONSTANTS = {"pi": 3.141592653589793, "e": 2.718281828459045, "inf": float("inf"), "nan": float("nan")}
CONSTANTS["tau"] = 2 * CONSTANTS["pi"]


def _of_module(scope: Scope, module: Module, wanted: str) -> Static:
    if wanted in CONSTANTS:
        return scope.build.constant(CONSTANTS[wanted])
    return Function(module.name, wanted)


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
    found = _bykey_of(scope, owner, key_of(scope, node.slice))
    if found is None:
        what = ast.unparse(node)[:60]
        raise scope.build.refuse(f"`{what}`: fields are chosen by name, points by number")
    return found


def _bykey_of(scope: Scope, owner: Static, key: Any) -> Static | None:
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
    """Return the records of the array at *field*, one point each; *indexed* if some are chosen by ``[ ]``."""
    build = scope.build
    extent = build.leaf("points", field.path)
    guard = build.points("chosen" if field.empty or indexed else "each", extent)
    if indexed and not field.empty:
        guard = build.then(scope.unless_none(field), guard)
    return Points(extent, build.both(scope.asked(field), guard))


HANDLERS[ast.Attribute] = attribute
HANDLERS[ast.Subscript] = subscript
