"""What a VOEvent says of one survey's alerts beside what it says of any: a small table each, as data."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from nightwire.schemas import AlertView

FOLDER = files("nightwire.gateway") / "templates"
MOST_EARLIER = 10
"""Most earlier packets that one cites."""


@dataclass(frozen=True)
class Extra:
    """One more Param: a number of the alert's source, by the name that the survey gives it."""

    name: str
    unit: str = ""
    ucd: str = ""


@dataclass(frozen=True)
class Table:
    """What is said of one survey's alerts.

    Attributes:
        source: Field of the measurement that made the alert.
        earlier: Field of a measurement in the history: the id of the alert that it was.
        position_error: Fields of the errors of the position [deg]; none where the survey gives none.
        time: What the time is that of.
        param: Further numbers of the source.
    """

    source: str = ""
    earlier: str = ""
    position_error: tuple[str, ...] = ()
    time: str = ""
    param: tuple[Extra, ...] = ()

    def numbers(self, view: AlertView) -> list[tuple[Extra, float]]:
        """Return the further numbers that *view* has."""
        found = [(extra, _number(self._source(view).get(extra.name))) for extra in self.param]
        return [(extra, value) for extra, value in found if value is not None]

    def error(self, view: AlertView) -> float:
        """Return the radius of the position's error [deg]; 0 where the survey does not say it."""
        errors = [_number(self._source(view).get(name)) for name in self.position_error]
        return math.hypot(*(error for error in errors if error is not None))

    def earlier_ids(self, view: AlertView) -> list[object]:
        """Return the ids of the object's earlier alerts, the newest `MOST_EARLIER`, by time."""
        ids = (point.get(self.earlier) for point in view.history) if self.earlier else ()
        known = dict.fromkeys(one for one in ids if one and one != view.id)
        return list(known)[-MOST_EARLIER:]

    def _source(self, view: AlertView) -> Mapping[str, Any]:
        return view.get(self.source) or {}


@cache
def template_table(survey: str) -> Table:
    """Return what is said of the alerts of *survey*; nothing more than of any where there is no table."""
    file = FOLDER / f"{survey}.toml"
    if not file.is_file():
        return Table()
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    extras = tuple(Extra(**row) for row in content.pop("param", []))
    return Table(**{**content, "position_error": tuple(content["position_error"])}, param=extras)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
