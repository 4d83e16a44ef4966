"""Compiling calls: Python's functions, those of math and NumPy, methods; helpers are inlined."""

import ast
from collections.abc import Callable, Mapping
from typing import Any

from nightwire.filters.language.operations import MATH, OPERATIONS, TEXT
from nightwire.filters.language.program import HIGHEST_ORDER
from nightwire.filters.language.python.expressions import combine
from nightwire.filters.language.python.lists import array, distinct, extreme, in_order, length, reduction
from nightwire.filters.language.python.lookup import key_of, looked_up, points_of, top_field
from nightwire.filters.language.python.numpy_calls import of_numpy
from nightwire.filters.language.python.scope import (
    HANDLERS,
    Alert,
    Curve,
    Field,
    Function,
    Helper,
    Known,
    Method,
    Point,
    PointAt,
    Points,
    Scope,
    Static,
    Values,
)
from nightwire.schemas.survey_model import MatchName

Arguments = Mapping[str, ast.expr]

METHODS = frozenset({"mean", "max", "min", "sum", "std", "var", "any", "all", "prod", "argmax", "argmin"})
"""Methods of an array that are NumPy's functions of the same name."""

ONE_VALUE = frozenset({"float", "int", "bool"})

COLLECTIONS: Mapping[str, Callable[[Any], Any]] = {
    "list": tuple,
    "tuple": tuple,
    "set": frozenset,
    "frozenset": frozenset,
}
"""Immutable collections that Python's functions make of constants here."""


def call(scope: Scope, node: ast.Call) -> Static:
    """Compile a call."""
    function = scope.value(node.func)
    if isinstance(function, Helper):
        from nightwire.filters.language.python.statements import (
            inlined,  # which compiles expressions, calls among them
        )

        return inlined(scope, function, node)
    if isinstance(function, Method):
        return _method(scope, function, node)
    if isinstance(function, Function):
        return CALLED[function.module](scope, function.name, node)
    raise scope.build.refuse(f"`{ast.unparse(node.func)[:60]}` cannot be called here")


def _method(scope: Scope, method: Method, node: ast.Call) -> Static:
    owner, name = method.owner, method.name
    if name == "get" and isinstance(owner, Alert | Field | Known | Point | PointAt):
        return _get(scope, owner, node)
    if isinstance(owner, Alert):
        return OF_ALERT[name](scope, node)
    if isinstance(owner, Values) and owner.numpy and name in METHODS:
        return reduction(scope, f"np.{name}", owner, node.args, node)
    if (
        isinstance(owner, Values)
        and owner.numpy
        and name == "astype"
        and ast.unparse(node.args[0]) == "float"
    ):
        return array(scope, owner, floats=True)
    if name in TEXT and isinstance(owner, int | Field):
        _no_keywords(scope, node)
        return _exactly(scope, name, [scope.plain(owner), *[scope.scalar(one) for one in node.args]])
    raise scope.build.refuse(f"`{ast.unparse(node.func)[:60]}` cannot be compiled")


def _light_curve(scope: Scope, node: ast.Call) -> Static:
    _constants(scope, node)
    return Curve()


def _colour(scope: Scope, node: ast.Call) -> Static:
    return scope.build.leaf("colour", *_constants(scope, node, str, str))


def _magnitudes(scope: Scope, node: ast.Call) -> Static:
    extent = scope.build.leaf("magnitudes", *_constants(scope, node, str))
    return Values(extent, scope.build.points("item", extent, "magnitude"), numpy=True)


def _healpix_at(scope: Scope, node: ast.Call) -> Static:
    (order,) = _constants(scope, node, int)
    if not 0 <= order <= HIGHEST_ORDER:
        raise scope.build.refuse(f"there is no HEALPix order {order}; orders are 0 to {HIGHEST_ORDER}")
    return scope.build.leaf("healpix_at", order)


def _constants(scope: Scope, node: ast.Call, *kinds: type) -> list[Any]:
    """Return the arguments of a call, constants of these *kinds*."""
    _no_keywords(scope, node)
    found = [key_of(scope, one) for one in node.args]
    if [type(one) for one in found] != list(kinds) or "" in found:
        words = {str: "a band as constant text, 'r'", int: "a constant whole number"}
        said = " and ".join(words[kind] for kind in kinds) or "nothing"
        raise scope.build.refuse(f"`{ast.unparse(node)[:60]}`: it takes {said}")
    return found


def _match(scope: Scope, node: ast.Call) -> Static:
    _no_keywords(scope, node)
    match [key_of(scope, one) for one in node.args]:
        case [str(catalogue), int() | float() as radius]:
            try:
                return Field(((str(MatchName.of(catalogue, radius)), "[]"),))
            except ValueError as error:
                raise scope.build.refuse(str(error)) from error
    what = ast.unparse(node)[:60]
    raise scope.build.refuse(f"`{what}`: it takes a catalogue's name and a radius [arcsec] as constants")


def _in_moc(scope: Scope, node: ast.Call) -> Static:
    try:
        return Field(((str(MatchName.of_map(*_constants(scope, node, str))), "[]"),))
    except ValueError as error:
        raise scope.build.refuse(str(error)) from error


