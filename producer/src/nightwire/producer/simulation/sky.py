"""The visits so far, and the objects that are seen in each of them.

Each alert of a visit has a *slot*, and a slot has a kind.  How many slots a kind has, and how long
its histories are, comes from the ranks of 32 real alerts (see `rubin_figures.json`): the quantiles
are laid out over the slots instead of drawn, so that a visit of a few hundred alerts has them
already.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum
from itertools import islice, pairwise

import numpy as np

from nightwire.producer.simulation.chance import F64, U64, hashed, uniform

BANDS = "ugrizy"
LOG_LENGTH = 800
"""Visits that histories reach back to; the longest real one has 777 forced measurements."""
# since 2017, and until a leap second is announced (IERS Bulletin C)
TAI_MINUS_UTC = timedelta(seconds=37)
MJD_ZERO = datetime(1858, 11, 17, tzinfo=UTC)
FIELD_RADIUS = 1.75
"""Radius of the field of view. [deg]"""
FIELDS = (
    ("ddf_cosmos", 150.11, 2.23),
    ("ddf_ecdfs", 52.98, -28.12),
    ("ddf_edfs_a", 58.90, -49.32),
    ("ddf_edfs_b", 63.60, -47.60),
    ("ddf_elaiss1", 9.45, -44.02),
    ("ddf_xmm_lss", 35.57, -4.82),
)
"""Rubin's deep-drilling fields: name, right ascension, declination. [deg, ICRS]"""


class Kind(IntEnum):
    """What raised an alert."""

    VARIABLE = 0  # seen at every visit, with a long history
    TWICE = 1  # new two visits ago
    ONCE = 2  # new at the visit before
    LARGE = 3  # a bright galaxy or star, with large stamps
    UNMATCHED = 4  # matched with no object
    MOVING = 5  # a solar-system object
    NEW = 6  # never seen before


SHARES = {
    Kind.VARIABLE: 2 / 31,
    Kind.TWICE: 0.5 / 31,
    Kind.ONCE: 1 / 31,
    Kind.LARGE: 1 / 32,
    Kind.UNMATCHED: 1 / 32,
    Kind.MOVING: 9 / 32,
    Kind.NEW: 1.0,  # the rest
}
SOURCES_AT = (2, 345, 376)
"""Previous detections of the real alerts of rank 29, 30 and 31 (of 0 … 31)."""
FORCED_AT = (0, 395, 777)
"""Forced measurements of the same three."""


@dataclass(frozen=True)
class Visit:
    """One exposure: its id, its middle [d, MJD TAI], its band and the field's angle [deg]."""

    id: int
    mjd_tai: float
    band: str
    angle: float


def visit_id(moment: datetime) -> int:
    """Return the id of a visit at *moment* (UTC): YYYYMMDD, then the second of the day."""
    seconds = moment.hour * 3600 + moment.minute * 60 + moment.second
    return int(f"{moment:%Y%m%d}{seconds:05}")


def mjd_tai(moment: datetime) -> float:
    """Return *moment* (aware) on the TAI scale. [d, MJD]"""
    return (moment + TAI_MINUS_UTC - MJD_ZERO) / timedelta(days=1)


class VisitLog:
    """The latest visits, oldest first; the first one follows a month of invented visits.

    Args:
        seed: Decides bands and angles.
        start: When the first visit visit_numbers, UTC.
    """

    def __init__(self, seed: int, start: datetime) -> None:
        self._seed = seed
        self._visits: deque[Visit] = deque(maxlen=LOG_LENGTH)
        for moment in _moments_before(start):
            self.open(moment, visit_id(moment))

    def open(self, moment: datetime, number: int) -> Visit:
        """Add the visit *number* at *moment* (UTC) and return it."""
        chance = uniform(self._seed, number, np.arange(2))
        visit = Visit(number, mjd_tai(moment), BANDS[int(chance[0] * len(BANDS))], 360.0 * float(chance[1]))
        self._visits.append(visit)
        return visit

    def renumber(self, number: int) -> None:
        """Give the present visit another number."""
        self._visits[-1] = replace(self._visits[-1], id=number)

    def latest(self, count: int) -> list[Visit]:
        """Return the *count* visits before the present one, oldest first."""
        last = len(self._visits) - 1
        return list(islice(self._visits, last - count, last))

    def before(self, visit: Visit, count: int) -> Visit:
        """Return the visit *count* before *visit*."""
        return self._visits[self._visits.index(visit) - count]

    @property
    def present(self) -> Visit:
        """The visit opened last."""
        return self._visits[-1]


def _moments_before(start: datetime) -> Iterator[datetime]:
    nights, each = 32, LOG_LENGTH // 32
    for night in range(nights, 0, -1):
        for exposure in range(each):
            yield start - timedelta(days=night) + timedelta(seconds=40 * exposure)


@dataclass(frozen=True)
class Sky:
    """A field and its population, decided by a seed and the number of alerts a visit."""

    seed: int
    alerts: int

    @property
    def field(self) -> tuple[str, float, float]:
        """Name, right ascension and declination of the field. [deg, ICRS]"""
        return FIELDS[self.seed % len(FIELDS)]

    def slots(self, kind: Kind) -> range:
        """Return the slots of *kind*; those of all kinds are 0 … alerts − 1."""
        edges = [0, *np.minimum(1.0, np.cumsum(list(SHARES.values())))]
        low, high = list(pairwise(edges))[kind]
        return range(round(low * self.alerts), round(high * self.alerts))

    def kinds(self) -> list[Kind]:
        """Return the kind of each slot."""
        return [kind for kind in Kind for _slot in self.slots(kind)]

    def depths(self) -> list[tuple[int, int]]:
        """Return the lengths of each variable's histories: detections, forced measurements."""
        share = np.arange(len(self.slots(Kind.VARIABLE))) / max(self.alerts - 1, 1)
        ranks = 31 * (1.0 - share) - 29
        detections = np.interp(ranks, (0, 1, 2), SOURCES_AT)
        forced = np.interp(ranks, (0, 1, 2), FORCED_AT)
        return [(round(float(a)), round(float(b))) for a, b in zip(detections, forced, strict=True)]

    def order(self, visit: Visit) -> list[int]:
        """Return the slots in the order in which their alerts leave."""
        ranks = np.argsort(hashed(self.seed, visit.id, np.arange(self.alerts)), kind="stable")
        return [int(slot) for slot in ranks]

    def positions(self, objects: U64) -> tuple[F64, F64]:
        """Return right ascension and declination of *objects*, all within the field. [deg, ICRS]"""
        _name, ra, dec = self.field
        distance = FIELD_RADIUS * np.sqrt(uniform(self.seed, objects, 11))
        angle = 2.0 * np.pi * uniform(self.seed, objects, 12)
        decs = dec + distance * np.cos(angle)
        return (ra + distance * np.sin(angle) / np.cos(np.radians(decs))) % 360.0, decs


def chunks(slots: Iterable[int], size: int) -> Iterator[list[int]]:
    """Cut *slots* into lists of at most *size*."""
    batch: list[int] = []
    for slot in slots:
        batch.append(slot)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def first_night(seed: int) -> int:
    """Return a visit id long ago, from which the ids of the variables of *seed* are made."""
    return int(f"{date(2025, 6, 1) + timedelta(days=seed % 300):%Y%m%d}{seed % 86_400:05}")
