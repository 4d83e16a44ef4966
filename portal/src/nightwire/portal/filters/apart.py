"""Questions about filters and strangers' files, asked apart; what they refuse is refused here."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from nightwire.core.runtime import ApartError, Bounds, ask_apart
from nightwire.filters.language import FilterError
from nightwire.schemas import MendableError
from nightwire.schemas.serving import RefusedError

BOUNDS = Bounds(wall_s=90.0, memory=6 << 30)


def apart(question: Callable[..., Any], *asked: Any, **variables: str) -> Any:
    """Return the answer to *question*; it, what is *asked* and the answer are as JSON has them.

    Args:
        question: A function of a module of ours.
        asked: Its arguments.
        variables: Of its environment, beside those that are no secrets.

    Raises:
        FilterError: It raises that, or takes too long, or too much.
        RefusedError: It raises that.
    """
    try:
        answer = ask_apart(BOUNDS, answered, question.__module__, question.__name__, asked, **variables)
    except ApartError as error:
        raise FilterError(f"{error}: try it on fewer alerts, or with a smaller text or file") from error
    if answer["status"]:
        raise RefusedError(answer["status"], answer["reasons"][0])
    if answer["reasons"]:
        raise FilterError(*answer["reasons"])
    return answer["found"]


def answered(module: str, name: str, asked: Sequence[Any]) -> Mapping[str, Any]:
    """Return the answer of a function of *module*, or why it refuses."""
    try:
        return {"reasons": [], "status": 0, "found": getattr(import_module(module), name)(*asked)}
    except RefusedError as error:
        return {"reasons": [str(error)], "status": error.status}
    except FilterError as error:
        return {"reasons": error.reasons, "status": 0}
    except MendableError as error:
        return {"reasons": [str(error)], "status": 0}
