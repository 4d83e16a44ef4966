"""All that keeps a function from being compiled, not only what comes first.

A statement that cannot be compiled is noted and passed over, and the names that it would have given values
to are unknown from then on: what needs them says nothing.
"""

import ast
from collections.abc import Callable, Iterator, Sequence

from nightwire.filters.language._expressions import truth
from nightwire.filters.language._loops import search
from nightwire.filters.language._program import NotCompilable
from nightwire.filters.language._scope import Scope
from nightwire.filters.language._statements import returned, straight
from nightwire.filters.language._statics import Unknown

MOST = 20
"""Most reasons that are told."""


def all_reasons(scope: Scope, code: ast.FunctionDef, first: Sequence[str]) -> list[str]:
    """Return why the function *code* cannot be compiled, by line.

    Args:
        scope: In which its arguments are known.
        code: The function.
        first: What was found when it was compiled.
    """
    survey = _Survey()
    scope.build.survey = survey.helper
    survey.block(scope, code.body)
    return sorted(dict.fromkeys([*survey.told, *first]), key=_line)[:MOST]


def _line(reason: str) -> int:
    number = reason.removeprefix("line ").partition(":")[0]
    return int(number) if number.isdigit() else 0


class _Survey:
    """Goes through statements and notes what cannot be compiled."""

    def __init__(self) -> None:
        self.told: dict[str, None] = {}
        self._helpers: set[ast.FunctionDef] = set()

    def block(self, scope: Scope, statements: Sequence[ast.stmt]) -> None:
        """Go through *statements*, which see and change the names of *scope*."""
        for one in statements:
            scope.build.line = one.lineno
            if not self._tried(lambda one=one: _compiled(scope, one)):  # type: ignore[misc]  # bound now
                self._inside(scope, one)

    def helper(self, scope: Scope, code: ast.FunctionDef) -> None:
        """Go through a function that cannot be put in, once."""
        if code not in self._helpers:
            self._helpers.add(code)
            self.block(scope, code.body)

    def _tried(self, compile_it: Callable[[], object]) -> bool:
        try:
            compile_it()
        except NotCompilable as error:
            self.told.update(dict.fromkeys(error.reasons))
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
    """Yield the parts of what a statement asks, or returns."""
    asked = one.value if isinstance(one, ast.Return) else getattr(one, "test", None)
    if isinstance(asked, ast.BoolOp):
        yield from asked.values
    elif asked is not None:
        yield asked


def _blocks(one: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    """Yield the statements in a statement; those of a loop stand for one thing together."""
    if isinstance(one, ast.If | ast.Try | ast.While | ast.With):
        for name in ("body", "orelse", "finalbody"):
            yield getattr(one, name, [])
        yield from (handler.body for handler in getattr(one, "handlers", []))
