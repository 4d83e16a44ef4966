"""Alerts as the columns that compiled filters read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from nightwire.schemas import AlertDecoder, AlertTable, DecodeError, SchemaError, survey
from nightwire.schemas.wire import is_container, unframe


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
    described, wanted = survey(of_survey), list(names)
    paths = AlertTable.fields(wanted, described)
    for schema in _schemas(values, decoder):
        paths += AlertTable.fields(wanted, described, schema)
    found = decoder.columns(values, list(dict.fromkeys(paths)), missing_ok=True)
    return AlertTable(found.batch, described), found.rows


def _schemas(values: Iterable[bytes], decoder: AlertDecoder) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas with which *values* were written, each once; of containers that of the first."""
    seen: set[int] = set()
    for value in values:
        try:
            number = 0 if is_container(value) else unframe(value)[0]
            if number not in seen:
                seen.add(number)
                yield decoder.decode(value).schema
        except (DecodeError, SchemaError):
            continue
