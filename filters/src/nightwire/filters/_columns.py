"""Alerts as the columns that compiled filters read."""

from collections.abc import Iterable, Sequence

from nightwire.schemas import AlertDecoder, AlertTable, survey


def table_of(
    values: Sequence[bytes], names: Iterable[str], of_survey: str, decoder: AlertDecoder
) -> tuple[AlertTable, Sequence[int]]:
    """Return what programs read of a survey's alerts, and which of *values* those are.

    Args:
        values: Records; those that cannot be read are left out.
        names: What is read: ``Program.names``.
        of_survey: The survey.
        decoder: Reads them.
    """
    described = survey(of_survey)
    found = decoder.columns(values, AlertTable.fields(names, described), missing_ok=True)
    return AlertTable(found.batch, described), found.rows
