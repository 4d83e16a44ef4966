"""Compiling a function's statements and loops to the one expression that it returns."""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from nightwire.filters.language.program import NotCompilable
from nightwire.filters.language.python.expressions import BINARY, combine, truth
from nightwire.filters.language.python.lists import iterated, kept
from nightwire.filters.language.python.scope import (
    MAX_INLINED,
    Field,
    Helper,
    Known,
    PointAt,
    Points,
    Scope,
    Static,
    Values,
)

REASONS = {
    ast.Try: "try/except cannot be compiled; ask before you compute (`if alert.flux is not None`)",
    ast.While: "a while loop cannot be compiled; go over alert.history",
    ast.With: "`with` cannot be compiled",
    ast.FunctionDef: "a function inside a function cannot be compiled; put it beside the filter",
    ast.ClassDef: "a class cannot be compiled",
    ast.Raise: "raise cannot be compiled; return False",
    ast.Assert: "assert cannot be compiled; return False",
    ast.Import: "an import inside the function cannot be compiled; put it at the top",
    ast.ImportFrom: "an import inside the function cannot be compiled; put it at the top",
}


def body(scope: Scope, statements: Sequence[ast.stmt], done: int | None = None) -> int:
    """Return the node of what *statements* return; *done* is the guard of those before."""
    build = scope.build
    for at, one in enumerate(statements):
        build.line = one.lineno
        build.step()
        if isinstance(one, ast.Return):
            value = build.constant(None) if one.value is None else returned(scope, one.value)
            return value if done is None else build.then(done, value)
        if _returns([one]):
            return build.then(done, _branches(scope, one, statements[at + 1 :]))
        done = build.both(done, straight(scope, one))
    return build.then(done, build.constant(None))


def returned(scope: Scope, node: ast.expr) -> int:
    """Return the node of what the function returns."""
    value = scope.value(node)
    if isinstance(value, Points | Values) and not getattr(value, "numpy", False):
        raise scope.build.refuse("a list of points is no verdict: return a number, True or False")
    return scope.plain(value)


def _branches(scope: Scope, one: ast.stmt, rest: Sequence[ast.stmt]) -> int:
    if isinstance(one, ast.For):
        return search(scope, one, lambda: body(scope, rest))
    if not isinstance(one, ast.If):
        raise _refused(scope, one)
    condition = truth(scope, one.test)
    first = body(scope.branch(), [*one.body, *rest] if _falls_through(one.body) else one.body)
    second = body(scope.branch(), [*one.orelse, *rest])
    return scope.build.of("if", condition, first, second)


def straight(scope: Scope, one: ast.stmt) -> int | None:
    """Compile a statement that does not return; return its guard."""
    if isinstance(one, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return _assignment(scope, one)
    if isinstance(one, ast.If):
        return _merged(scope, one)
    if isinstance(one, ast.For):
        return loop(scope, one)
    if isinstance(one, ast.Pass) or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)):
        return None
    raise _refused(scope, one)


def _refused(scope: Scope, one: ast.stmt) -> Exception:
    said = f"`{ast.unparse(one).splitlines()[0][:60]}` cannot be compiled"
    return scope.build.refuse(REASONS.get(type(one), said))


def _assignment(scope: Scope, one: ast.Assign | ast.AnnAssign | ast.AugAssign) -> int | None:
    target = one.targets[0] if isinstance(one, ast.Assign) else one.target
    if (
        (isinstance(one, ast.Assign) and len(one.targets) > 1)
        or not isinstance(target, ast.Name)
        or one.value is None
    ):
        if isinstance(target, ast.Tuple) and isinstance(one.value, ast.Tuple):
            return _together(scope, target, one.value)
        raise scope.build.refuse(f"`{ast.unparse(one)[:60]}`: values are given to one name each")
    value = scope.value(one.value)
    if isinstance(one, ast.AugAssign):
        operation = BINARY.get(type(one.op))
        if operation is None:
            raise _refused(scope, one)
        value = combine(scope, operation, scope.value(ast.Name(target.id, lineno=one.lineno)), value)
    return scope.bind(target.id, value)


