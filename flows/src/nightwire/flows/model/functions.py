"""Functions of Python as stones, read and compiled apart.

Filters' are compiled to the closed language where they can be; all others run in the sandbox alone.
"""

from nightwire.filters.admission import compile_function
from nightwire.filters.language import FilterError
from nightwire.filters.model import AddedField, Compilation

KEEP = "keep"
"""Name of a filter's function."""
COMPUTE = "transform"
"""Name of a transform's."""
EVERY = "nightwire_every"
PASSES = f"\n\ndef {EVERY}(alert):\n    return True\n"
"""Stands behind a transform's text: the sandbox computes for what passes a filter."""
SAID = AddedField("kept", "bool")
SAYS = f"\n\ndef {COMPUTE}(alert):\n    return {{'kept': bool({KEEP}(alert))}}\n"
"""Stands behind a filter's text that is not compiled: what it says is a field of its own."""
COLUMNS = "a function of columns is no stone: submit it as a filter, and let the flow read its topic"


def compiled(source: str, survey: str) -> Compilation:
    """Return the function ``keep(alert)`` of *source*; a text is read once, in its own process.

    Raises:
        FilterError: It is no filter of alerts; the reasons name its lines.
    """
    found = compile_function(source, KEEP, survey)
    if found.over_columns:
        raise FilterError(COLUMNS)
    return found


def computed(source: str, survey: str) -> Compilation:
    """Return what is known of the function ``transform(alert)`` of *source*, read alike.

    Raises:
        FilterError: It is none, or does not declare what it adds.
    """
    return compile_function(source + PASSES, EVERY, survey, COMPUTE)
