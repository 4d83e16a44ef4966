"""From Python source to a program, or to all reasons why it cannot be compiled."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence

from nightwire.filters.language.builder import Builder
from nightwire.filters.language.program import NotCompilable, Program

# Each of these modules enters the handlers of its expressions into the table in `scope`.
from nightwire.filters.language.python import calls, expressions, lists, lookup  # noqa: F401
from nightwire.filters.language.python.expressions import literal, truth
from nightwire.filters.language.python.scope import (
    Alert,
    Function,
    Helper,
    Known,
    Module,
    Scope,
    Static,
    Unknown,
)
from nightwire.filters.language.python.statements import body, returned, search, straight
from nightwire.filters.language.source import MODULES, FilterError, parsed

BUILT_IN = frozenset(
    {
        *("abs", "min", "max", "sum", "len", "any", "all", "round", "float", "int", "bool", "list", "tuple"),
        *("sorted", "set", "frozenset"),
    }
)
"""Python's own functions that compile."""

KNOWN_MODULES = {"math": "math", "numpy": "np"}


def compile_python(source: str, entry: str = "keep") -> Program:
    """Return the function *entry* of *source* in the closed language.

    Nothing is executed.  What the program says of an alert is what Python would say, faults
    included.

    Raises:
        NotCompilable: The closed language cannot say it; the reasons name the line.
        FilterError: It is no filter: it does not parse, or there is no such function of one
            argument.
    """
    tree = parsed(source)
    build = Builder()
    try:
        scope, code = _entered(tree, build, entry)
        return build.program(body(scope, code.body), source.splitlines())
    except NotCompilable as error:
        raise NotCompilable(*_every(tree, entry, error.reasons)) from None
    except RecursionError:
        raise NotCompilable(f"line {build.line}: the expression is nested too deeply") from None
    except ValueError as error:  # a whole number that has too many digits to be written out
        raise NotCompilable(f"line {build.line}: {error}") from None


def _every(tree: ast.Module, entry: str, first: Sequence[str]) -> Sequence[str]:
    """Return all reasons why the function *entry* cannot be compiled; the *first* are known."""
    try:
        scope, code = _entered(tree, Builder(), entry)
        return all_reasons(scope, code, first)
    except (NotCompilable, RecursionError, ValueError):
        return first


def _entered(tree: ast.Module, build: Builder, entry: str) -> tuple[Scope, ast.FunctionDef]:
    """Return the function *entry*, and the scope in which its body begins."""
    top = _Top(tree, build)
    code = top.found.get(entry)
    if not isinstance(code, ast.FunctionDef) or len(code.args.args) - len(code.args.defaults) != 1:
        raise FilterError(f"there is no function {entry}(alert) of one argument")
    first, *others = [argument.arg for argument in code.args.args]
    build.line = code.lineno
    if code.decorator_list:
        raise build.refuse("a decorated function cannot be compiled")
    scope = Scope(build, top, {first: Alert()})
    for name, default in zip(others, code.args.defaults, strict=True):
        scope.names[name] = scope.value(default)
    return scope, code


