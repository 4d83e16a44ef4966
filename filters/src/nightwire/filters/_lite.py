"""The light form of a survey's alerts: no stamps, and of each history the number of points and their mean."""

from collections.abc import Sequence

from nightwire.filters.language import FilterError
from nightwire.schemas import SchemaError
from nightwire.schemas import survey as survey_called


def lite(name: str) -> dict[str, list[str]]:
    """Return what a request for survey *name* says so that its alerts come light: ``drop`` and ``means``.

    Raises:
        SchemaError: There is no such survey.
    """
    about = survey_called(name).description
    means = [f"{one.path}.{value}" for one in about.history if (value := one.flux or one.magnitude)]
    stamps = [path.partition(".")[0] for path in about.stamps.values()]
    return {"drop": [*stamps, *(one.path for one in about.history)], "means": means}


def made_light(
    survey: str, drop: Sequence[str], means: Sequence[str], *, light: bool
) -> dict[str, list[str]]:
    """Return what is left out of alerts, and the means that are added, as a request says it.

    Args:
        survey: Whose alerts; ``*`` for all.
        drop: Fields that are named to be left out.
        means: Fields of which a mean is asked for.
        light: Whether the alerts come in their light form, too.

    Raises:
        FilterError: They do, and are not of one survey that there is.
    """
    if light and survey == "*":
        raise FilterError("a light form needs a survey by its name: what is left out depends on it")
    try:
        usual = lite(survey) if light else {"drop": [], "means": []}
    except SchemaError as error:
        raise FilterError(str(error)) from error
    return {"drop": [*drop, *usual["drop"]], "means": [*means, *usual["means"]]}
