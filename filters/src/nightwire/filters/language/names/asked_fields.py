"""The fields that a filter asks its alert for by constant names.  Pure.

Of a program all are seen; of Python those that are reached from the alert by constant subscripts
and `get`, in the filter and in helper functions that it hands the alert to.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from nightwire.filters.language.operations import CANONICAL
from nightwire.filters.language.program import Program
from nightwire.schemas.survey_model import MatchName

Path: TypeAlias = tuple[str, ...]

DEEPEST = 8
"""Most steps of a path; no survey nests records as deeply."""

ALIASES = 4
"""Names given to names of the alert's parts, one of the other, that are followed."""

ABSENCE = frozenset({"KeyError", "LookupError", "Exception", "BaseException"})
"""Errors whose handler means that a field may be absent."""


@dataclass
class AskedFields:
    """What a filter asks for, each with the line where it first does.

    Attributes:
        fields: The survey's own fields, as dotted paths.
        attributes: Attributes of the alert itself, such as ``flux``.
        points: Attributes of the points of its history.
    """

    fields: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, int] = field(default_factory=dict)
    points: dict[str, int] = field(default_factory=dict)


def asked_fields(
    source: str, entries: Sequence[str], program: Program | None = None, *, absent: bool = False
) -> AskedFields:
    """Return what a filter asks for, but for names whose absence its source has thought of.

    Args:
        source: Its source; of an SQL condition only the program counts.
        entries: Its functions of one alert; none for SQL.
        program: The same compiled, where it can be.
        absent: Whether those names count, too.
    """
    tree = ast.parse(source if entries else "")
    finder = _Finder({node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)})
    for entry in entries:
        finder.enter(entry, [()])
    expected = frozenset() if absent else frozenset(_expected(tree))
    found = {**finder.asked.fields, **dict(_of_program(program) if program else ())}
    fields = {path: line for path, line in found.items() if path.rpartition(".")[2] not in expected}
    return AskedFields(fields, finder.asked.attributes, finder.asked.points)


def fields_read(source: str, entry: str) -> list[str]:
    """Return what *entry* reads of its alert, as dotted paths: ``flux``, ``diaSource.psfFlux``.

    What helper functions read of the alert they are given counts, too.
    """
    asked = asked_fields(source, [entry], absent=True)
    found = {*asked.fields, *asked.attributes} - {"get", "items", "keys", "values"}
    return sorted(path for path in found if not any(other.startswith(f"{path}.") for other in found))


def _of_program(program: Program) -> Iterator[tuple[str, int]]:
    """Yield the survey's own fields that *program* reads, and their lines."""
    for node, line in zip(program.nodes, program.lines, strict=True):
        path = node[1] if node[0] in ("field", "lenient", "sql.field", "points") else ""
        if node[0] == "item" and program.nodes[node[1]][0] == "points":
            path = f"{program.nodes[node[1]][1]}.{node[2]}"
        if path and path not in CANONICAL and path.partition(".")[0] not in SHARED_LISTS:
            yield path, line


SHARED_LISTS = frozenset({"history", "light_curve"})
"""Lists of points that the alerts of every survey have."""


HISTORY: Path = (".history",)
"""Path of the points of ``alert.history``; no field's name begins so."""


class _Finder:
    """Follows an alert through functions, each once for what it is given."""

    def __init__(self, functions: Mapping[str, ast.FunctionDef]) -> None:
        self.asked = AskedFields()
        self._functions = functions
        self._entered: set[tuple[str, tuple[Path | None, ...]]] = set()

    def enter(self, name: str, given: Sequence[Path | None]) -> None:
        """Go through function *name*, whose arguments are the parts *given* of the alert."""
        code = self._functions.get(name)
        if code is None or (name, tuple(given)) in self._entered:
            return
        self._entered.add((name, tuple(given)))
        arguments = dict(zip((one.arg for one in code.args.args), given, strict=False))
        known = _aliases(code, {one: path for one, path in arguments.items() if path is not None})
        for node in ast.walk(code):
            self._note(node, known)

    def _note(self, node: ast.AST, known: Mapping[str, Path]) -> None:
        if isinstance(node, ast.Subscript | ast.Call) and (path := _path(node, known)):
            if path[: len(HISTORY)] != HISTORY:
                self.asked.fields.setdefault(".".join(path), node.lineno)
        elif isinstance(node, ast.Attribute):
            path = _path(node.value, known)
            if path in ((), HISTORY):
                of = self.asked.points if path else self.asked.attributes
                of.setdefault(node.attr, node.lineno)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            given = [_path(one, known) for one in node.args]
            if any(one is not None for one in given):
                self.enter(node.func.id, given)


