"""Compiling Python's expressions, but for calls and lists: names, fields, operators, comparisons, choices."""

import ast
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from nightwire.filters.language._program import is_constant
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

BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
COMPARED: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
UNARY: Mapping[type[ast.unaryop], str] = {
    ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "~",
}  # fmt: skip

NOT_COLUMNS = {
    "stamps": "pictures are not read by compiled filters",
    "healpix_at": "write alert.healpix (order 12), or divide it by 4 for each order less",
    "colour": "its two bands are looked for point by point",
    "magnitudes": "choose from alert.history instead: [p.magnitude for p in alert.history if p.band == 'r']",
}


def constant(scope: Scope, node: ast.Constant) -> Static:
    """Compile a number, text, True, False or None."""
    if not is_constant(node.value):
        raise scope.build.refuse(f"the constant {str(node.value)[:40]} is none that can be compiled")
    return scope.build.constant(node.value)


def name(scope: Scope, node: ast.Name) -> Static:
    """Compile a name: the function's own, the source's, or Python's."""
    found = scope.names.get(node.id)
    if found is None:
        found = scope.top(node.id)
    if found is None:
        raise scope.build.refuse(f"{node.id} is not known here")
    return found


def collection(scope: Scope, node: ast.Tuple | ast.List | ast.Set) -> Static:
    """Compile a tuple, list or set of constants."""
    values = []
    for one in node.elts:
        value = scope.value(one)
        at = scope.build.nodes[value] if isinstance(value, int) else ("",)
        if at[0] != "const":
            raise scope.build.refuse(
                f"`{ast.unparse(node)[:60]}` is made for each alert; what compiles are lists and tuples of "
                f"constants, and [… for p in alert.history]"
            )
        values.append(at[1])
    return Known(frozenset(values) if isinstance(node, ast.Set) else tuple(values))


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
    if wanted in ("get", "light_curve"):
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
    if node[0] != "points":
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
    if isinstance(owner, Values | Points):
        return _chosen(scope, owner, node.slice)
    if isinstance(owner, Known) and isinstance(owner.value, dict):
        key = scope.scalar(node.slice)
        return looked_up(scope, owner.value, key, scope.build.of("no_key", key))
    found = _by_key(scope, owner, _key(scope, node.slice))
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
        points = points_of(scope, owner)
        return _single(scope, points, key)
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
    while scope.build.nodes[root][0] != "points":
        root = scope.build.nodes[root][1]
    if scope.build.nodes[root][1] in OF_POINTS:
        raise scope.build.refuse(
            f"[{key!r}]: the history joins several lists of the survey; take its attributes (.flux), or "
            f"go over the survey's own list, such as alert['prvDiaSources']"
        )
    return of_point(scope, owner, key)


def _key(scope: Scope, node: ast.expr) -> Any:
    """Return the constant that *node* is; None where it is none."""
    if isinstance(node, ast.Constant):
        return node.value
    value = scope.value(node) if not isinstance(node, ast.Slice | ast.Tuple) else None
    found = scope.build.nodes[value] if isinstance(value, int) else ("",)
    return found[1] if found[0] == "const" else None


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


def points_of(scope: Scope, field: Field) -> Points:
    """Return the records of the array at *field*, one point each."""
    extent = scope.build.leaf("points", field.path)
    guard = None if field.empty else scope.build.points("each", extent)
    return Points(extent, scope.build.both(scope.way(field), guard))


def _chosen(scope: Scope, owner: Values | Points, index: ast.expr) -> Static:
    if isinstance(index, ast.Slice):
        return _sliced(scope, owner, index)
    key = _key(scope, index)
    if isinstance(key, int) and not isinstance(key, bool):
        return _single(scope, owner, key)
    mask = scope.value(index)
    if isinstance(mask, Values) and isinstance(owner, Values) and owner.numpy and mask.numpy:
        return _masked(scope, owner, mask)
    raise scope.build.refuse(
        f"[{ast.unparse(index)[:60]}]: points are chosen by a constant number, a slice or a mask"
    )


def _single(scope: Scope, owner: Values | Points, key: int) -> Static:
    build = scope.build
    if isinstance(owner, Values):
        return build.then(owner.guard, build.points("at", owner.extent, owner.item, key))
    there = build.points("at", owner.extent, build.constant(True), key)
    return PointAt(owner.extent, key, build.both(owner.guard, there))


