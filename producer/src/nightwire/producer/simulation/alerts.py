"""The alerts of one visit."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nightwire.producer.simulation import orbits
from nightwire.producer.simulation.chance import U64, hashed, uniform
from nightwire.producer.simulation.sky import Kind, Sky, Visit, VisitLog, chunks, first_night
from nightwire.producer.simulation.sources import SLOTS, Detections, Row, forced_rows, object_row, source_rows
from nightwire.producer.simulation.stamps import PATCHES, Scene, sides, stamps

Alert = dict[str, Any]

AT_ONCE = 500
"""Detections drawn in one go."""
STAMPS = ("cutoutDifference", "cutoutScience", "cutoutTemplate")


class Visits:
    """Draw the alerts of visits: the same seed and the same log give the same alerts.

    Args:
        sky: The field and its objects.
        log: The visits so far; the latest is the present one.
    """

    def __init__(self, sky: Sky, log: VisitLog) -> None:
        self._sky, self._log = sky, log
        self._kinds = np.asarray(sky.kinds(), dtype=np.int64)
        self._starts = {kind: sky.slots(kind).start for kind in Kind}
        self._depths = sky.depths()

    def alerts(self) -> Iterator[Alert]:
        """Yield the alerts of the present visit, in the order in which they leave."""
        visit = self._log.present
        for slots in chunks(self._sky.order(visit), AT_ONCE):
            seen = self._seen(np.asarray(slots), visit)
            for slot, key, row in zip(slots, seen.objects.tolist(), self._rows(seen), strict=True):
                yield self._alert(slot, key, row, visit)

    def _alert(self, slot: int, key: int, source: Row, visit: Visit) -> Alert:
        kind = Kind(self._kinds[slot])
        past, forced = self._history(kind, slot)
        moving = kind is Kind.MOVING
        static = not moving and kind is not Kind.UNMATCHED
        pictures = stamps(self._sky.seed, source["diaSourceId"], self._scene(source, visit))
        return {
            "diaSourceId": source["diaSourceId"],
            "observation_reason": self._sky.field[0],
            "target_name": f"{self._sky.field[0]}, lowdust",
            "diaSource": source,
            "prvDiaSources": past or None,
            "prvDiaForcedSources": None if moving else forced,
            "diaObject": object_row([*past, source]) if static else None,
            "ssSource": orbits.seen_moving(self._sky.seed, key, source) if moving else None,
            "mpc_orbits": orbits.orbit(self._sky.seed, key) if moving else None,
        } | dict(zip(STAMPS, pictures, strict=True))

    def _scene(self, source: Row, visit: Visit) -> Scene:
        return Scene(
            side=sides([source["bboxSize"]])[0],
            x=source["x"],
            y=source["y"],
            ra=source["ra"],
            dec=source["dec"],
            angle=visit.angle,
            science=source["scienceFlux"],
            template=source["templateFlux"],
            error=source["psfFluxErr"],
            patch=source["detector"] % PATCHES,
            visit=visit.id,
        )

    def _history(self, kind: Kind, slot: int) -> tuple[list[Row], list[Row]]:
        """Return the previous detections and the forced measurements of the object in *slot*."""
        if kind is Kind.VARIABLE:
            detections, forced = self._depths[slot]
            past = self._rows(self._seen_at(slot, self._log.latest(detections)))
            return past, forced_rows(self._sky.seed, self._seen_at(slot, self._log.latest(forced)))
        if kind not in (Kind.ONCE, Kind.TWICE):
            return [], []
        rank = slot - self._starts[kind]
        seats = [self._starts[Kind.NEW] + rank, self._starts[Kind.ONCE] + rank]
        visits = self._log.latest(2 if kind is Kind.TWICE else 1)
        rows = [
            self._rows(self._seen(np.array([seat]), at))[0] for seat, at in zip(seats, visits, strict=False)
        ]
        return rows, []

    def _rows(self, seen: Detections) -> list[Row]:
        return source_rows(self._sky.seed, seen)

    def _seen_at(self, slot: int, visits: Sequence[Visit]) -> Detections:
        """Return a variable's detections at *visits*."""
        return self._table(np.full(len(visits), slot), visits)

    def _seen(self, slots: Any, visit: Visit) -> Detections:
        """Return the detections in *slots* at *visit*."""
        return self._table(slots, [visit] * len(slots))

    def _table(self, slots: Any, visits: Sequence[Visit]) -> Detections:
        kinds = self._kinds[slots]
        ids = np.array([visit.id for visit in visits], dtype=np.int64)
        mjd = np.array([visit.mjd_tai for visit in visits])
        births, seats, age = self._births(slots, kinds, visits)
        objects = hashed(self._sky.seed, births, seats)
        moving = kinds == Kind.MOVING
        ra, dec = self._sky.positions(objects)
        if moving.any():
            moment = visits[-1].mjd_tai  # slots of moving objects are drawn visit by visit
            objects = np.where(moving, orbits.keys(self._sky.seed, slots, moment), objects)
            ra, dec = self._sky.positions(objects)
            east, north = orbits.drift(self._sky.seed, objects, moment)
            ra = np.where(moving, (ra + east / np.cos(np.radians(dec))) % 360.0, ra)
            dec = np.where(moving, dec + north, dec)
        static = ~moving & (kinds != Kind.UNMATCHED)
        return Detections(
            objects=objects,
            kinds=kinds,
            visits=ids,
            slots=np.asarray(slots),
            mjd=mjd,
            band=[visit.band for visit in visits],
            ra=ra,
            dec=dec,
            age=age,
            object_ids=np.where(static, births * SLOTS + seats + 1, 0),
            moving_ids=np.where(moving, orbits.public_ids(objects), 0),
            side=self._boxes(objects, kinds),
        )

    def _births(self, slots: Any, kinds: Any, visits: Sequence[Visit]) -> tuple[Any, Any, Any]:
        """Return the visit and the slot at which each object was new, and its age in visits."""
        births = np.array([visit.id for visit in visits], dtype=np.int64)
        births[kinds == Kind.VARIABLE] = first_night(self._sky.seed)
        seats, age = np.array(slots, dtype=np.int64), np.zeros(len(visits))
        for kind, ago in ((Kind.ONCE, 1), (Kind.TWICE, 2)):
            these = kinds == kind
            if these.any():
                births[these] = self._log.before(visits[0], ago).id
                seats[these] += self._starts[Kind.NEW] - self._starts[kind]
                age[these] = ago
        return births, seats, age

    def _boxes(self, objects: U64, kinds: Any) -> Any:
        """Return the side of each detection's box. [pixel]"""
        chance = uniform(self._sky.seed, objects, 131)
        small = 5 + (17 * chance).astype(np.int64)
        large = 84 + (7 * chance).astype(np.int64)
        middle = 50 + (13 * chance).astype(np.int64)
        return np.select([kinds == Kind.LARGE, kinds == Kind.UNMATCHED], [large, middle], small)