def _aliases(code: ast.FunctionDef, given: Mapping[str, Path]) -> dict[str, Path]:
    """Return the names in *code* that stand for one part of the alert, wherever they are used."""
    stored = Counter(_stored(code))
    known = {name: path for name, path in given.items() if not stored[name]}
    bound: dict[str, list[ast.expr]] = {}
    for name, value in _bindings(code):
        bound.setdefault(name, []).append(value)
    for _ in range(ALIASES):
        for name, values in bound.items():
            paths = {_path(one, known) for one in values}
            if len(values) == stored[name] and len(paths) == 1 and (path := paths.pop()) is not None:
                known[name] = path
    return known


def _stored(code: ast.FunctionDef) -> Iterator[str]:
    """Yield each name as often as it is bound within *code*."""
    own = set(map(id, code.args.args))
    for node in ast.walk(code):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node.id
        elif isinstance(node, ast.arg) and id(node) not in own:
            yield node.arg


def _bindings(code: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that are bound to one value, or to the items of one."""
    for node in ast.walk(code):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                yield name, value
            case ast.For(target=ast.Name(id=name), iter=value):
                yield name, value
            case ast.comprehension(target=ast.Name(id=name), iter=value):
                yield name, value


def _path(node: ast.expr, known: Mapping[str, Path]) -> Path | None:
    """Return the path of a part of the alert; None for anything else.

    The items of an array have the path of the array.
    """
    match node:
        case ast.Name(id=name):
            return known.get(name)
        case ast.Attribute(value=owner, attr="history") if _path(owner, known) == ():
            return HISTORY
        case ast.BoolOp(op=ast.Or(), values=[first, *_]):
            return _path(first, known)
        case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[ast.Constant(value=str(key)), *_]):
            return _step(_path(owner, known), key)
        case ast.Call(
            func=ast.Attribute(value=owner, attr="match"),
            args=[ast.Constant(value=str(name)), ast.Constant(value=int() | float() as radius)],
        ) if _path(owner, known) == ():
            with suppress(ValueError):
                return (str(MatchName.of(name, radius)),)
        case ast.Subscript(value=owner, slice=ast.Constant(value=str(key))):
            return _step(_path(owner, known), key)
        case ast.Subscript(
            value=owner, slice=ast.Slice() | ast.Constant() | ast.UnaryOp(operand=ast.Constant())
        ):
            return _path(owner, known) or None
    return None


def _step(path: Path | None, key: str) -> Path | None:
    return None if path is None or len(path) >= DEEPEST else (*path, key)


def _expected(tree: ast.Module) -> Iterator[str]:
    """Yield the names whose absence is asked for by ``in``, or caught as KeyError."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=ast.Constant(value=str(name)), ops=[ast.In() | ast.NotIn()]):
                yield name
            case ast.Try(body=body, handlers=handlers) if any(map(_catches_absence, handlers)):
                texts = (one for step in body for one in ast.walk(step))
                yield from (
                    one.value for one in texts if isinstance(one, ast.Constant) and isinstance(one.value, str)
                )


def _catches_absence(handler: ast.ExceptHandler) -> bool:
    named = (
        (one.id for one in ast.walk(handler.type) if isinstance(one, ast.Name)) if handler.type else ABSENCE
    )
    return not ABSENCE.isdisjoint(named)
