"""What nightwire knows of a survey, read from its description in ``surveys/<name>.toml``.

The folder that ``NIGHTWIRE_SURVEYS`` names holds descriptions of one's own; there they also
displace ours.

Nothing else in nightwire knows one survey from another.
"""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from nightwire.schemas.avro.plans.field_changes import Change, parse_changes
from nightwire.schemas.errors import SchemaError, meant
from nightwire.schemas.retention import Retention

FOLDER = files("nightwire.schemas") / "surveys"
STREAMS = frozenset({"voevents"})
"""Described as surveys are, but none: their records lie in a topic of the same name."""

Getter = Callable[[Any], Any]


@dataclass(frozen=True)
class Ids:
    """Where ids lie: dotted paths, of which the first that leads to an id counts."""

    alert: Sequence[str]
    object: Sequence[str]
    solar_system_object: Sequence[str] = ()
    visit: Sequence[str] = ()
    visit_divisor: int = 1
    absent: Sequence[Any] = ()


@dataclass(frozen=True)
class Measurement:
    """Where a detection keeps its time, position and flux, as names of its record's fields.

    Flux is a number of nJy (`flux`), of counts (`flux` and `zero_point`, the AB magnitude of one
    count: a field's name, or a number for all), or
    an AB magnitude and a sign (`magnitude`, `sign`).

    Attributes:
        path: Dotted path from the alert to the record, or to the array of records; empty where it
            is the alert itself.
        time: A number, or a text as ISO 8601 has it.
        time_zero: What to subtract to get a modified Julian date. [d]
        time_scale: ``tai`` or ``utc``.
        absent: Numbers that mean: no number.
        negative: Values of `sign` that mean a negative flux.
        forced: Whether the flux was measured where the object is known to be, detected or not.
        limit: Field of the faintest magnitude that would have been detected. [AB mag]
    """

    path: str
    time: str
    time_scale: str
    time_zero: float
    ra: str
    dec: str
    band: str | None = None
    bands: Mapping[str, str] = field(default_factory=dict)
    flux: str | None = None
    flux_error: str | None = None
    zero_point: str | float | None = None
    magnitude: str | None = None
    magnitude_error: str | None = None
    sign: str | None = None
    negative: Sequence[Any] = ()
    absent: Sequence[float] = ()
    forced: bool = False
    limit: str | None = None

    @property
    def paths(self) -> list[str]:
        """Dotted paths, from the alert, of all fields that are named here."""
        names = (self.time, self.ra, self.dec, self.band, self.flux, self.flux_error, self.zero_point)
        more = (self.magnitude, self.magnitude_error, self.sign)
        return [self.at(name) for name in (*names, *more) if isinstance(name, str)]

    def at(self, name: str) -> str:
        """Return the dotted path of one of its fields."""
        return f"{self.path}.{name}" if self.path else name

    def __post_init__(self) -> None:
        if self.time_scale not in ("tai", "utc"):
            raise SchemaError(f"time_scale is tai or utc, not {self.time_scale!r}")


@dataclass(frozen=True)
class Description:
    """A survey's description, as its file gives it."""

    name: str
    title: str
    ids: Ids
    source: Measurement
    history: Sequence[Measurement]
    stamps: Mapping[str, str]
    topic: Retention
    changes: Sequence[Change] = ()


def surveys() -> list[str]:
    """Return the names of the surveys that are described, sorted."""
    return sorted(_files().keys() - STREAMS)


def _files() -> dict[str, Traversable]:
    """Return the file of each survey that is described.

    Raises:
        SchemaError: The folder of one's own is not there.
    """
    own = os.environ.get("NIGHTWIRE_SURVEYS")
    if own and not Path(own).is_dir():
        raise SchemaError(f"NIGHTWIRE_SURVEYS={own}: there is no such folder")
    folders = [FOLDER, Path(own)] if own else [FOLDER]
    entries = (entry for folder in folders for entry in folder.iterdir())
    return {entry.name.removesuffix(".toml"): entry for entry in entries if entry.name.endswith(".toml")}


@cache
def description(name: str) -> Description:
    """Return the description of a survey.

    Raises:
        SchemaError: There is none, or it is faulty; the message says what there is.
    """
    known = _files()
    if name not in known:
        there = ", ".join(surveys())
        raise SchemaError(f"no description of a survey {name!r}; there are: {there}{meant(name, known)}")
    try:
        table = tomllib.loads(known[name].read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(f"surveys/{name}.toml: {error}") from error
    return parse_description(name, table)


def parse_description(name: str, table: Mapping[str, Any]) -> Description:
    """Return the description that a TOML table holds.

    Raises:
        SchemaError: A key is missing or unknown.
    """
    try:
        source = Measurement(**table["source"])
        return Description(
            name=name,
            title=table["title"],
            ids=Ids(**table["ids"]),
            source=source,
            history=[_history(source, changes) for changes in table.get("history", ())],
            stamps=table.get("stamps", {}),
            topic=Retention(**table.get("topic", {})),
            changes=parse_changes(table.get("change", ())),
        )
    except (KeyError, TypeError) as error:
        raise SchemaError(f"surveys/{name}.toml: {error}") from error


def _history(source: Measurement, changes: Mapping[str, Any]) -> Measurement:
    """Return a history's measurement: the source's with *changes*; a flux displaces a magnitude."""
    if "flux" in changes:
        source = replace(source, magnitude=None, magnitude_error=None, sign=None)
    return replace(source, **changes)


def retention(survey: str) -> Retention:
    """Return how a survey's topic is kept; the default for one without a description."""
    return description(survey).topic if survey in surveys() else Retention()


def getter(path: str) -> Getter:
    """Return a function that follows a dotted *path* through records; None where one is absent."""
    steps = path.split(".") if path else ()

    def get(value: Any) -> Any:
        for step in steps:
            if not isinstance(value, Mapping):
                return None
            value = value.get(step)
        return value

    return get


def first(getters: Sequence[Getter], absent: Sequence[Any]) -> Getter:
    """Return a function that gives the first of *getters*' values that is not None or *absent*."""

    def get(value: Any) -> Any:
        for one in getters:
            found = one(value)
            if found is not None and found not in absent:
                return found
        return None

    return get


def arrays(
    alert: Mapping[str, Any], history: Sequence[tuple[Getter, Measurement]]
) -> Iterator[tuple[Any, Measurement]]:
    """Yield the records of all histories of *alert*, each with its measurement."""
    for get, measurement in history:
        for record in get(alert) or ():
            yield record, measurement
