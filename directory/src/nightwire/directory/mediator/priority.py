"""The priority of alerts over a slow link: an SQL condition, or a function of Python.

A function is compiled to the filters' closed language in a child process, and its Python never
run: so it is evaluated here, without a sandbox.
"""

import re

from nightwire.filters.admission import compile_function
from nightwire.filters.language import FilterError, Program

MAX_LENGTH = 4 << 10
"""Longest text. [character]"""
NOT_COMPILED = "this function cannot be compiled, and no Python is run here"


def compile_priority(text: str, survey: str) -> str | Program:
    """Return *text*, a condition; or the last function that it defines, compiled.

    Raises:
        FilterError: It is too long, or cannot be compiled; the reasons name its lines.
    """
    if len(text) > MAX_LENGTH:
        raise FilterError(f"it has {len(text):,} characters, and may have {MAX_LENGTH:,}")
    functions = re.findall(r"^def (\w+)", text, re.MULTILINE)
    if not functions:
        return text
    found = compile_function(text, functions[-1], survey)
    if found.program is None:
        raise FilterError(*found.remarks, NOT_COMPILED)
    return found.program
