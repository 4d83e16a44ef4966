"""What an expression of Python can be while it is compiled, where it is no plain value.

A plain value is the index of its node (an int).
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

CANONICAL = frozenset(
    {
        *(
            "id",
            "object_id",
            "solar_system_id",
            "visit",
            "ra",
            "dec",
            "galactic_longitude",
            "galactic_latitude",
        ),
        *("healpix", "mjd_tai", "band", "flux", "flux_error", "snr", "magnitude"),
    }
)
"""Attributes of an alert that are columns."""

OF_POINTS: Mapping[str, frozenset[str]] = {
    "history": frozenset({"mjd_tai", "flux", "flux_error", "snr", "magnitude", "band", "ra", "dec"}),
    "light_curve": frozenset({"mjd_tai", "flux", "flux_error", "ra", "dec", "band"}),
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
    """One of the survey's own fields, by its path: a value, a record, or an array, as the survey has it.

    Attributes:
        steps: Its names, each with how it was reached: ``[]``, ``get``, or ``get {}`` for a default.
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
    """A list of points, by its extent; *guard* faults where the list cannot be read."""

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
    """A set of a list's values: what there is, each once."""

    extent: int
    item: int
    guard: int | None = None


@dataclass(frozen=True)
class Formatted:
    """What an f-string makes."""

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
    """What could not be compiled, and was passed over."""


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