class _Top:
    """The names of the source's top level, compiled when they are asked for."""

    def __init__(self, tree: ast.Module, build: Builder) -> None:
        self.found: dict[str, ast.AST] = {}
        self._build = build
        self._ready: dict[str, Static] = {}
        for node in tree.body:
            self._note(node)

    def __call__(self, name: str) -> Static | None:
        if name not in self._ready:
            found = self._made(name)
            if found is None:
                return None
            self._ready[name] = found
        return self._ready[name]

    def _note(self, node: ast.stmt) -> None:
        for name in _bound(node):
            self.found[name] = node

    def _made(self, name: str) -> Static | None:
        node = self.found.get(name)
        if node is None:
            return Function("built-in", name) if name in BUILT_IN else None
        if isinstance(node, ast.FunctionDef):
            return Helper(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            return self._imported(node, name)
        value = getattr(node, "value", None)
        if not isinstance(node, ast.Assign | ast.AnnAssign) or value is None:
            self._build.line = getattr(node, "lineno", 0)
            raise self._build.refuse(f"{name} is no constant, function or import")
        return self._constant(value)

    def _constant(self, value: ast.expr) -> Static:
        scope = Scope(self._build, self, {})
        if isinstance(value, ast.Dict):
            return Known(self._table(scope, value))
        return scope.value(value)

    def _table(self, scope: Scope, value: ast.Dict) -> Mapping[object, object]:
        keys = [one for one in value.keys if one is not None]
        try:
            if len(keys) == len(value.values):
                pairs = zip(keys, value.values, strict=True)
                return {literal(scope, key): literal(scope, one) for key, one in pairs}
        except LookupError:
            pass
        raise self._build.refuse("a dict must hold constants alone")

    def _imported(self, node: ast.Import | ast.ImportFrom, name: str) -> Static:
        alias = next(one for one in node.names if name in (one.asname, one.name.split(".")[0]))
        self._build.line = node.lineno
        module = alias.name if isinstance(node, ast.Import) else node.module or ""
        if module not in KNOWN_MODULES:
            known = module.split(".")[0] in MODULES
            raise self._build.refuse(
                f"{module} cannot be compiled" if known else f"a filter may not import {module}"
            )
        if isinstance(node, ast.Import):
            return Module(KNOWN_MODULES[module])
        return lookup.of_module(self._build, KNOWN_MODULES[module], alias.name)


def _bound(node: ast.stmt) -> list[str]:
    """Return the names that a statement of the top level binds."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.Expr):  # a docstring, a print
        return []
    if isinstance(node, ast.Assign | ast.AnnAssign) and (names := _plain_names(node)):
        return names
    inside = (inner for inner in ast.walk(node) if isinstance(inner, ast.Name))
    return [name.id for name in inside if isinstance(name.ctx, ast.Store)]


def _plain_names(node: ast.Assign | ast.AnnAssign) -> list[str]:
    """Return the names that are given a value; none where a target is more than a name."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [one.id for one in targets if isinstance(one, ast.Name)]
    return names if len(names) == len(targets) else []


MAX_REASONS = 20
"""Most reasons that are given."""


def all_reasons(scope: Scope, code: ast.FunctionDef, first: Sequence[str]) -> list[str]:
    """Return why the function *code* cannot be compiled, by line.

    Args:
        scope: In which its arguments are known.
        code: The function.
        first: What was found when it was compiled.
    """
    collector = _ReasonCollector()
    scope.build.survey = collector.helper
    collector.block(scope, code.body)
    return sorted(dict.fromkeys([*collector.reasons, *first]), key=_line)[:MAX_REASONS]


def _line(reason: str) -> int:
    number = reason.removeprefix("line ").partition(":")[0]
    return int(number) if number.isdigit() else 0


class _ReasonCollector:
    """Collects all reasons that keep a function from being compiled, not only the first.

    A statement that cannot be compiled is noted and skipped; the names that it would have bound are
    unknown from then on, and expressions of them give no reasons of their own.
    """

    def __init__(self) -> None:
        self.reasons: dict[str, None] = {}
        self._helpers: set[ast.FunctionDef] = set()

    def block(self, scope: Scope, statements: Sequence[ast.stmt]) -> None:
        """Go through *statements*, which see and change the names of *scope*."""
        for one in statements:
            scope.build.line = one.lineno
            # bound now
            if not self._tried(lambda one=one: _compiled(scope, one)):  # type: ignore[misc]
                self._inside(scope, one)

    def helper(self, scope: Scope, code: ast.FunctionDef) -> None:
        """Go through a function that cannot be inlined, once."""
        if code not in self._helpers:
            self._helpers.add(code)
            self.block(scope, code.body)

    def _tried(self, compile_it: Callable[[], object]) -> bool:
        try:
            compile_it()
        except NotCompilable as error:
            self.reasons.update(dict.fromkeys(error.reasons))
            return False
        return True

    def _inside(self, scope: Scope, one: ast.stmt) -> None:
        """Go through the parts of a statement that cannot be compiled as a whole."""
        for part in _conditions(one):
            self._tried(lambda part=part: truth(scope, part))  # type: ignore[misc]  # bound now
        for block in _blocks(one):
            self.block(scope.branch(), block)
        for node in ast.walk(one):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                scope.names[node.id] = Unknown()


def _compiled(scope: Scope, one: ast.stmt) -> None:
    """Compile one statement by itself."""
    returns = any(isinstance(node, ast.Return) for node in ast.walk(one))
    if isinstance(one, ast.Return):
        if one.value is not None:
            returned(scope, one.value)
    elif isinstance(one, ast.For) and returns:
        search(scope, one, lambda: scope.build.constant(None))
    elif isinstance(one, ast.If) and returns:
        raise NotCompilable  # its parts, one by one
    else:
        straight(scope, one)


def _conditions(one: ast.stmt) -> Iterator[ast.expr]:
    """Yield the parts of a statement's condition, or of its result."""
    asked = one.value if isinstance(one, ast.Return) else getattr(one, "test", None)
    if isinstance(asked, ast.BoolOp):
        yield from asked.values
    elif asked is not None:
        yield asked


def _blocks(one: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    """Yield the blocks of a statement, but for loops, which are compiled as a whole."""
    if isinstance(one, ast.If | ast.Try | ast.While | ast.With):
        for name in ("body", "orelse", "finalbody"):
            yield getattr(one, name, [])
        yield from (handler.body for handler in getattr(one, "handlers", []))
