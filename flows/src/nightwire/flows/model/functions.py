"""Functions of Python as stones: compiled to the closed language, apart, and never run."""

from functools import lru_cache

from nightwire.filters.admission import compile_apart
from nightwire.filters.language import FilterError, Program

ENTRY = "keep"
"""Name of the function."""
UNCOMPILED = "a stone runs no Python, and this cannot be compiled: submit it as a filter, and read its topic"


def compiled(source: str, survey: str) -> Program:
    """Return the function ``keep(alert)`` of *source*; a text is read once, in its own process.

    Raises:
        FilterError: It is no filter, or cannot be compiled; the reasons name its lines.
    """
    found = _outcome(source, survey)
    if isinstance(found, Program):
        return found
    raise FilterError(*found)


@lru_cache(1000)
def _outcome(source: str, survey: str) -> Program | tuple[str, ...]:
    asked = {"language": "python", "source": source, "entry": ENTRY, "survey": survey, "transform": ""}
    try:
        found = compile_apart(asked)
    except FilterError as error:
        return tuple(error.reasons)
    return found.program or (*found.remarks, UNCOMPILED)
