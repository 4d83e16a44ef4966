"""The scope in which an expression is compiled, and what an expression can be meanwhile.

A *guard* is a node that is evaluated for its fault alone, where Python would raise an exception.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nightwire.filters.language.builder import Builder
from nightwire.filters.language.program import NotCompilable
from nightwire.schemas.survey_model import LIGHT_CURVE_ATTRIBUTES, MEASUREMENT_ATTRIBUTES

OF_POINTS: Mapping[str, frozenset[str]] = {
    "history": frozenset(MEASUREMENT_ATTRIBUTES),
    "light_curve": frozenset(LIGHT_CURVE_ATTRIBUTES),
}
"""Columns of the canonical lists of points."""


@dataclass(frozen=True)
class Alert:
    """The function's argument."""


@dataclass(frozen=True)
class Curve:
    """What ``alert.light_curve()`` returns: arrays by name."""


@dataclass(frozen=True)
class Field:
    """One of the survey's own fields, by its path: a value, a record, or an array.

    Attributes:
        steps: Its names, each with how it was reached: ``[]``, ``get``, or ``get {}`` for a
            default.
        empty: Whether ``or {}`` or ``or []`` follows.
    """

    steps: tuple[tuple[str, str], ...]
    empty: bool = False
    guard: int | None = None

    @property
    def path(self) -> str:
        """Its dotted path."""
        return ".".join(name for name, _ in self.steps)


@dataclass(frozen=True)
class Points:
    """A list of points, by its extent; its *guard* faults where the list cannot be read."""

    extent: int
    guard: int | None = None


@dataclass(frozen=True)
class Point:
    """Each point of a list, as a comprehension's variable is."""

    extent: int


@dataclass(frozen=True)
class PointAt:
    """One point of a list: ``alert.history[-1]``."""

    extent: int
    index: int
    guard: int | None = None


@dataclass(frozen=True)
class Values:
    """A value per point: a list, a generator, or (if *numpy*) an array."""

    extent: int
    item: int
    guard: int | None = None
    numpy: bool = False
    lazy: bool = False


@dataclass(frozen=True)
class Distinct:
    """A set of a list's values."""

    extent: int
    item: int
    guard: int | None = None


@dataclass(frozen=True)
class Formatted:
    """The text of an f-string."""

    text: int
    guard: int | None = None


@dataclass(frozen=True)
class Known:
    """A constant that is no plain value: a tuple, list, set or dict of constants."""

    value: Any


@dataclass(frozen=True)
class Module:
    """``math`` or ``numpy``, by its name in operations: ``math``, ``np``."""

    name: str


@dataclass(frozen=True)
class Helper:
    """A function of the source."""

    code: ast.FunctionDef


@dataclass(frozen=True)
class Function:
    """A function of a module, ``math.log10``, or a built-in one."""

    module: str
    name: str


@dataclass(frozen=True)
class Method:
    """A method, not yet called."""

    owner: Any
    name: str


@dataclass(frozen=True)
class Unknown:
    """An expression that could not be compiled, and was skipped."""


Static = (
    int
    | Alert
    | Curve
    | Field
    | Points
    | Point
    | PointAt
    | Values
    | Distinct
    | Formatted
    | Known
    | Module
    | Helper
    | Function
    | Method
    | Unknown
)


def without_guard(value: Any) -> Any:
    """Return *value* as it is once its guard has been passed."""
    return replace(value, guard=None) if getattr(value, "guard", None) is not None else value


MAX_INLINED = 20
"""How deep helper functions may call one another."""

NOT_SUBSCRIPTABLE = "'NoneType' object is not subscriptable"
NO_GET = "'NoneType' object has no attribute 'get'"

Handler = Callable[["Scope", Any], Static]

HANDLERS: dict[type[ast.expr], Handler] = {}
"""For each kind of expression its compiler, which the module of that kind enters."""

DESCRIPTIONS: Mapping[type, str] = {
    Alert: "the alert itself",
    Curve: "a light curve as a whole",
    Points: "a list of points (whether there are any is len(…) > 0)",
    Point: "a point of the history as a whole",
    PointAt: "a point of the history as a whole",
    Values: "a list or array with a value per point",
    Distinct: "a set (how many it has is len(…), whether it has one is x in …)",
    Formatted: "an f-string (which can be compared, but nothing else)",
    Known: "a tuple, list, set or dict",
    Module: "a module",
    Helper: "a function that is not called",
    Function: "a function that is not called",
    Method: "a method that is not called",
}


