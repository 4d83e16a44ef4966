"""What must be read of alerts to answer for canonical names: the fields of a survey that they are made of."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from nightwire.schemas._canonical import NUMBERS, PLACES, ingredients
from nightwire.schemas._parse import parse
from nightwire.schemas._presence import MARK, witness
from nightwire.schemas._survey import Measurement
from nightwire.schemas._types import Types, has_field

if TYPE_CHECKING:
    from nightwire.schemas._view import Survey

IDS = {"id": "alert", "object_id": "object", "solar_system_id": "solar_system_object", "visit": "visit"}
"""Canonical names of ids, and what a survey's description calls them."""
MEASURED = (*NUMBERS, "band")
"""Attributes of a measurement."""
SERIES = ("history", "light_curve")
"""Arrays of measurements."""
WHOLE = (*SERIES, "colour", "magnitudes")
"""What is made of all attributes of measurements."""


def wanted(names: Iterable[str], survey: "Survey", schema: Mapping[str, Any] | None) -> list[str]:
    """Return the dotted paths of what *names* are made of; see `AlertTable.fields`."""
    ids = survey.description.ids
    paths = [path for kind in IDS.values() for path in getattr(ids, kind)]
    types = None if schema is None else Types(parse(schema))
    paths += [path for name in names for path in _paths(name, survey, types)]
    return [path for path in dict.fromkeys(paths) if types is None or has_field(types, path)]


def made_of(where: Measurement, attribute: str) -> list[str]:
    """Return the dotted paths of what an attribute of a measurement is made of."""
    return [f"{where.path}.{name}" for name in ingredients(where, attribute)]


def _paths(name: str, survey: "Survey", types: Types | None) -> list[str]:
    """Return the dotted paths that a name stands for."""
    if name.endswith(MARK):
        return [] if types is None else witness(name.removesuffix(MARK), types)
    described = survey.description
    kind, _, attribute = name.partition(".")
    if name in IDS:
        return []
    if name == "stamps":
        return list(described.stamps.values())
    if kind in WHOLE or (kind in SERIES and attribute in MEASURED):
        chosen = [attribute] if kind in SERIES and attribute else list(MEASURED)
        parts = [*described.history, *([] if kind == "history" else [described.source])]
        return [path for where in parts for one in ("mjd_tai", *chosen) for path in made_of(where, one)]
    attribute = "healpix" if name == "healpix_at" else name
    if attribute in MEASURED or attribute in PLACES:
        return made_of(described.source, attribute)
    return [name]
