"""What a reader wants first over a slow link: an SQL condition, or a function of Python.

A function is compiled apart, to the filters' closed language, and never run: so it is judged here,
without a sandbox.
"""

import re

from nightwire.filters.admission import compile_function
from nightwire.filters.language import FilterError, Program

LONGEST = 4 << 10
"""Most characters of it."""
UNCOMPILED = "this function cannot be compiled, and no Python is run here"


def handler_of(text: str, survey: str) -> str | Program:
    """Return *text*, a condition; or the last function that it defines, compiled.

    Raises:
        FilterError: It is too long, or cannot be compiled; the reasons name its lines.
    """
    if len(text) > LONGEST:
        raise FilterError(f"it has {len(text):,} characters, and may have {LONGEST:,}")
    functions = re.findall(r"^def (\w+)", text, re.MULTILINE)
    if not functions:
        return text
    found = compile_function(text, functions[-1], survey)
    if found.program is None:
        raise FilterError(*found.remarks, UNCOMPILED)
    return found.program