def _together(scope: Scope, target: ast.Tuple, value: ast.Tuple) -> int | None:
    values = [scope.value(one) for one in value.elts]
    if len(values) != len(target.elts) or not all(isinstance(one, ast.Name) for one in target.elts):
        raise scope.build.refuse(f"`{ast.unparse(target)} = …`: as many names as values, please")
    done: int | None = None
    for name, one in zip(target.elts, values, strict=True):
        # Names, as asked
        done = scope.build.both(done, scope.bind(name.id, one))  # type: ignore[attr-defined]
    return done


def _merged(scope: Scope, one: ast.If) -> int | None:
    """Compile an ``if`` whose branches only give values to names."""
    build = scope.build
    condition = truth(scope, one.test)
    sides = scope.branch(), scope.branch()
    done = [_all(side, block) for side, block in zip(sides, (one.body, one.orelse), strict=True)]
    first, second = (side.names for side in sides)
    for name in dict.fromkeys([*first, *second]):
        if first.get(name) != second.get(name):
            scope.names[name] = _either(scope, condition, name, first.get(name), second.get(name))
    ends = [build.constant(None) if end is None else end for end in done]
    return (
        build.of("if", condition, *ends)
        if any(end is not None for end in done)
        else build.both(condition, None)
    )


def _all(scope: Scope, block: Sequence[ast.stmt]) -> int | None:
    done: int | None = None
    for one in block:
        scope.build.line = one.lineno
        scope.build.step()
        done = scope.build.both(done, straight(scope, one))
    return done


def _either(scope: Scope, condition: int, name: str, first: Static | None, second: Static | None) -> int:
    build = scope.build
    unbound = (
        f"UnboundLocalError: cannot access local variable '{name}' where it is not associated with a value"
    )
    sides = [build.leaf("fault", unbound) if side is None else scope.plain(side) for side in (first, second)]
    return build.of("if", condition, *sides)


def inlined(scope: Scope, helper: Helper, call: ast.Call) -> Static:
    """Return the result of the source's own function *helper*, whose body is inlined."""
    build, code = scope.build, helper.code
    build.step()
    if scope.depth >= MAX_INLINED:
        raise build.refuse(
            f"{code.name} calls itself, or helpers call one another more than {MAX_INLINED} deep"
        )
    inner = Scope(build, scope.top, dict(_arguments(scope, code, call)), scope.depth + 1)
    try:
        return _put_in(inner, code)
    except NotCompilable as error:
        if build.survey is None:
            raise
        build.survey(Scope(build, scope.top, dict(_arguments(scope, code, call)), scope.depth + 1), code)
        raise NotCompilable from error


def _put_in(inner: Scope, code: ast.FunctionDef) -> Static:
    build = inner.build
    done: int | None = None
    for name, value in inner.names.items():
        done = build.both(done, inner.bind(name, value))
    if _returns(code.body[:-1]) or not isinstance(code.body[-1], ast.Return) or code.body[-1].value is None:
        return build.then(done, body(inner, code.body))
    done = build.both(done, _all(inner, code.body[:-1]))
    value = inner.value(code.body[-1].value)
    return _after(inner, done, value)


def _after(scope: Scope, done: int | None, value: Static) -> Static:
    if isinstance(value, int):
        return scope.build.then(done, value)
    if done is None:
        return value
    if isinstance(value, Field | Points | PointAt | Values):
        return replace(value, guard=scope.build.both(done, value.guard))
    return scope.build.then(done, scope.plain(value))


def _arguments(scope: Scope, code: ast.FunctionDef, call: ast.Call) -> Iterator[tuple[str, Static]]:
    names = [argument.arg for argument in code.args.args]
    given = dict(zip(names, call.args, strict=False)) | {str(word.arg): word.value for word in call.keywords}
    defaults = dict(zip(reversed(names), reversed(code.args.defaults), strict=False))
    odd = (
        code.args.vararg
        or code.args.kwarg
        or code.args.kwonlyargs
        or code.args.posonlyargs
        or code.decorator_list
    )
    if (
        odd
        or len(call.args) > len(names)
        or set(given) - set(names)
        or set(names) - set(given) - set(defaults)
    ):
        raise scope.build.refuse(f"the arguments of {code.name} cannot be put in: plain ones only")
    for name in names:
        # one of both is there
        yield name, scope.value(given.get(name, defaults.get(name)))  # type: ignore[arg-type]


