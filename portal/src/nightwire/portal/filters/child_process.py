"""Calls about filters and strangers' files in a child process, whose errors are raised here."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from nightwire.core.runtime import ApartError, Bounds, ask_apart
from nightwire.filters.language import FilterError
from nightwire.schemas import MendableError
from nightwire.schemas.serving import RefusedError

BOUNDS = Bounds(wall_s=90.0, memory=6 << 30)


def call_in_child(function: Callable[..., Any], *arguments: Any, **variables: str) -> Any:
    """Return what *function* returns in a child process.

    Args:
        function: One of a module of ours; what it returns is JSON.
        arguments: Its arguments, which are JSON.
        variables: Added to the child's environment, which has no secrets.

    Raises:
        FilterError: The function raises it, or takes too long or too much memory.
        RefusedError: The function raises it.
    """
    try:
        answer = ask_apart(BOUNDS, outcome_of, function.__module__, function.__name__, arguments, **variables)
    except ApartError as error:
        raise FilterError(f"{error}: try it on fewer alerts, or with a smaller text or file") from error
    if answer["status"]:
        raise RefusedError(answer["status"], answer["reasons"][0])
    if answer["reasons"]:
        raise FilterError(*answer["reasons"])
    return answer["found"]


def outcome_of(module: str, name: str, arguments: Sequence[Any]) -> Mapping[str, Any]:
    """Return what a function of *module* returns, or its error, as JSON; in the child."""
    try:
        return {"reasons": [], "status": 0, "found": getattr(import_module(module), name)(*arguments)}
    except RefusedError as error:
        return {"reasons": [str(error)], "status": error.status}
    except FilterError as error:
        return {"reasons": error.reasons, "status": 0}
    except MendableError as error:
        return {"reasons": [str(error)], "status": 0}
