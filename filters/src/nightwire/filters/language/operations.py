"""The operations of the closed language: what each takes, and what it costs.

An expression is a list of nodes, each a tuple ``(operation, *arguments)``; an argument is the index
of an earlier node, or a literal, as the operation's *takes* says, letter by letter:

    n  a value            p  a list of points (its extent)    i  a value per point of that list
    c  a constant         f  a field's name                   k  a whole number or nothing
    t  text               *  any number of values, from two
    o  a HEALPix order    r  a number that is neither infinite nor NaN
"""

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nightwire.schemas.survey_model import ALERT_ATTRIBUTES

Function = Callable[..., Any]


@dataclass(frozen=True)
class Operation:
    """What an operation takes and costs.

    Attributes:
        takes: Its arguments, a letter each.
        cost: Work for one value, in comparisons of two numbers.
        function: The function of Python's; None where the evaluator has its own.
    """

    takes: str
    cost: int = 1
    function: Function | None = None


def _contained(value: Any, choices: Any) -> bool:
    return value in choices


FORMAT = re.compile(r"(?:[^{}]?[<>=^])?[-+ ]?#?0?\d{0,2}[,_]?(?:\.\d{1,2})?[a-zA-Z%]?")
"""Formats of values in f-strings: Python's, up to 99 characters wide."""

MAX_FORMATTED = 4_096
"""Longest text that is joined of several. [character]"""


def _formatted(value: Any, how: Any) -> Any:
    return format(value, how) if type(how) is str and FORMAT.fullmatch(how) else Ellipsis


def _joined(*parts: Any) -> Any:
    """Return the texts as one; where too long, a value of no known type, which needs Python."""
    found = "".join(parts)
    return found if len(found) <= MAX_FORMATTED else Ellipsis


def _no_key(key: Any) -> Any:
    raise KeyError(key)


def _half_away(value: float) -> float:
    if isinstance(value, int):  # ids are beyond what a float holds
        return value
    return math.copysign(math.floor(abs(value) + 0.5), value)


def _remainder(value: float, divisor: float) -> float:
    """Return what is left of *value*, with its sign; of integers exactly."""
    if isinstance(value, int) and isinstance(divisor, int):
        left = abs(value) % abs(divisor)
        return -left if value < 0 else left
    return math.fmod(value, divisor)


LEAVES: Mapping[str, Operation] = {
    "const": Operation("c", 0),
    "field": Operation("f"),  # absent from the schema: KeyError
    "lenient": Operation("f"),  # absent from the schema: None
    "has": Operation("f"),  # whether the record is there
    # absent from the schema: a fault; in a record that is none: nothing
    "sql.field": Operation("f"),
    "known": Operation("f"),  # whether the schema has it
    "fault": Operation("t"),
    "healpix_at": Operation("o", 50),
    "colour": Operation("tt", 4_000),  # of two bands' magnitudes
}

CONTROL: Mapping[str, Operation] = {
    "seq": Operation("nn"),
    "if": Operation("nnn", 2),
    "and": Operation("nn", 2),
    "or": Operation("nn", 2),
    "not": Operation("n"),
    "is_none": Operation("n"),
    "sql.and": Operation("nn", 2),
    "sql.or": Operation("nn", 2),
    "sql.not": Operation("n"),
    "sql.coalesce": Operation("nn", 2),
    "sql.null": Operation("n"),
}

ROOTS: Mapping[str, Operation] = {"points": Operation("f"), "magnitudes": Operation("t", 4)}
"""Lists of points that an alert has."""

POINTS: Mapping[str, Operation] = {
    **ROOTS,
    "where": Operation("pi", 2),
    "slice": Operation("pkk", 2),
    "sorted": Operation("pik", 12),  # by a value per point; backwards if not 0
    "best": Operation("pik", 4),  # the first with the largest value, or the smallest if 0
    "nth": Operation("pn", 2),
}
"""Operations that make a list of points."""

ITEMS: Mapping[str, Operation] = {
    "item": Operation("pf"),
    "lift": Operation("pn"),
    "sift": Operation("pn", 2),  # values of the longer list, at the points that were kept
    "before": Operation("pn", 2),  # as `sift`, of the point before each
    "array": Operation("pi", 2),
}
"""Operations that make a value per point."""

REDUCTIONS: Mapping[str, Operation] = {
    "count": Operation("p"),
    "each": Operation("p"),
    "chosen": Operation("p"),  # nothing; a fault where the points could not be chosen
    "sound": Operation("pi"),
    "at": Operation("pik", 2),
    "any": Operation("pi", 2),
    "all": Operation("pi", 2),
    "sum": Operation("pi", 3, sum),
    "max": Operation("pi", 3, max),
    "min": Operation("pi", 3, min),
    "fold": Operation("npi", 4),
    "among": Operation("npi", 2),  # whether the value is one of the points'
    "distinct": Operation("pi", 8),
    **{f"np.{name}": Operation("pi", 3) for name in ("sum", "mean", "max", "min", "any", "all", "prod")},
    **{f"np.{name}": Operation("pi", 3) for name in ("nansum", "nanmean", "nanmax", "nanmin")},
    **{f"np.{name}": Operation("pi", 3) for name in ("argmax", "argmin", "count_nonzero", "ptp")},
    **{f"np.{name}": Operation("pi", 8) for name in ("median", "nanmedian")},
    **{f"np.{name}": Operation("pik", 6) for name in ("std", "var", "nanstd", "nanvar")},
    **{f"np.{name}": Operation("pir", 8) for name in ("percentile", "quantile", "nanpercentile")},
}
"""Operations that make one value of a list of points; `k` of ``std`` and ``var`` is ddof."""

