"""The canonical names of an alert's values, and the fields of a survey that they are made of."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from nightwire.schemas.avro.plans.schema import Types, field_at, has_field, kind, parse
from nightwire.schemas.survey_model.description import Measurement

if TYPE_CHECKING:
    from nightwire.schemas.survey_model.view import Survey

ID_ATTRIBUTES = {
    "id": "alert",
    "object_id": "object",
    "solar_system_id": "solar_system_object",
    "visit": "visit",
}
"""Ids of an alert, and what a survey's description calls them."""
NUMBER_ATTRIBUTES = ("mjd_tai", "flux", "flux_error", "snr", "magnitude", "ra", "dec")
"""Attributes of a measurement that are numbers."""
MEASUREMENT_ATTRIBUTES = (*NUMBER_ATTRIBUTES, "band")
"""Attributes of a measurement: of an alert, and of each point of its history."""
POSITION_ATTRIBUTES = ("galactic_longitude", "galactic_latitude", "healpix")
"""Attributes of an alert that are made of its position."""
ALERT_ATTRIBUTES = (*ID_ATTRIBUTES, *MEASUREMENT_ATTRIBUTES, *POSITION_ATTRIBUTES)
"""All attributes of an alert that are one value."""
LIGHT_CURVE_NUMBERS = ("mjd_tai", "flux", "flux_error", "ra", "dec")
"""Columns of a light curve that are numbers."""
LIGHT_CURVE_ATTRIBUTES = (*LIGHT_CURVE_NUMBERS, "band")
"""Columns of a light curve."""
SERIES_ATTRIBUTES = ("history", "light_curve")
"""Attributes of an alert that are arrays of measurements."""
DERIVED_SERIES = (*SERIES_ATTRIBUTES, "colour", "magnitudes")
"""What is made of all attributes of an alert's measurements."""
PRESENCE_MARK = "?"
"""Ends the name that asks whether a record is there: ``diaObject?``."""
MATCH_MARK = "@"
"""Begins the name of what catalogues add to an alert: no field of a survey's begins so."""


class MatchName(NamedTuple):
    """The name of a record that a catalogue adds to alerts, or of a truth value that a map does.

    Attributes:
        catalogue: Name of the catalogue or map.
        radius_mas: Largest separation [mas]; 0 for a map.
        version: Which version; empty where that is not decided yet.
    """

    catalogue: str
    radius_mas: int = 0
    version: str = ""

    def __str__(self) -> str:
        version = f"#{self.version}" if self.version else ""
        radius = f":{self.radius_mas}" if self.radius_mas else ""
        return f"{MATCH_MARK}{self.catalogue}{version}{radius}"

    @property
    def call(self) -> str:
        """How filters ask for it."""
        named = f"{self.catalogue!r}"
        return f"match({named}, {self.radius_mas / 1000:g})" if self.radius_mas else f"in_moc({named})"

    @property
    def plain(self) -> "MatchName":
        """The same as filters ask for it: without a version."""
        return self._replace(version="")

    @staticmethod
    def is_record(path: str) -> bool:
        """Return whether a dotted path is that of a match itself, none of its columns."""
        return path.startswith(MATCH_MARK) and ":" in path and "." not in path

    @classmethod
    def parse(cls, name: str) -> "MatchName":
        """Return the name in a column's, or a record's with its question mark."""
        record = name.removeprefix(MATCH_MARK).removesuffix(PRESENCE_MARK).partition(".")[0]
        named, _, radius = record.partition(":")
        catalogue, _, version = named.partition("#")
        return cls(catalogue, int(radius or 0), version)

    @classmethod
    def of(cls, catalogue: str, radius: float) -> "MatchName":
        """Return the name of a match within *radius*. [arcsec]

        Raises:
            ValueError: There is no such radius, or no catalogue can be called so.
        """
        if not 0.001 <= radius <= MAX_RADIUS:
            raise ValueError(f"a radius lies between 0.001 and {MAX_RADIUS:,} arcsec, not {radius:g}")
        return cls.of_map(catalogue)._replace(radius_mas=round(1000 * radius))

    @classmethod
    def of_map(cls, name: str) -> "MatchName":
        """Return the name of what a map says.

        Raises:
            ValueError: No map can be called so: marks of this name would be taken for others.
        """
        if not MARKS.isdisjoint(name):
            raise ValueError(f"no catalogue or map is called {name[:64]!r}")
        return cls(name)


