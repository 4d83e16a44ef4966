"""Alerts as the columns that compiled filters read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from nightwire.filters._decoding import columns, schema_id
from nightwire.schemas import AlertDecoder, AlertTable, DecodeError, SchemaError, survey


def table_of(
    values: Sequence[bytes], names: Iterable[str], of_survey: str, decoder: AlertDecoder
) -> tuple[AlertTable, Sequence[int]]:
    """Return what programs read of a survey's alerts, and which of *values* those are.

    Args:
        values: Records; those that cannot be read are left out.
        names: What is read: ``Program.names``.
        of_survey: The survey.
        decoder: Reads them.

    Raises:
        NoColumn: The alerts' schemas do not agree on the types of some fields.
        RegistryAwayError: The registry does not answer.
    """
    described, wanted = survey(of_survey), list(names)
    paths = AlertTable.fields(wanted, described)
    for schema in _schemas(values, decoder):
        paths += AlertTable.fields(wanted, described, schema)
    found = columns(decoder, values, list(dict.fromkeys(paths)), patience=0.0)
    return AlertTable(found.batch, described), found.rows


def _schemas(values: Iterable[bytes], decoder: AlertDecoder) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas with which *values* were written, each once; of containers that of the first."""
    firsts: dict[int | None, bytes] = {}
    for value in values:
        firsts.setdefault(schema_id(value), value)
    for value in firsts.values():
        try:
            yield decoder.decode(value).schema
        except (DecodeError, SchemaError):
            continue
