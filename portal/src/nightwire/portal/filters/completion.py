"""Completions of the editor: an alert's attributes and fields, with their units."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from nightwire.schemas import SchemaRegistry, sim_alert_schema

MAX_DEPTH = 4
"""Most records within each other."""


class Completion(NamedTuple):
    """A name that the editor completes.

    Attributes:
        name: As SQL writes it.
        unit: Its unit; empty without one.
        says: Its description.
    """

    name: str
    unit: str
    says: str


ATTRIBUTES = (
    Completion("id", "", "of the alert"),
    Completion("object_id", "", "of the object"),
    Completion("solar_system_id", "", "of the solar-system object"),
    Completion("visit", "", "the exposure"),
    Completion("mjd_tai", "d", "time of the measurement (MJD, TAI)"),
    Completion("flux", "nJy", "difference flux, negative where it faded"),
    Completion("flux_error", "nJy", "its standard error"),
    Completion("snr", "", "size of the flux over its error"),
    Completion("magnitude", "mag", "AB magnitude of the size of the difference flux"),
    Completion("ra", "deg", "right ascension (ICRS)"),
    Completion("dec", "deg", "declination (ICRS)"),
    Completion("band", "", "the filter of the telescope"),
    Completion("galactic_longitude", "deg", "of the position"),
    Completion("galactic_latitude", "deg", "of the position"),
    Completion("healpix", "", "cell of the position: order 12, nested"),
    Completion("history", "", "earlier measurements and forced photometry, by time"),
)
"""The canonical attributes, of every survey."""


def completions(registry: str | None, survey: str) -> list[Completion]:
    """Return the attributes and fields of *survey*'s alerts, by its newest schema.

    Raises:
        SchemaError: There is no such survey, or the registry does not answer.
    """
    with SchemaRegistry(registry) as known:
        schema = next(known.of_survey(survey), sim_alert_schema() if survey == "sim" else None)
    return [*ATTRIBUTES, *(fields(schema, (), {}) if schema else ())]


def fields(schema: Mapping[str, Any], above: tuple[str, ...], known: dict[str, Any]) -> Iterator[Completion]:
    """Yield the fields of a record, and of those within it."""
    known[schema["name"].rpartition(".")[2]] = schema
    for one in schema["fields"]:
        path = (*above, one["name"])
        inner = _record(one["type"], known)
        if inner is not None and len(path) < MAX_DEPTH:
            yield from fields(inner, path, known)
        else:
            yield Completion(".".join(path), str(one.get("unit", "")), str(one.get("doc", ""))[:160])


def _record(kind: Any, known: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the record type of *kind*, which may be a union with null; None for other types."""
    options = [one for one in kind if one != "null"] if isinstance(kind, list) else [kind]
    first = options[0] if options else None
    found = known.get(first.rpartition(".")[2]) if isinstance(first, str) else first
    return found if isinstance(found, Mapping) and found.get("type") == "record" else None