def _returns(block: Sequence[ast.stmt]) -> bool:
    todo = list(block)
    while todo:
        one = todo.pop()
        if isinstance(one, ast.Return):
            return True
        todo += [*getattr(one, "body", ()), *getattr(one, "orelse", ())]
    return False


def _falls_through(block: Sequence[ast.stmt]) -> bool:
    last = block[-1]
    if isinstance(last, ast.Return):
        return False
    if isinstance(last, ast.If) and last.orelse:
        return _falls_through(last.body) or _falls_through(last.orelse)
    return True


def search(scope: Scope, one: ast.For, otherwise: Callable[[], int]) -> int:
    """Compile ``for p in …: if …: return constant``: whether there is such a point.

    Where there is none, the value is that of *otherwise*.
    """
    build = scope.build
    extent, inner, guard = _entered(scope, one)
    found = one.body[-1]
    simple = isinstance(found, ast.If) and not found.orelse and len(found.body) == 1 and len(one.body) == 1
    # an If, as asked
    if not simple or not isinstance(found.body[0], ast.Return):  # type: ignore[attr-defined]
        raise build.refuse("a loop that returns may only be: for p in alert.history: if …: return …")
    condition = truth(inner, found.test)  # type: ignore[attr-defined]
    result = found.body[0].value  # type: ignore[attr-defined]
    value = build.constant(None) if result is None else inner.scalar(result)
    if build.extents[condition] != extent:
        condition = build.points("lift", extent, condition)
    if build.extents[value] == extent:
        fewer = build.points("where", extent, condition)
        value = build.points("at", fewer, build.points("sift", fewer, value), 0)
    there = build.points("any", extent, condition)
    return build.then(guard, build.of("if", there, value, otherwise()))


def loop(scope: Scope, one: ast.For) -> int | None:
    """Compile a loop that adds up, counts, or collects: ``total += …``, ``chosen.append(…)``."""
    extent, inner, guard = _entered(scope, one)
    return scope.build.both(guard, _gathered(scope, inner, extent, one.body, one.target.id))  # type: ignore[attr-defined]


def _entered(scope: Scope, one: ast.For) -> tuple[int, Scope, int | None]:
    if not isinstance(one.target, ast.Name) or one.orelse:
        raise scope.build.refuse("a loop has one variable and no else")
    extent, variable, guard = iterated(scope, one.iter)
    inner = scope.branch()
    inner.names[one.target.id] = variable
    return extent, inner, guard


def _gathered(
    scope: Scope, inner: Scope, extent: int, block: Sequence[ast.stmt], variable: str
) -> int | None:
    one = block[0]
    build = scope.build
    build.line = one.lineno
    if len(block) != 1:
        raise build.refuse("a loop may do one thing: add to a number, or append to a list, under conditions")
    if isinstance(one, ast.If) and not one.orelse:
        fewer = kept(inner, extent, truth(inner, one.test), variable)
        return _gathered(scope, inner, fewer, one.body, variable)
    if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add) and isinstance(one.target, ast.Name):
        return _added(scope, one.target.id, extent, _broadcast(inner, extent, one.value))
    if (
        isinstance(one, ast.Expr)
        and isinstance(one.value, ast.Call)
        and isinstance(one.value.func, ast.Attribute)
    ):
        owner = one.value.func.value
        if one.value.func.attr == "append" and isinstance(owner, ast.Name) and len(one.value.args) == 1:
            return _appended(scope, owner.id, extent, _broadcast(inner, extent, one.value.args[0]))
    raise build.refuse("a loop may add to a number (+=) or append to a list, nothing else")


def _broadcast(inner: Scope, extent: int, node: ast.expr) -> int:
    item = inner.scalar(node)
    return item if inner.build.extents[item] == extent else inner.build.points("lift", extent, item)


def _added(scope: Scope, name: str, extent: int, item: int) -> int | None:
    start = scope.names.get(name)
    if not isinstance(start, int):
        raise scope.build.refuse(f"{name} is no number before the loop")
    return scope.bind(name, scope.build.points("fold", start, extent, item))


def _appended(scope: Scope, name: str, extent: int, item: int) -> int | None:
    if scope.names.get(name) != Known(()):
        raise scope.build.refuse(f"{name} is no empty list before the loop")
    return scope.bind(name, Values(extent, item, scope.build.points("sound", extent, item)))
