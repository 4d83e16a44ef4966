"""The light form of a survey's alerts: no stamps, and of each history the number of points and their mean."""

from typing import Any

from nightwire.schemas import survey


def lite(name: str) -> dict[str, Any]:
    """Return what a request for survey *name* says so that its alerts come light: ``drop`` and ``means``.

    Raises:
        SchemaError: There is no such survey.
    """
    about = survey(name).description
    means = [f"{one.path}.{value}" for one in about.history if (value := one.flux or one.magnitude)]
    stamps = [path.partition(".")[0] for path in about.stamps.values()]
    return {"drop": [*stamps, *(one.path for one in about.history)], "means": means}
