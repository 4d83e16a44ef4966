"""Random alerts: good ones, and some whose values are null, NaN, infinite, huge, empty."""

import math
import random
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from nightwire.schemas import AlertTable, AlertView, survey

SIM = survey("sim")

BANDS = ["u", "g", "r", "i", "z", "y"]
REASONS = ["main", "AP"]
ODD_TEXTS = ("", "R", " r", "Main", "a_b%", "nan", "1e5", "-7", "\u03b2 Lyr", "r" * 300)
USUAL_TEXTS = frozenset({*BANDS, *REASONS})

HOW_ODD = (0, 0, 0.3, 0.5, 0.8, 0.9)
"""Shares of odd values, of which each alert, and each history, has one."""

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
ALWAYS = ("diaSourceId", "visit")
"""What no alert is without."""


def odd_float(random_: random.Random) -> float | None:
    """Return something that is no ordinary number."""
    extreme = random_.choice([0.0, -0.0, 1e308, 5e-324])
    return random_.choice([None, None, math.nan, math.nan, math.inf, math.inf, -math.inf, extreme])


def odd_int(random_: random.Random) -> int | None:
    """Return a whole number that overflows 64 bits, or a float's, in computations, or None."""
    small = random_.choice([0, -1, 2**53 + 1])
    return random_.choice([None, small, 2**62, 2**62 + 1, 2**63 - 1, 1 - 2**63, -(2**63)])


def odd_text(random_: random.Random) -> str | None:
    """Return a text that no survey should send, or nothing."""
    return random_.choice([None, None, *ODD_TEXTS])


ODD: dict[Any, Callable[[random.Random], Any]] = {
    pa.float64(): odd_float,
    pa.int64(): odd_int,
    pa.string(): odd_text,
    pa.bool_(): lambda random_: None,
}
"""By the type of a field: what makes its odd values."""


def source(random_: random.Random, odd: float) -> dict[str, Any]:
    """Return one measurement, of whose values the share *odd* are no ordinary ones."""
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
        "reason": random_.choice(REASONS),
    }
    return {name: _perhaps(random_, odd, name, value) for name, value in usual.items()}


def _perhaps(random_: random.Random, odd: float, name: str, value: Any) -> Any:
    if random_.random() >= odd:
        return value
    found = ODD[SOURCE[name]](random_)
    return value if found is None and name in ALWAYS else found


def _earlier(random_: random.Random) -> list[dict[str, Any]] | None:
    count = random_.choice([None, 0, 0, 1, 2, 3, 5, 9, 20])
    if count is None:
        return None
    odd = random_.choice(HOW_ODD)
    points = [source(random_, odd) for _ in range(count)]
    return [{name: point[name] for name in EARLIER} for point in points]


def alert(random_: random.Random) -> dict[str, Any]:
    """Return one alert, as decoding gives it."""
    odd = random_.choice(HOW_ODD)
    own = source(random_, odd)
    measured = {
        "diaObjectId": 5,
        "nDiaSources": odd_int(random_) if random_.random() < odd else random_.randrange(50),
        "g_psfFluxMean": odd_float(random_) if random_.random() < odd else random_.gauss(0, 3_000),
    }
    return {
        "diaSourceId": own["diaSourceId"],
        "diaSource": own,
        "diaObject": measured if random_.random() < 0.7 else None,
        **{name: _earlier(random_) for name in ARRAYS},
    }


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
    """Return them in SQLite: tables ``alerts`` and ``history``.  It takes NaN for NULL."""
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