def _sliced(scope: Scope, owner: Values | Points, index: ast.Slice) -> Static:
    ends = [None if end is None else _key(scope, end) for end in (index.lower, index.upper)]
    step = None if index.step is None else _key(scope, index.step)
    wrong = [
        end
        for end, given in zip(ends, (index.lower, index.upper), strict=True)
        if given and type(end) is not int
    ]
    if wrong or (index.step is not None and step != 1):
        raise scope.build.refuse(
            f"[{ast.unparse(index)}]: the ends of a slice are constant whole numbers, in steps of 1"
        )
    return _cut(scope, owner, scope.build.points("slice", owner.extent, *ends))


def _masked(scope: Scope, owner: Values, mask: Values) -> Static:
    build = scope.build
    if owner.extent != mask.extent:
        raise build.refuse("a mask must be made of the same points as the array that it chooses from")
    owner = Values(owner.extent, owner.item, build.both(owner.guard, mask.guard), numpy=True)
    return _cut(scope, owner, build.points("where", owner.extent, mask.item))


def _cut(scope: Scope, owner: Values | Points, extent: int) -> Static:
    if isinstance(owner, Points):
        return Points(extent, owner.guard)
    item = scope.build.points("sift", extent, owner.item)
    return Values(extent, item, owner.guard, owner.numpy, owner.lazy)


def binary(scope: Scope, node: ast.BinOp) -> Static:
    """Compile arithmetic, of values and of arrays."""
    operation = BINARY.get(type(node.op))
    if operation is None:
        raise scope.build.refuse(f"`{ast.unparse(node)[:60]}`: matrix products and shifts cannot be compiled")
    left, right = scope.value(node.left), scope.value(node.right)
    return combine(scope, operation, left, right)


def combine(scope: Scope, operation: str, *operands: Static) -> Static:
    """Return an operation on values, or on arrays value by value."""
    if not any(isinstance(one, Values) for one in operands):
        return scope.build.of(operation, *[scope.plain(one) for one in operands])
    arrays = [one for one in operands if isinstance(one, Values)]
    if not any(one.numpy for one in arrays):
        raise scope.build.refuse("lists cannot be computed with as a whole: make an array, np.array([…])")
    if len({one.extent for one in arrays}) > 1:
        raise scope.build.refuse(
            "two arrays of different points meet; choose the points first, in the same way for both"
        )
    items = [as_item(scope, one) for one in operands]
    guard = reduce(scope.build.both, [_guard(scope, one) for one in operands])
    operation = "array **" if operation == "**" else operation
    lifted = [scope.build.lifted(at, arrays[0].extent) for at in items]
    return Values(arrays[0].extent, scope.build.of(operation, *lifted), guard, numpy=True)


def as_item(scope: Scope, one: Static) -> int:
    """Return the node of the values of an array (of a list made one), or of a plain value."""
    if not isinstance(one, Values):
        return scope.plain(one)
    return one.item if one.numpy else scope.build.points("array", one.extent, one.item)


def _guard(scope: Scope, one: Static) -> int | None:
    if isinstance(one, Values):
        return one.guard
    at = scope.plain(one)
    return None if scope.build.safe[at] else at


def unary(scope: Scope, node: ast.UnaryOp) -> Static:
    """Compile ``not``, ``-``, ``+`` and ``~``."""
    if isinstance(node.op, ast.Not):
        return scope.build.of("not", truth(scope, node.operand))
    return combine(scope, UNARY[type(node.op)], scope.value(node.operand))


def truth(scope: Scope, node: ast.expr) -> int:
    """Return the node of a condition: a value that is asked for its truth alone."""
    if isinstance(node, ast.BoolOp) and not _or_empty(node):
        return _joined(scope, node, [truth(scope, one) for one in node.values])
    value = scope.value(node)
    if (
        isinstance(value, Points | Values)
        and not getattr(value, "lazy", False)
        and not getattr(value, "numpy", False)
    ):
        count = scope.build.points("count", value.extent)
        return scope.build.then(value.guard, scope.build.of(">", count, scope.build.constant(0)))
    if isinstance(value, Values):
        raise scope.build.refuse("an array is neither true nor false: say np.any(…) or np.all(…)")
    return scope.plain(value)


