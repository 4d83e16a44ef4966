"""Compiling calls: Python's functions, those of math and NumPy, methods; helpers are put in."""

import ast
from collections.abc import Callable, Mapping

from nightwire.filters.language._expressions import combine
from nightwire.filters.language._lists import array, length
from nightwire.filters.language._lookup import looked_up, top_field
from nightwire.filters.language._operations import MATH, NUMPY, REDUCTIONS, TEXT
from nightwire.filters.language._scope import HANDLERS, Scope
from nightwire.filters.language._statics import (
    Alert,
    Curve,
    Field,
    Function,
    Helper,
    Known,
    Method,
    Point,
    PointAt,
    Static,
    Values,
)

Arguments = Mapping[str, ast.expr]

METHODS = frozenset({"mean", "max", "min", "sum", "std", "var", "any", "all", "prod", "argmax", "argmin"})
"""Methods of an array that are NumPy's functions of the same name."""

ONE_VALUE = frozenset({"float", "int", "bool"})


def call(scope: Scope, node: ast.Call) -> Static:
    """Compile a call."""
    function = scope.value(node.func)
    if isinstance(function, Helper):
        from nightwire.filters.language._statements import (
            inlined,
        )  # which compiles expressions, calls among them

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
    if isinstance(owner, Alert) and name == "light_curve":
        return Curve()
    if isinstance(owner, Values) and owner.numpy and name in METHODS:
        return _reduction(scope, f"np.{name}", owner, node.args, node)
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
    if name in ("min", "max"):
        return _extreme(scope, name, node)
    _no_keywords(scope, node)
    if name == "len" and len(node.args) == 1:
        return length(scope, scope.value(node.args[0]))
    if name == "round" and len(node.args) == 2:
        return scope.build.of("round_to", *[scope.scalar(one) for one in node.args])
    if name in ("any", "all", "sum"):
        return _reduction(scope, name, scope.value(node.args[0]), node.args[1:], node)
    if name == "abs":
        return combine(scope, "abs", scope.value(node.args[0]))
    if name in ("list", "tuple") and len(node.args) == 1:
        return _listed(scope, scope.value(node.args[0]))
    if name in (*ONE_VALUE, "round"):
        return _exactly(scope, name, [_one(scope, argument) for argument in node.args])
    raise scope.build.refuse(f"{name}(…) cannot be compiled")


def _one(scope: Scope, node: ast.expr) -> int:
    value = scope.value(node)
    if isinstance(value, Values) and value.numpy:
        raise scope.build.refuse("an array is no single number")
    return scope.plain(value)


def _listed(scope: Scope, value: Static) -> Static:
    if isinstance(value, Values) and not value.numpy and value.lazy:
        sound = scope.build.points("sound", value.extent, value.item)
        return Values(value.extent, value.item, scope.build.both(value.guard, sound))
    return value


def _extreme(scope: Scope, name: str, node: ast.Call) -> Static:
    words = {word.arg: word.value for word in node.keywords}
    if len(node.args) > 1 and not words:
        return scope.build.of(
            "smallest" if name == "min" else "largest", *[scope.scalar(one) for one in node.args]
        )
    if set(words) - {"default"} or len(node.args) != 1:
        raise scope.build.refuse(f"{name}(…, key=…) cannot be compiled")
    value = scope.value(node.args[0])
    found = _reduction(scope, name, value, [], node)
    if not words or not isinstance(value, Values):
        return found
    build, default = scope.build, scope.scalar(words["default"])
    filled = build.of(">", build.points("count", value.extent), build.constant(0))
    return build.then(build.both(value.guard, default), build.of("if", filled, found, default))


def _reduction(scope: Scope, name: str, value: Static, more: list[ast.expr], node: ast.Call) -> int:
    """Return the node of one value made of a list's."""
    build = scope.build
    if not isinstance(value, Values):
        raise build.refuse(f"{name}(…) takes a list or generator over the history")
    if value.numpy and not name.startswith("np."):
        name = {"any": "np.any", "all": "np.all"}.get(name, name)
    item = value.item
    if name.startswith("np."):
        value = array(scope, value)
        item = value.item
    extra = _ddof(scope, name, more, node)
    if name == "sum" and more:
        return build.then(value.guard, build.points("fold", scope.scalar(more[0]), value.extent, item))
    return build.then(value.guard, build.points(name, value.extent, item, *extra))


def _ddof(scope: Scope, name: str, more: list[ast.expr], node: ast.Call) -> list[int]:
    takes = REDUCTIONS[name].takes
    given = [word.value for word in node.keywords if word.arg == "ddof"] or more
    known = takes.endswith("k") and all(
        isinstance(one, ast.Constant) and type(one.value) is int for one in given
    )
    others = [word.arg for word in node.keywords if word.arg not in ("ddof", "default")]
    if others or (more and not known and name != "sum"):
        raise scope.build.refuse(f"`{ast.unparse(node)[:60]}`: these arguments of {name} cannot be compiled")
    if not takes.endswith("k"):
        return []
    return [given[0].value if given else 0]  # type: ignore[attr-defined]  # a Constant, as was asked above


def _of_math(scope: Scope, name: str, node: ast.Call) -> Static:
    _no_keywords(scope, node)
    operation = f"math.{name}" if len(node.args) == 1 else f"math.{name}/{len(node.args)}"
    if operation not in MATH:
        raise scope.build.refuse(f"math.{name} of {len(node.args)} arguments cannot be compiled")
    return scope.build.of(operation, *[scope.scalar(one) for one in node.args])


def _of_numpy(scope: Scope, name: str, node: ast.Call) -> Static:
    if name in ("array", "asarray"):
        return _array_call(scope, node)
    values = [scope.value(one) for one in node.args[:2]]
    name = "abs" if name == "absolute" else {"amax": "max", "amin": "min"}.get(name, name)
    if f"np.{name}" in REDUCTIONS and isinstance(values[0], Values):
        return _reduction(scope, f"np.{name}", values[0], node.args[1:], node)
    operation = f"np.{name}/{len(node.args)}"
    if operation not in NUMPY or node.keywords:
        raise scope.build.refuse(f"np.{name} of these arguments cannot be compiled")
    if any(isinstance(one, Values) for one in values):
        return combine(
            scope, operation, *[array(scope, one) if isinstance(one, Values) else one for one in values]
        )
    return scope.build.of(operation, *[scope.plain(one) for one in values])


def _array_call(scope: Scope, node: ast.Call) -> Values:
    given = [*node.args[1:], *[word.value for word in node.keywords if word.arg == "dtype"]]
    floats = [ast.unparse(one) in ("float", "np.float64", "'float'") for one in given]
    if not all(floats) or len(given) != len(node.args) - 1 + len(node.keywords):
        raise scope.build.refuse(f"`{ast.unparse(node)[:60]}`: only dtype=float can be compiled")
    return array(scope, scope.value(node.args[0]), floats=bool(floats))


def _exactly(scope: Scope, operation: str, operands: list[int]) -> int:
    from nightwire.filters.language._operations import OPERATIONS

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
    "np": _of_numpy,
}

HANDLERS[ast.Call] = call
