"""Python functions as stones, read and compiled in a process of their own.

Filters' are compiled to the closed language where they can be; all others run in the sandbox alone.
"""

from nightwire.filters.admission import compile_function
from nightwire.filters.language import FilterError
from nightwire.filters.model import AddedField, Compilation

KEEP = "keep"
"""Name of a filter's function."""
TRANSFORM = "transform"
"""Name of a transform's function."""
ACCEPT = "nightwire_every"
"""Name of a filter's function that lets every alert pass."""
ACCEPT_ALL = f"\n\ndef {ACCEPT}(alert):\n    return True\n"
"""Appended to a transform's source: the sandbox runs transforms on what passes a filter."""
KEPT_FIELD = AddedField("kept", "bool")
"""The verdict of a filter that runs as a transform."""
KEEP_AS_TRANSFORM = f"\n\ndef {TRANSFORM}(alert):\n    return {{'kept': bool({KEEP}(alert))}}\n"
"""Appended to a filter's source that is not compiled: its verdict is an added field."""
COLUMNS = "a function of columns is no stone: submit it as a filter, and let the flow read its topic"


def compile_filter(source: str, survey: str) -> Compilation:
    """Return the compilation of the function ``keep(alert)`` in *source*, cached.

    Raises:
        FilterError: *source* is no filter of alerts; the reasons name its lines.
    """
    found = compile_function(source, KEEP, survey)
    if found.over_columns:
        raise FilterError(COLUMNS)
    return found


def compile_transform(source: str, survey: str) -> Compilation:
    """Return the compilation of the function ``transform(alert)`` in *source*, cached too.

    Raises:
        FilterError: *source* is no transform, or does not declare what it adds.
    """
    return compile_function(source + ACCEPT_ALL, ACCEPT, survey, TRANSFORM)
