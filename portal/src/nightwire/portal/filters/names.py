"""What a filter may ask of an alert: attributes and fields with their units, for completion."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from nightwire.schemas import SchemaRegistry, sim_alert_schema

DEEPEST = 4
"""Records within records."""


class Name(NamedTuple):
    """One name.

    Attributes:
        name: As SQL writes it.
        unit: Its unit; empty without one.
        says: What it is.
    """

    name: str
    unit: str
    says: str


ATTRIBUTES = (
    Name("id", "", "of the alert"),
    Name("object_id", "", "of the object"),
    Name("solar_system_id", "", "of the solar-system object"),
    Name("visit", "", "the exposure"),
    Name("mjd_tai", "d", "time of the measurement (MJD, TAI)"),
    Name("flux", "nJy", "difference flux, negative where it faded"),
    Name("flux_error", "nJy", "its standard error"),
    Name("snr", "", "size of the flux over its error"),
    Name("magnitude", "mag", "AB magnitude of the size of the difference flux"),
    Name("ra", "deg", "right ascension (ICRS)"),
    Name("dec", "deg", "declination (ICRS)"),
    Name("band", "", "the filter of the telescope"),
    Name("galactic_longitude", "deg", "of the position"),
    Name("galactic_latitude", "deg", "of the position"),
    Name("healpix", "", "cell of the position: order 12, nested"),
    Name("history", "", "earlier measurements and forced photometry, by time"),
)
"""The canonical attributes, of every survey."""


def names(registry: str | None, survey: str) -> list[Name]:
    """Return the names that alerts of *survey* have, by its newest schema.

    Raises:
        SchemaError: There is no such survey, or the registry does not answer.
    """
    with SchemaRegistry(registry) as known:
        schema = next(known.of_survey(survey), sim_alert_schema() if survey == "sim" else None)
    return [*ATTRIBUTES, *(fields(schema, (), {}) if schema else ())]


def fields(schema: Mapping[str, Any], above: tuple[str, ...], known: dict[str, Any]) -> Iterator[Name]:
    """Yield the fields of a record, and of those within it."""
    known[schema["name"].rpartition(".")[2]] = schema
    for one in schema["fields"]:
        path = (*above, one["name"])
        inner = _record(one["type"], known)
        if inner is not None and len(path) < DEEPEST:
            yield from fields(inner, path, known)
        else:
            yield Name(".".join(path), str(one.get("unit", "")), str(one.get("doc", ""))[:160])


def _record(kind: Any, known: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the record that a type is or may be, null apart; None for all others."""
    options = [one for one in kind if one != "null"] if isinstance(kind, list) else [kind]
    first = options[0] if options else None
    found = known.get(first.rpartition(".")[2]) if isinstance(first, str) else first
    return found if isinstance(found, Mapping) and found.get("type") == "record" else None