def boolean(scope: Scope, node: ast.BoolOp) -> Static:
    """Compile ``and`` and ``or``; ``field or {}`` gives something empty for nothing."""
    if _or_empty(node):
        first = scope.value(node.values[0])
        if isinstance(first, Field):
            return Field(first.steps, empty=True, guard=scope.way(first))
    return _joined(scope, node, [scope.scalar(one) for one in node.values])


def _joined(scope: Scope, node: ast.BoolOp, parts: list[int]) -> int:
    operation = "and" if isinstance(node.op, ast.And) else "or"
    last = parts.pop()
    while parts:
        last = scope.build.of(operation, parts.pop(), last)
    return last


def _or_empty(node: ast.BoolOp) -> bool:
    return isinstance(node.op, ast.Or) and len(node.values) == 2 and _is_empty(node.values[1])


def _is_empty(node: ast.expr) -> bool:
    return (isinstance(node, ast.Dict) and not node.keys) or (
        isinstance(node, ast.List | ast.Tuple) and not node.elts
    )


def compare(scope: Scope, node: ast.Compare) -> Static:
    """Compile a comparison, a chain of them, ``is None`` and ``in``."""
    parts: list[Static] = []
    left = scope.value(node.left)
    for operator, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(operator, ast.Is | ast.IsNot):
            parts.append(_is(scope, left, operator, right))
            continue
        following = scope.value(right)
        parts.append(_compared(scope, operator, left, following))
        left = following
    if len(parts) == 1:
        return parts[0]
    last = scope.plain(parts.pop())
    while parts:
        last = scope.build.of("and", scope.plain(parts.pop()), last)
    return last


def _compared(scope: Scope, operator: ast.cmpop, left: Static, right: Static) -> Static:
    if isinstance(operator, ast.In | ast.NotIn):
        if isinstance(left, Values):
            raise scope.build.refuse("an array as a whole is in nothing")
        found = scope.build.of("in", scope.plain(left), _choices(scope, right))
        return found if isinstance(operator, ast.In) else scope.build.of("not", found)
    return combine(scope, COMPARED[type(operator)], left, right)


def _choices(scope: Scope, right: Static) -> int:
    if isinstance(right, Known):
        value = right.value
        return scope.build.constant(value if isinstance(value, frozenset) else tuple(value))
    if not isinstance(right, int):
        raise scope.build.refuse("`in` looks in a tuple, list, set or dict of constants")
    return right


def _is(scope: Scope, left: Static, operator: ast.Is | ast.IsNot, right: ast.expr) -> int:
    if not (isinstance(right, ast.Constant) and right.value is None):
        raise scope.build.refuse(
            f"`is {ast.unparse(right)[:40]}`: only `is None` and `is not None` can be compiled"
        )
    none = _is_none(scope, left)
    return none if isinstance(operator, ast.Is) else scope.build.of("not", none)


def _is_none(scope: Scope, value: Static) -> int:
    build = scope.build
    if isinstance(value, Field) and len(value.steps) == 1:
        return build.then(scope.way(value), build.of("not", build.leaf("has", value.path)))
    if isinstance(value, Field):
        return build.of("is_none", scope.read(value))
    if isinstance(value, int):
        return build.of("is_none", value)
    guard = getattr(value, "guard", None)
    return build.then(guard, build.constant(False))


def choice(scope: Scope, node: ast.IfExp) -> Static:
    """Compile ``a if condition else b``."""
    condition = truth(scope, node.test)
    first, second = scope.scalar(node.body), scope.scalar(node.orelse)
    return scope.build.of("if", condition, first, second)


Table = Mapping[type[ast.expr], Callable[[Scope, Any], Static]]

EXPRESSIONS: Table = {
    ast.Constant: constant,
    ast.Name: name,
    ast.Tuple: collection,
    ast.List: collection,
    ast.Set: collection,
    ast.Attribute: attribute,
    ast.Subscript: subscript,
    ast.BinOp: binary,
    ast.UnaryOp: unary,
    ast.BoolOp: boolean,
    ast.Compare: compare,
    ast.IfExp: choice,
}
HANDLERS.update(EXPRESSIONS)
