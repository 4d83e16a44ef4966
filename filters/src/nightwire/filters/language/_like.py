"""SQL's LIKE: ``%`` is any text, ``_`` any letter; capitals are as good as others."""

import re
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from nightwire.filters.language._values import Faults, Rows, Value, python


@lru_cache(maxsize=1_000)
def matcher(like: str) -> Callable[[str], bool]:
    """Return what tells whether a text is *like* a pattern, in time that grows with their lengths alone.

    What stands between two ``%`` has a fixed length, and where it is found first is as good as any place: so
    nothing is ever tried again, as one regular expression for all would.
    """
    parts = like.split("%")
    first, *others = [re.compile(_fixed(part), re.IGNORECASE | re.DOTALL) for part in parts]

    def matches(text: str) -> bool:
        if not others:
            return first.fullmatch(text) is not None
        found = first.match(text)
        for one in others[:-1]:
            found = one.search(text, found.end()) if found else None
        begin = len(text) - len(parts[-1])
        return found is not None and begin >= found.end() and others[-1].match(text, begin) is not None

    return matches


def like(value: Value, text: str, size: int, faults: Faults) -> Value:
    """Return which texts are like the pattern *text*."""
    rows = Rows(size)
    matches = matcher(text)
    for lane in value.lanes:
        where = np.ones(size, bool) if lane.where is None else lane.where
        if lane.kind == "none":
            rows.none(where)
        elif lane.kind == "str":
            chosen = np.flatnonzero(where)
            rows.scatter(chosen, map(matches, python(lane, chosen)))
        else:
            rows.fault(faults.number("TypeError: LIKE compares texts, not numbers"), where)
    return rows.value(value.fault)


def _fixed(part: str) -> str:
    return "".join("." if one == "_" else re.escape(one) for one in part)
