"""Compiling expressions: names, operators, comparisons, choices, f-strings; no calls or lists."""

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Any

from nightwire.filters.language.operations import FORMAT
from nightwire.filters.language.program import MAX_CHOICES, NotCompilable, is_constant
from nightwire.filters.language.python.masks import failure, no_bits
from nightwire.filters.language.python.scope import (
    HANDLERS,
    Distinct,
    Field,
    Formatted,
    Known,
    Points,
    Scope,
    Static,
    Unknown,
    Values,
)
from nightwire.schemas.survey_model import MatchName

BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
UNARY: Mapping[type[ast.unaryop], str] = {
    ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "~",
}  # fmt: skip


def constant(scope: Scope, node: ast.Constant) -> Static:
    """Compile a number, text, True, False or None."""
    if not is_constant(node.value):
        text = hex(node.value) if type(node.value) is int else str(node.value)  # any length, without limit
        raise scope.build.refuse(f"the constant {text[:40]} is none that can be compiled")
    return scope.build.constant(node.value)


def literal(scope: Scope, node: ast.expr) -> Any:
    """Return the value of a constant; one that is written out needs no node: there may be 100,000.

    Raises:
        LookupError: It is none.
    """
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    written = node.operand if isinstance(node, ast.UnaryOp) and negative else node
    if isinstance(written, ast.Constant) and is_constant(written.value):
        if not negative:
            return written.value
        if isinstance(written.value, int | float):
            return -written.value
    value = scope.value(node)
    at = scope.build.nodes[value] if isinstance(value, int) else ("",)
    if at[0] != "const":
        raise LookupError
    return at[1]


def name(scope: Scope, node: ast.Name) -> Static:
    """Compile a name: the function's own, the source's, or Python's."""
    found = scope.names.get(node.id)
    if found is None:
        found = scope.top(node.id)
    if found is None:
        raise scope.build.refuse(f"{node.id} is not known here")
    if isinstance(found, Unknown):
        raise NotCompilable  # said where it was to be made
    return found


def collection(scope: Scope, node: ast.Tuple | ast.List | ast.Set) -> Static:
    """Compile a tuple, list or set of constants."""
    try:
        values = [literal(scope, one) for one in node.elts]
    except LookupError:
        raise scope.build.refuse(
            f"`{ast.unparse(node)[:60]}` is made for each alert; what compiles are lists and tuples of "
            f"constants, and [… for p in alert.history]"
        ) from None
    return Known(frozenset(values) if isinstance(node, ast.Set) else tuple(values))


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
    guard = scope.build.both(guard, no_bits(scope.build, operation, items))
    operation = "array **" if operation == "**" else operation
    extent = arrays[0].extent
    item = scope.build.of(operation, *[scope.build.broadcast(at, extent) for at in items])
    return Values(extent, item, scope.build.both(guard, failure(scope.build, extent, item)), numpy=True)


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
    if isinstance(value, Field) and MatchName.is_record(value.path):
        return scope.build.then(scope.asked(value), scope.build.leaf("has", value.path))
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
            return Field(first.steps, empty=True, guard=scope.asked(first))
    *before, last = node.values
    asked = _there if isinstance(node.op, ast.And) else Scope.scalar
    return _joined(scope, node, [*(asked(scope, one) for one in before), scope.scalar(last)])


def _there(scope: Scope, node: ast.expr) -> int:
    """Return the node of a value before ``and``; of a match True, or None where there is none."""
    value = scope.value(node)
    if not isinstance(value, Field) or not MatchName.is_record(value.path):
        return scope.plain(value)
    true, none = scope.build.constant(True), scope.build.constant(None)
    there = scope.build.of("if", scope.build.leaf("has", value.path), true, none)
    return scope.build.then(scope.asked(value), there)


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
    ast.BinOp: binary,
    ast.UnaryOp: unary,
    ast.BoolOp: boolean,
    ast.IfExp: choice,
}
HANDLERS.update(EXPRESSIONS)

COMPARED: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


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
        found = _contained(scope, _text(left), _text(right))
        return found if isinstance(operator, ast.In) else scope.build.of("not", found)
    return combine(scope, COMPARED[type(operator)], _text(left), _text(right))


def _text(value: Static) -> Static:
    """Return *value*; of an f-string its text, which may be compared."""
    return value.text if isinstance(value, Formatted) else value


def _contained(scope: Scope, left: Static, right: Static) -> int:
    build, value = scope.build, scope.plain(left)
    if not isinstance(right, Distinct | Values) or getattr(right, "numpy", False):
        return build.of("in", value, _choices(scope, right))
    if build.extents[value] >= 0:
        raise build.refuse("for each point to look through all of them cannot be compiled")
    return build.then(build.both(value, right.guard), build.points("among", value, right.extent, right.item))


def _choices(scope: Scope, right: Static) -> int:
    if isinstance(right, Known):
        if len(right.value) > MAX_CHOICES:
            raise scope.build.refuse(f"`in` looks among {MAX_CHOICES:,} constants at most")
        return scope.build.constant(frozenset(right.value))
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


HANDLERS[ast.Compare] = compare


def formatted(scope: Scope, node: ast.JoinedStr) -> Static:
    """Compile an f-string."""
    build = scope.build
    parts = [_formatted(scope, one) for one in node.values]
    text = build.of("joined", *parts, *[build.constant("")] * (2 - len(parts)))
    return Formatted(text, None if build.safe[text] else text)


def _formatted(scope: Scope, node: ast.expr) -> int:
    if not isinstance(node, ast.FormattedValue):
        return scope.scalar(node)
    value, how = scope.scalar(node.value), "".join(_constant_texts(node.format_spec))
    if node.conversion != -1 or not FORMAT.fullmatch(how):
        raise scope.build.refuse(
            f"`{ast.unparse(node)[:60]}`: f-strings compile with {{value}}, {{value:.2f}}, 99 characters wide"
        )
    return scope.build.of("format", value, scope.build.constant(how))


def _constant_texts(spec: ast.expr | None) -> Iterator[str]:
    for one in getattr(spec, "values", ()):
        yield str(one.value) if isinstance(one, ast.Constant) else "{}"


HANDLERS[ast.JoinedStr] = formatted