MARKS = frozenset(f"{MATCH_MARK}{PRESENCE_MARK}#:.")
"""What tells the parts of a match's name apart."""

MAX_RADIUS = 3600
"""Largest separation of a match. [arcsec]"""

NOT_MATCHED = (
    "was not looked up before the filter ran: the engine does so where the catalogue's name and the radius "
    "are written as constants"
)
"""What the error says of a match that alerts have not."""


def source_fields(where: Measurement, attribute: str) -> list[str]:
    """Return the fields that an attribute is made of, the indispensable one first."""
    flux = [where.flux, where.zero_point] if where.flux else [where.magnitude, where.sign]
    error = [where.flux_error, where.zero_point] if where.flux else [where.magnitude_error, *flux]
    made: dict[str, list[Any]] = {
        "mjd_tai": [where.time],
        "band": [where.band],
        "ra": [where.ra],
        "dec": [where.dec],
        "flux": flux,
        "flux_error": error,
        "snr": [*flux, *error],
        "magnitude": flux,
        **{place: [where.ra, where.dec] for place in POSITION_ATTRIBUTES},
    }
    return [name for name in made[attribute] if isinstance(name, str)]


def required_fields(names: Iterable[str], survey: "Survey", schema: Mapping[str, Any] | None) -> list[str]:
    """Return the dotted paths of what *names* are made of; see `AlertTable.fields`."""
    ids = survey.description.ids
    paths = [path for kind in ID_ATTRIBUTES.values() for path in getattr(ids, kind)]
    types = None if schema is None else Types(parse(schema))
    paths += [path for name in names for path in _paths(name, survey, types)]
    return [path for path in dict.fromkeys(paths) if types is None or has_field(types, path)]


def source_paths(where: Measurement, attribute: str) -> list[str]:
    """Return the dotted paths of what an attribute of a measurement is made of."""
    return [where.at(name) for name in source_fields(where, attribute)]


def _paths(name: str, survey: "Survey", types: Types | None) -> list[str]:
    """Return the dotted paths that a name stands for."""
    if name.endswith(PRESENCE_MARK) and not name.startswith(MATCH_MARK):
        return [] if types is None else witness(name.removesuffix(PRESENCE_MARK), types)
    described = survey.description
    if name.startswith(MATCH_MARK):
        return source_paths(described.source, "healpix")
    kind, _, attribute = name.partition(".")
    if name in ID_ATTRIBUTES:
        return []
    if name == "stamps":
        return list(described.stamps.values())
    if kind in DERIVED_SERIES or (kind in SERIES_ATTRIBUTES and attribute in MEASUREMENT_ATTRIBUTES):
        chosen = [attribute] if kind in SERIES_ATTRIBUTES and attribute else list(MEASUREMENT_ATTRIBUTES)
        parts = [*described.history, *([] if kind == "history" else [described.source])]
        return [path for where in parts for one in ("mjd_tai", *chosen) for path in source_paths(where, one)]
    attribute = "healpix" if name == "healpix_at" else name
    if attribute in MEASUREMENT_ATTRIBUTES or attribute in POSITION_ATTRIBUTES:
        return source_paths(described.source, attribute)
    return [name]


def witness(path: str, types: Types) -> list[str]:
    """Return the field that shows best whether the record at *path* is there.

    The first that is never null, else the first.
    """
    if not has_field(types, path):
        return []
    leaves = _leaves(field_at(types, path.split("."), path), types)
    never = [name for name, nullable in leaves if not nullable]
    chosen = [*never, *(name for name, _ in leaves)]
    return [f"{path}.{chosen[0]}"] if chosen else [path]


def _leaves(schema: Any, types: Types) -> list[tuple[str, bool]]:
    """Return the names of a record's plain fields, and whether each may be null."""
    for branch in types.branches(schema):
        if kind(branch) == "array":
            return _leaves(branch["items"], types)
        if kind(branch) == "record":
            found = [(field["name"], types.branches(field["type"])) for field in branch["fields"]]
            return [(name, "null" in kinds) for name, kinds in found if not any(map(_deep, kinds))]
    return []


def _deep(branch: Any) -> bool:
    return kind(branch) in ("record", "array", "map")
