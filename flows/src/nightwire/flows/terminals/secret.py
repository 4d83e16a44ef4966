"""What a flow does not say itself: ``env:NIGHTWIRE_FLOW_…`` names a variable of the worker."""

import os

from nightwire.flows.terminals.failures import Unavailable

BEFORE = "env:"
PREFIX = "NIGHTWIRE_FLOW_"
"""Begins the names of variables that flows may use: the others are the worker's own."""


def secret(text: str) -> str:
    """Return *text*, or the value of the variable that it names.

    Raises:
        Unavailable: There is no such variable, or flows may not use it.
    """
    if not text.startswith(BEFORE):
        return text
    name = text.removeprefix(BEFORE)
    if not name.startswith(PREFIX) or name not in os.environ:
        raise Unavailable(f"the worker has no variable {name[:80]!r}; its name begins with {PREFIX}")
    return os.environ[name]