OF_ALERT: Mapping[str, Callable[[Scope, ast.Call], Static]] = {
    "light_curve": _light_curve,
    "colour": _colour,
    "magnitudes": _magnitudes,
    "healpix_at": _healpix_at,
    "match": _match,
    "in_moc": _in_moc,
}


def _get(scope: Scope, owner: Static, node: ast.Call) -> Static:
    key = node.args[0] if node.args else None
    if isinstance(owner, Known) and isinstance(owner.value, dict) and key is not None:
        default = scope.scalar(node.args[1]) if len(node.args) > 1 else scope.build.constant(None)
        return looked_up(scope, owner.value, scope.scalar(key), default)
    if (
        not isinstance(key, ast.Constant)
        or not isinstance(key.value, str)
        or not isinstance(owner, Alert | Field)
    ):
        raise scope.build.refuse("get takes the name of a field of the alert as text")
    empty = len(node.args) > 1 and isinstance(node.args[1], ast.Dict) and not node.args[1].keys
    how = "get {}" if empty else "get"
    field = (
        top_field(scope, key.value, how) if isinstance(owner, Alert) else scope.step(owner, key.value, how)
    )
    if len(node.args) < 2 or empty:
        return field
    default = scope.scalar(node.args[1])
    there = scope.build.leaf("known", field.path)
    if isinstance(owner, Field):
        there = scope.build.of("and", scope.build.leaf("has", owner.path), there)
    return scope.build.of("if", there, scope.read(field), scope.build.then(field.guard, default))


def _built_in(scope: Scope, name: str, node: ast.Call) -> Static:
    if name in ("min", "max", "sorted"):
        return in_order(scope, node) if name == "sorted" else extreme(scope, name, node)
    if name in COLLECTIONS and len(node.args) < 2 and not node.keywords:
        return _collected(scope, name, scope.value(node.args[0]) if node.args else Known(()))
    _no_keywords(scope, node)
    if name == "len" and len(node.args) == 1:
        return length(scope, scope.value(node.args[0]))
    if name == "round" and len(node.args) == 2:
        return scope.build.of("round_to", *[scope.scalar(one) for one in node.args])
    if name in ("any", "all", "sum"):
        return reduction(scope, name, scope.value(node.args[0]), node.args[1:], node)
    if name == "abs":
        return combine(scope, "abs", scope.value(node.args[0]))
    if name in (*ONE_VALUE, "round"):
        return _exactly(scope, name, [_one(scope, argument) for argument in node.args])
    raise scope.build.refuse(f"{name}(…) cannot be compiled")


def _one(scope: Scope, node: ast.expr) -> int:
    value = scope.value(node)
    if isinstance(value, Values) and value.numpy:
        raise scope.build.refuse("an array is no single number")
    return scope.plain(value)


def _collected(scope: Scope, name: str, value: Static) -> Static:
    """Compile ``set(NAMES)``, ``list(…)`` of constants, or of values of the history."""
    node = scope.build.nodes[value] if isinstance(value, int) else ("",)
    if node[0] == "const" and isinstance(node[1], str):
        value = Known(tuple(node[1]))
    if isinstance(value, Known):
        return Known(COLLECTIONS[name](value.value))
    return distinct(scope, value) if name in ("set", "frozenset") else _listed(scope, value)


def _listed(scope: Scope, value: Static) -> Static:
    if isinstance(value, Values) and not value.numpy and value.lazy:
        sound = scope.build.points("sound", value.extent, value.item)
        return Values(value.extent, value.item, scope.build.both(value.guard, sound))
    if isinstance(value, Field):
        return points_of(scope, value)
    if not isinstance(value, Points | Values):
        raise scope.build.refuse("a list is made of constants, or of alert.history or values of it")
    return value


def _of_math(scope: Scope, name: str, node: ast.Call) -> Static:
    _no_keywords(scope, node)
    operation = f"math.{name}" if len(node.args) == 1 else f"math.{name}/{len(node.args)}"
    if operation not in MATH:
        raise scope.build.refuse(f"math.{name} of {len(node.args)} arguments cannot be compiled")
    return scope.build.of(operation, *[scope.scalar(one) for one in node.args])


def _exactly(scope: Scope, operation: str, operands: list[int]) -> int:
    if len(OPERATIONS[operation].takes) != len(operands):
        raise scope.build.refuse(f"{operation} of {len(operands)} arguments cannot be compiled")
    return scope.build.of(operation, *operands)


def _no_keywords(scope: Scope, node: ast.Call) -> None:
    if node.keywords or any(isinstance(one, ast.Starred) for one in node.args) or not node.args:
        if not node.args and not node.keywords and isinstance(node.func, ast.Attribute):
            return
        raise scope.build.refuse(
            f"`{ast.unparse(node)[:60]}`: arguments by name or by * cannot be compiled here"
        )


CALLED: Mapping[str, Callable[[Scope, str, ast.Call], Static]] = {
    "built-in": _built_in,
    "math": _of_math,
    "np": of_numpy,
}

HANDLERS[ast.Call] = call