class Scope:
    """Names in sight of a function's body.

    Args:
        build: Takes the nodes.
        top: Finds what the source's top level, or Python, calls by a name; None where nothing does.
        names: The function's own names.
        depth: How many helper functions it is in.
    """

    def __init__(
        self, build: Builder, top: Callable[[str], Static | None], names: dict[str, Static], depth: int = 0
    ) -> None:
        self.build = build
        self.top = top
        self.names = names
        self.depth = depth

    def branch(self) -> "Scope":
        """Return a scope that begins with the same names and keeps its own from then on."""
        return Scope(self.build, self.top, dict(self.names), self.depth)

    def value(self, node: ast.expr) -> Static:
        """Return what *node* is.

        Raises:
            NotCompilable: The closed language has nothing like it.
        """
        handler, build = HANDLERS.get(node.__class__), self.build
        line, build.line = build.line, node.lineno
        if handler is None:
            raise build.refuse(f"{_kind(node)} cannot be compiled")
        found = handler(self, node)
        build.line = line
        return found

    def scalar(self, node: ast.expr) -> int:
        """Return the node of a plain value.

        Raises:
            NotCompilable: It is none, or cannot be compiled.
        """
        return self.plain(self.value(node))

    def plain(self, value: Static) -> int:
        """Return *value* as the node of a plain value.

        Raises:
            NotCompilable: It is none.
        """
        if isinstance(value, int):
            return value
        if isinstance(value, Field):
            return self.read(value)
        if isinstance(value, Unknown):
            raise NotCompilable  # said where it was to be made
        raise self.build.refuse(f"{DESCRIPTIONS[type(value)]} stands where one number or text is needed")

    def read(self, field: Field) -> int:
        """Return the node of the value at *field*."""
        build = self.build
        strict = all(how == "[]" for _, how in field.steps)
        if strict:
            return build.then(field.guard, build.leaf("field", field.path))
        return build.then(self.way(field), build.leaf("lenient", field.path))

    def way(self, field: Field) -> int | None:
        """Return the guard of *field*, which faults where it cannot be read."""
        if field.guard is None and field.steps[-1][1] == "[]":
            known = self.build.leaf("known", field.path)
            return self._unless(known, f"KeyError: {field.steps[-1][0]!r}")
        if field.steps[-1][1] != "[]":
            return field.guard
        known = self.build.leaf("known", field.path)
        return self.build.then(field.guard, self._unless(known, f"KeyError: {field.steps[-1][0]!r}"))

    def asked(self, field: Field) -> int | None:
        """Return the guard of evaluating *field*, whether or not its value is used."""
        guard: int | None = None
        if all(how == "[]" for _, how in field.steps):
            for end in range(1, len(field.steps)):
                guard = self.build.both(guard, self.unless_none(Field(field.steps[:end])))
        return self.build.both(guard, self.way(field))

    def bind(self, name: str, value: Static) -> int | None:
        """Bind *name* to *value*; return the guard of doing so."""
        if isinstance(value, int):
            self.names[name] = value
            return None if self.build.safe[value] else value
        self.names[name] = without_guard(value)
        return self.asked(value) if isinstance(value, Field) else getattr(value, "guard", None)

    def step(self, field: Field, name: str, how: str) -> Field:
        """Return the field *name* of the record at *field*, reached as *how* says."""
        guard = field.guard
        if not field.empty and not all(one == "[]" for _, one in (*field.steps, (name, how))):
            there = self.build.leaf("has", field.path)
            fault = f"TypeError: {NOT_SUBSCRIPTABLE}" if how == "[]" else f"AttributeError: {NO_GET}"
            missing = self._unless(there, fault)
            if field.steps[-1][1] == "get {}":
                none = self.build.constant(None)
                missing = self.build.of("if", self.build.leaf("known", field.path), missing, none)
            guard = self.build.both(self.asked(field), missing)
        return Field((*field.steps, (name, how)), guard=guard)

    def unless_none(self, field: Field) -> int:
        """Return the guard that faults where the record at *field* is None."""
        return self._unless(self.build.leaf("has", field.path), f"TypeError: {NOT_SUBSCRIPTABLE}")

    def _unless(self, condition: int, fault: str) -> int:
        return self.build.of("if", condition, self.build.constant(None), self.build.leaf("fault", fault))


def _kind(node: ast.expr) -> str:
    """Return what an astronomer calls *node*."""
    return {
        ast.Lambda: "a lambda",
        ast.Dict: "a dict that is made for each alert",
        ast.DictComp: "a dict comprehension",
        ast.NamedExpr: "an assignment inside an expression (:=)",
        ast.Starred: "an argument list with *",
    }.get(type(node), f"{type(node).__name__}: `{ast.unparse(node)[:60]}`")
