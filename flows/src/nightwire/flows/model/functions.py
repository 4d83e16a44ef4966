"""Functions of Python as stones, read and compiled apart.

Filters' are compiled to the closed language, and never run; transforms' run in the sandbox alone.
"""

from nightwire.filters.admission import compile_function
from nightwire.filters.language import FilterError, Program
from nightwire.filters.model import Compilation

KEEP = "keep"
"""Name of a filter's function."""
COMPUTE = "transform"
"""Name of a transform's."""
EVERY = "nightwire_every"
PASSES = f"\n\ndef {EVERY}(alert):\n    return True\n"
"""Stands behind a transform's text: the sandbox computes for what passes a filter."""
UNCOMPILED = (
    "a filter stone runs no Python, and this cannot be compiled: submit it as a filter, and read its topic"
)


def compiled(source: str, survey: str) -> Program:
    """Return the function ``keep(alert)`` of *source*; a text is read once, in its own process.

    Raises:
        FilterError: It is no filter, or cannot be compiled; the reasons name its lines.
    """
    found = compile_function(source, KEEP, survey)
    if found.program is None:
        raise FilterError(*found.remarks, UNCOMPILED)
    return found.program


def computed(source: str, survey: str) -> Compilation:
    """Return what is known of the function ``transform(alert)`` of *source*, read alike.

    Raises:
        FilterError: It is none, or does not declare what it adds.
    """
    return compile_function(source + PASSES, EVERY, survey, COMPUTE)
