"""What the phrases of an SQL condition mean, as nodes of the closed language."""

from collections.abc import Callable, Mapping, Sequence

from nightwire.filters.language._builder import Builder

COMPARISONS = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "=": "==", "==": "==", "<>": "!=", "!=": "!="}

ONE: Mapping[str, str] = {
    "ABS": "abs", "SQRT": "math.sqrt", "LN": "math.log", "LOG": "math.log", "LOG10": "math.log10",
    "LOG2": "math.log2", "EXP": "math.exp", "SIN": "math.sin", "COS": "math.cos", "TAN": "math.tan",
    "ASIN": "math.asin", "ACOS": "math.acos", "ATAN": "math.atan", "RADIANS": "math.radians",
    "DEGREES": "math.degrees", "FLOOR": "math.floor", "CEIL": "math.ceil", "CEILING": "math.ceil",
    "ROUND": "round", "LENGTH": "size", "LOWER": "lower", "UPPER": "upper",
}  # fmt: skip
TWO: Mapping[str, str] = {"POWER": "math.pow/2", "POW": "math.pow/2", "ATAN2": "math.atan2/2", "MOD": "%"}
SOME: Mapping[str, str] = {"LEAST": "smallest", "GREATEST": "largest"}

PI = 3.141592653589793


def said(build: Builder, operation: str, *operands: int) -> int:
    """Return the node of an *operation* as SQL has it: of nothing comes nothing."""
    return build.of(f"sql.{operation}", *operands)


def chosen(build: Builder, condition: int, value: int, other: int) -> int:
    """Return *value* where *condition* is true, else *other*: unknown is not true."""
    return build.of("if", said(build, "and", condition, build.constant(True)), value, other)


def function(build: Builder, name: str, given: Sequence[int]) -> int | None:
    """Return the node of a call of SQL's function *name*, in capitals; None where there is none like it."""
    if name == "PI" and not given:
        return build.constant(PI)
    for table, fits in ((ONE, len(given) == 1), (TWO, len(given) == 2), (SOME, len(given) > 1)):
        if name in table and fits:
            return said(build, table[name], *given)
    special = SPECIAL.get((name, len(given))) or SPECIAL.get((name, 0))
    return special(build, given) if special and given else None


def _coalesce(build: Builder, given: Sequence[int]) -> int:
    """Return the first of *given* that is something."""
    *others, found = given
    while others:
        found = said(build, "coalesce", others.pop(), found)
    return found


def _none_if(build: Builder, given: Sequence[int]) -> int:
    """Return nothing where both are equal, else the first."""
    return chosen(build, said(build, "==", *given), build.constant(None), given[0])


SPECIAL: Mapping[tuple[str, int], Callable[[Builder, Sequence[int]], int]] = {
    ("COALESCE", 0): _coalesce,
    ("IFNULL", 2): _coalesce,
    ("NULLIF", 2): _none_if,
    ("ROUND", 2): lambda build, given: said(build, "round_to", *given),
    ("IF", 3): lambda build, given: chosen(build, *given),
}
"""By name and number of arguments; 0 for any number."""