COMPARISONS: Mapping[str, Operation] = {
    "<": Operation("nn", 1, operator.lt),
    "<=": Operation("nn", 1, operator.le),
    ">": Operation("nn", 1, operator.gt),
    ">=": Operation("nn", 1, operator.ge),
    "==": Operation("nn", 1, operator.eq),
    "!=": Operation("nn", 1, operator.ne),
    "in": Operation("nn", 4, _contained),
}

ARITHMETIC: Mapping[str, Operation] = {
    "+": Operation("nn", 1, operator.add),
    "-": Operation("nn", 1, operator.sub),
    "*": Operation("nn", 1, operator.mul),
    "/": Operation("nn", 1, operator.truediv),
    "//": Operation("nn", 4, operator.floordiv),
    "%": Operation("nn", 4, operator.mod),
    "**": Operation("nn", 6, operator.pow),
    "&": Operation("nn", 1, operator.and_),
    "|": Operation("nn", 1, operator.or_),
    "^": Operation("nn", 1, operator.xor),
    "~": Operation("n", 1, operator.invert),
    "neg": Operation("n", 1, operator.neg),
    "pos": Operation("n", 1, operator.pos),
    "abs": Operation("n", 1, abs),
}

BUILTINS: Mapping[str, Operation] = {
    "float": Operation("n", 2, float),
    "int": Operation("n", 4, int),
    "bool": Operation("n", 1, bool),
    "round": Operation("n", 4, round),
    "round_to": Operation("nn", 4, round),
    "size": Operation("n", 2, len),
    "no_key": Operation("n", 2, _no_key),
    "format": Operation("nn", 16, _formatted),
    "joined": Operation("*", 4, _joined),
    "smallest": Operation("*", 2, min),
    "largest": Operation("*", 2, max),
}

TEXT: Mapping[str, Operation] = {
    "lower": Operation("n", 4, operator.methodcaller("lower")),
    "upper": Operation("n", 4, operator.methodcaller("upper")),
    "strip": Operation("n", 4, operator.methodcaller("strip")),
    "startswith": Operation("nn", 4, lambda text, other: text.startswith(other)),
    "endswith": Operation("nn", 4, lambda text, other: text.endswith(other)),
}

MATH_ONE = (
    "sqrt", "log", "log10", "log2", "log1p", "exp", "expm1", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "degrees", "radians", "fabs", "floor", "ceil", "trunc",
    "isnan", "isinf", "isfinite", "cbrt",
)  # fmt: skip
MATH_TWO = ("atan2", "hypot", "pow", "fmod", "copysign", "log")
MATH: Mapping[str, Operation] = {
    **{f"math.{name}": Operation("n", 4, getattr(math, name)) for name in MATH_ONE},
    **{f"math.{name}/2": Operation("nn", 4, getattr(math, name)) for name in MATH_TWO},
}

NUMPY_ONE = (
    "sqrt", "log", "log10", "log2", "log1p", "exp", "expm1", "sin", "cos", "tan", "arcsin", "arccos",
    "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "degrees", "radians", "deg2rad",
    "rad2deg", "abs", "fabs", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite", "sign", "square",
    "cbrt",
)  # fmt: skip
NUMPY_TWO = (
    "arctan2", "hypot", "power", "minimum", "maximum", "fmin", "fmax", "mod", "copysign", "logical_and",
    "logical_or", "logical_xor",
)  # fmt: skip
NUMPY: Mapping[str, Operation] = {
    **{f"np.{name}/1": Operation("n", 6) for name in (*NUMPY_ONE, "logical_not", "float64")},
    **{f"np.{name}/2": Operation("nn", 6) for name in NUMPY_TWO},
    "array **": Operation("nn", 6),
    "np.diff/2": Operation("nn", 2),
    "np.isin/2": Operation("nn", 6),
    **{f"np.{name}/3": Operation("nnn", 6) for name in ("where", "clip")},
}
"""NumPy's functions of single values; the evaluator knows them (this module does without NumPy)."""

SCALAR: Mapping[str, Operation] = {**COMPARISONS, **ARITHMETIC, **BUILTINS, **TEXT, **MATH, **NUMPY}
"""Operations on values one by one, an alert's or a point's."""

SQL: Mapping[str, Operation] = {
    f"sql.{name}": SCALAR[name]
    for name in (
        *COMPARISONS, *ARITHMETIC, "in", "round", "round_to", "smallest", "largest", "size", "lower",
        "upper", "math.sqrt", "math.log", "math.log10", "math.log2", "math.exp", "math.sin", "math.cos",
        "math.tan", "math.asin", "math.acos", "math.atan", "math.degrees", "math.radians", "math.floor",
        "math.ceil", "math.pow/2", "math.atan2/2",
    )
} | {
    "sql.like": Operation("nt", 8),
    "sql.%": Operation("nn", 4, _remainder),
    "sql.round": Operation("n", 4, _half_away),
}  # fmt: skip
"""Operations as SQL has them: NULL of NULL."""

OPERATIONS: Mapping[str, Operation] = {
    **LEAVES, **CONTROL, **POINTS, **ITEMS, **REDUCTIONS, **SCALAR, **SQL,
}  # fmt: skip
"""All operations."""

MOST_POINTS = 1000
"""Points of a history in the bound of costs (Rubin's longest history seen: 1,168)."""

REFERENCES: Mapping[str, tuple[int, ...]] = {
    name: tuple(at for at, letter in enumerate(one.takes, 1) if letter in "npi")
    for name, one in OPERATIONS.items()
    if one.takes != "*"
}
"""By operation, which of its arguments are nodes; where it is absent, all are."""


CANONICAL = frozenset(ALERT_ATTRIBUTES)
"""Attributes of an alert that are columns."""
