"""Arrays as a whole, as NumPy sees them: masks, and arrays with values that cannot be computed.

An array that is made of an empty list holds floats (of which there are none), whatever the list
would have held: it is no mask, and `&`, `|`, `^`, `~` do not take it.
"""

from collections.abc import Iterator

from nightwire.filters.language.builder import Builder
from nightwire.filters.language.operations import ARITHMETIC, COMPARISONS, NUMPY
from nightwire.filters.language.program import Node

BITS = frozenset({"&", "|", "^", "~"})
"""Operations on arrays of truth, or of whole numbers."""

TRUE_OR_FALSE = frozenset(
    {
        *COMPARISONS,
        *(f"np.{name}/1" for name in ("isnan", "isinf", "isfinite", "logical_not")),
        *(f"np.{name}/2" for name in ("logical_and", "logical_or", "logical_xor", "isin")),
        *("not", "is_none", "bool", "startswith", "endswith", "math.isnan", "math.isinf", "math.isfinite"),
    }
)

NO_INDEX = "IndexError: arrays used as indices must be of integer (or boolean) type"
NO_BITS = (
    "TypeError: ufunc '{}' not supported for the input types, and the inputs could not be safely coerced"
)
NAMES = {"&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor", "~": "invert"}


NUMBERS = frozenset({*COMPARISONS, *ARITHMETIC, *NUMPY} - {"in"})
"""Operations that cannot fail where all operands are an array's numbers."""


def failure(build: Builder, extent: int, item: int) -> int | None:
    """Return the guard of an array's values; None for numbers, which cannot fault."""
    return None if _are_numbers(build, item) else build.points("sound", extent, item)


def _are_numbers(build: Builder, at: int) -> bool:
    known = build.numbers.get(at)
    if known is None:
        known = build.numbers[at] = _made_of_numbers(build, build.nodes[at])
    return known


def _made_of_numbers(build: Builder, node: Node) -> bool:
    if node[0] == "item":
        return build.nodes[node[1]][0] == "magnitudes" or (
            build.nodes[node[1]] == ("points", "light_curve") and node[2] != "band"
        )
    if node[0] in ("sift", "before"):
        return _are_numbers(build, node[2])
    if node[0] == "const":
        return type(node[1]) in (int, float)
    return node[0] in NUMBERS and all(_are_numbers(build, one) for one in node[1:])


def is_mask(build: Builder, at: int) -> bool:
    """Return whether the node *at* is true or false, whatever its operands are."""
    node = build.nodes[at]
    if node[0] in BITS:
        return all(is_mask(build, one) for one in node[1:])
    if node[0] in ("sift", "before", "array", "lift"):
        return is_mask(build, node[-1])
    if node[0] in ("seq", "and", "or"):
        return is_mask(build, node[2]) and (node[0] == "seq" or is_mask(build, node[1]))
    return node[0] in TRUE_OR_FALSE or (node[0] == "const" and type(node[1]) is bool)


def no_mask(build: Builder, at: int) -> int | None:
    """Return the guard that faults where the mask *at* is made of an empty list; None: never."""
    return _of_nothing(build, [at], NO_INDEX)


def no_bits(build: Builder, operation: str, items: list[int]) -> int | None:
    """Return the guard that faults where an *operation* on bits has an item of an empty list."""
    if operation not in BITS:
        return None
    return _of_nothing(build, items, NO_BITS.format(NAMES[operation]))


def _of_nothing(build: Builder, items: list[int], fault: str) -> int | None:
    found: int | None = None
    for extent in dict.fromkeys(one for at in items for one in _lists(build, at)):
        filled = build.of(">", build.points("count", extent), build.constant(0))
        guard = build.of("if", filled, build.constant(None), build.leaf("fault", fault))
        found = build.both(found, guard)
    return found


def _lists(build: Builder, at: int) -> Iterator[int]:
    """Yield the list of points that the array *at* is made of, if it is made of one."""
    node = build.nodes[at]
    if node[0] == "array":
        yield node[1]
    elif node[0] in ("sift", "before"):
        yield from _lists(build, node[2])
