"""Random alerts, a third of whose values are odd: null, NaN, infinite, huge, empty."""

import math
import random
import sqlite3
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from nightwire.schemas import AlertTable, AlertView, survey

SIM = survey("sim")

BANDS = ["u", "g", "r", "i", "z", "y"]

SOURCE: dict[str, Any] = {
    "diaSourceId": pa.int64(),
    "diaObjectId": pa.int64(),
    "ssObjectId": pa.int64(),
    "visit": pa.int64(),
    "midpointMjdTai": pa.float64(),
    "ra": pa.float64(),
    "dec": pa.float64(),
    "band": pa.string(),
    "psfFlux": pa.float64(),
    "psfFluxErr": pa.float64(),
    "reliability": pa.float64(),
    "trailLength": pa.float64(),
    "isDipole": pa.bool_(),
    "psfNdata": pa.int64(),
    "parentDiaSourceId": pa.int64(),
    "reason": pa.string(),
}
OBJECT: dict[str, Any] = {"diaObjectId": pa.int64(), "nDiaSources": pa.int64(), "g_psfFluxMean": pa.float64()}
EARLIER = ("midpointMjdTai", "ra", "dec", "band", "psfFlux", "psfFluxErr")
ARRAYS = ("prvDiaSources", "prvDiaForcedSources")


def odd_float(random_: random.Random) -> float | None:
    """Return something that is no ordinary number."""
    return random_.choice([None, None, math.nan, math.inf, -math.inf, 0.0, -0.0, 1e308, 5e-324])


def odd_int(random_: random.Random) -> int | None:
    """Return a whole number that is none for floats, or nothing."""
    return random_.choice([None, None, 0, -1, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)])


def source(random_: random.Random, odd: float = 1 / 3) -> dict[str, Any]:
    """Return one measurement."""
    usual = {
        "diaSourceId": random_.randrange(1, 1 << 60),
        "diaObjectId": random_.randrange(1, 1 << 60),
        "ssObjectId": random_.choice([None, 0, 7]),
        "visit": random_.randrange(1, 9_999),
        "midpointMjdTai": random_.uniform(60_000, 60_100),
        "ra": random_.uniform(0, 360),
        "dec": random_.uniform(-90, 90),
        "band": random_.choice(BANDS),
        "psfFlux": random_.gauss(0, 3_000),
        "psfFluxErr": random_.uniform(10, 400),
        "reliability": random_.random(),
        "trailLength": random_.uniform(0, 3),
        "isDipole": random_.random() < 0.5,
        "psfNdata": random_.randrange(0, 40),
        "parentDiaSourceId": random_.randrange(-9, 9),
        "reason": random_.choice(["main", "AP", "a_b%", "", "Main"]),
    }
    for name, kind in SOURCE.items():
        if random_.random() < odd and name not in ("diaSourceId", "visit"):
            if kind == pa.float64():
                usual[name] = odd_float(random_)
            elif kind == pa.int64():
                usual[name] = odd_int(random_)
            elif random_.random() < 0.5:
                usual[name] = None
    return usual


def _earlier(random_: random.Random) -> list[dict[str, Any]] | None:
    count = random_.choice([None, 0, 1, 2, 3, 5, 9, 20])
    if count is None:
        return None
    odd = random_.choice([0, 0, 0.02, 1 / 3])
    points = [source(random_, odd) for _ in range(count)]
    return [{name: point[name] for name in EARLIER} for point in points]


def alert(random_: random.Random) -> dict[str, Any]:
    """Return one alert, as decoding gives it."""
    own = source(random_)
    there = random_.random() < 0.7
    measured: dict[str, Any] = {
        "diaObjectId": 5,
        "nDiaSources": random_.randrange(50),
        "g_psfFluxMean": random_.gauss(0, 3_000),
    }
    if random_.random() < 1 / 3:
        measured["g_psfFluxMean"] = odd_float(random_)
    return {
        "diaSourceId": own["diaSourceId"],
        "diaSource": own,
        "diaObject": measured if there else None,
        **{name: _earlier(random_) for name in ARRAYS},
    }


def odd_share(of: Sequence[dict[str, Any]]) -> float:
    """Return the share of values that are no ordinary number: nothing, NaN, infinite, beyond floats, a text.

    A list counts as one value, odd where it is empty or not there.
    """
    values = [value for one in of for value in one["diaSource"].values()]
    lists = [one[name] for one in of for name in ARRAYS]
    points = [value for some in lists for point in some or () for value in point.values()]
    odd = [*map(_is_odd, values), *(not some for some in lists), *map(_is_odd, points)]
    return sum(odd) / len(odd)


def _is_odd(value: Any) -> bool:
    if isinstance(value, float):
        return not 1e-300 < abs(value) < 1e300
    return value is None or isinstance(value, str) or abs(value) > 1 << 53


def alerts(seed: int, count: int) -> list[dict[str, Any]]:
    """Return alerts, the same for the same *seed*."""
    random_ = random.Random(seed)
    return [alert(random_) for _ in range(count)]


def views(of: Sequence[dict[str, Any]]) -> list[AlertView]:
    """Return them as a filter's function sees them."""
    return [SIM.view(one) for one in of]


def table(of: Sequence[dict[str, Any]]) -> AlertTable:
    """Return them as columns."""
    columns = {"diaSourceId": pa.array([one["diaSourceId"] for one in of], pa.int64())}
    for record, fields in (("diaSource", SOURCE), ("diaObject", OBJECT)):
        for name, kind in fields.items():
            values = [(one[record] or {}).get(name) for one in of]
            columns[f"{record}.{name}"] = pa.array(values, kind)
    for record in ARRAYS:
        for name in EARLIER:
            lists = [None if one[record] is None else [point[name] for point in one[record]] for one in of]
            columns[f"{record}.{name}"] = pa.array(lists, pa.list_(SOURCE[name]))
    return AlertTable(pa.RecordBatch.from_pydict(columns), SIM)


CANONICAL = (
    *("id", "object_id", "solar_system_id", "visit", "ra", "dec", "galactic_longitude", "galactic_latitude"),
    *("healpix", "mjd_tai", "band", "flux", "flux_error", "snr", "magnitude"),
)
POINT = ("mjd_tai", "flux", "flux_error", "snr", "magnitude", "band")


def database(of: Sequence[dict[str, Any]]) -> sqlite3.Connection:
    """Return them in SQLite: a table ``alerts``, and one of their ``history``.  It takes NaN for NULL."""
    found = sqlite3.connect(":memory:")
    own = [f'"diaSource.{name}"' for name in SOURCE]
    found.execute(f"CREATE TABLE alerts (at INTEGER PRIMARY KEY, {', '.join([*CANONICAL, *own])})")
    found.execute(f"CREATE TABLE history (alert INTEGER, place INTEGER, {', '.join(POINT)})")
    found.execute("CREATE INDEX of_alert ON history (alert)")
    for at, (one, view) in enumerate(zip(of, views(of), strict=True)):
        row = [at, *(getattr(view, name) for name in CANONICAL), *(one["diaSource"][name] for name in SOURCE)]
        found.execute(f"INSERT INTO alerts VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 - marks alone
        for place, point in enumerate(view.history):
            values = [at, place, *(getattr(point, name) for name in POINT)]
            found.execute(f"INSERT INTO history VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608
    return found
