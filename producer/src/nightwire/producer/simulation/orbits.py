"""Moving objects: where they are, how that looks from Sun and Earth, and their orbits.

The geometry is a sketch: opposition, a circular motion, consistent distances and speeds; good for
trying filters and readers on, not for predicting anything.  Its fields are as full, and as empty,
as the real ones.
"""

import json
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from nightwire.producer.simulation.chance import F64, U64, hashed, normal, uniform
from nightwire.producer.simulation.fields import field_types, in_order

NIGHTS_IN_FIELD = 4.0
"""How long a moving object stays before another takes its slot. [d]"""
UNKNOWN = (
    *("created_at", "updated_at", "fitting_datetime", "not_normalized_rms"),
    *("yarkovsky", "srp", "a1", "a2", "a3", "dt"),
    *("yarkovsky_unc", "srp_unc", "a1_unc", "a2_unc", "a3_unc", "dt_unc"),
)
"""Elements that most orbits do not have."""
_OBLIQUITY = np.radians(23.4392911)
_LETTERS = "ABCDEFGHJKLMNOPQRSTUVWXY"


def keys(seed: int, slots: Any, mjd: float) -> U64:
    """Return the keys of the objects that are in *slots* at *mjd* [d]."""
    return hashed(seed, np.asarray(slots), int(mjd // NIGHTS_IN_FIELD), 5)


def drift(seed: int, objects: U64, mjd: float) -> tuple[F64, F64]:
    """Return how far *objects* have moved from their mean place by *mjd*: east and north. [deg]"""
    since = mjd % NIGHTS_IN_FIELD - NIGHTS_IN_FIELD / 2
    rate = 0.05 + 0.3 * uniform(seed, objects, 101)
    bearing = 2.0 * np.pi * uniform(seed, objects, 102)
    return np.asarray(since * rate * np.sin(bearing)), np.asarray(since * rate * np.cos(bearing))


def public_ids(objects: U64) -> npt.NDArray[np.int64]:
    """Return the ids under which *objects* are known."""
    return np.asarray(objects % np.uint64(10**13), dtype=np.int64) + 21_160_000_000_000_000


def designation(key: int) -> str:
    """Return a provisional designation, such as ``2011 QK42``."""
    year, half, order, cycle = 1995 + key % 30, key // 30 % 24, key // 720 % 24, key // 17_280 % 400
    return f"{year} {_LETTERS[half]}{_LETTERS[order]}{cycle or ''}"


def packed(name: str) -> str:
    """Return *name*, a provisional designation, in the Minor Planet Center's packed form."""
    century = {"19": "J", "20": "K"}[name[:2]]
    cycle = int(name[7:] or 0)
    tens = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[cycle // 10]
    return f"{century}{name[2:4]}{name[5]}{tens}{cycle % 10}{name[6]}"


def seen_moving(seed: int, key: int, source: dict[str, Any]) -> dict[str, Any]:
    """Return the `ssSource` of the detection *source* of the object of *key*."""
    chance = uniform(seed, key, np.arange(110, 120)).tolist()
    noise = normal(seed, key, source["visit"], np.arange(2)).tolist()
    rate = 0.05 + 0.3 * float(uniform(seed, key, 101)[0])
    bearing = 2.0 * np.pi * float(uniform(seed, key, 102)[0])
    offset = 0.08 * np.asarray(noise)  # [arcsec]
    row: dict[str, Any] = {
        "diaSourceId": source["diaSourceId"],
        "ssObjectId": source["ssObjectId"],
        "designation": designation(key),
        "ephRa": source["ra"] - float(offset[0]) / 3600.0 / float(np.cos(np.radians(source["dec"]))),
        "ephDec": source["dec"] - float(offset[1]) / 3600.0,
        "ephVmag": 18.0 + 6.0 * chance[0] if chance[5] < 0.7 else None,
        "ephRate": rate,
        "ephRateRa": rate * float(np.sin(bearing)),
        "ephRateDec": rate * float(np.cos(bearing)),
        "ephOffset": float(np.hypot(*offset)),
        "ephOffsetRa": float(offset[0]),
        "ephOffsetDec": float(offset[1]),
        "ephOffsetAlongTrack": None,
        "ephOffsetCrossTrack": None,
        "diaDistanceRank": 1,
    }
    row |= _geometry(source["ra"], source["dec"], 1.8 + 1.6 * chance[1], chance[2:])
    return in_order("ssSource", row)


def _geometry(ra: float, dec: float, helio: float, chance: list[float]) -> dict[str, Any]:
    """Return distances [au], velocities [km/s] and angles [deg] of an object near opposition."""
    towards = _unit(ra, dec)
    range_au = helio - 0.9 + 0.3 * chance[0]
    # the Earth is where the object is seen from, 1 au out
    sun = towards * range_au + _unit(ra, 0.0) * 1.0
    speed = 29.78 / helio**0.5
    across = np.cross([0.0, 0.0, 1.0], towards)
    velocity = across / np.linalg.norm(across) * speed + towards * (chance[1] - 0.5)
    seen_from = velocity - across / np.linalg.norm(across) * 29.78
    row: dict[str, Any] = {
        "elongation": 180.0 - 40.0 * chance[2],
        "phaseAngle": 20.0 * chance[2],
        "topoRange": float(range_au),
        "topoRangeRate": float(seen_from @ towards),
        "helioRange": float(np.linalg.norm(sun)),
        "helioRangeRate": float(velocity @ sun / np.linalg.norm(sun)),
    }
    for name, place, motion in (("helio", sun, velocity), ("topo", towards * range_au, seen_from)):
        row |= {f"{name}_{axis}": float(value) for axis, value in zip("xyz", place, strict=True)}
        row |= {f"{name}_v{axis}": float(value) for axis, value in zip("xyz", motion, strict=True)}
        row[f"{name}_vtot"] = float(np.linalg.norm(motion))
    return row | _other_coordinates(towards)


# rotation from ICRS, Hipparcos catalogue (ESA SP-1200), volume 1, section 1.5.3
_TO_GALACTIC = np.array(
    [
        [-0.0548755604, -0.8734370902, -0.4838350155],
        [+0.4941094279, -0.4448296300, +0.7469822445],
        [-0.8676661490, -0.1980763734, +0.4559837762],
    ]
)
_TO_ECLIPTIC = np.array(
    [
        [1.0, 0.0, 0.0],
        [0.0, np.cos(_OBLIQUITY), np.sin(_OBLIQUITY)],
        [0.0, -np.sin(_OBLIQUITY), np.cos(_OBLIQUITY)],
    ]
)


def _other_coordinates(towards: F64) -> dict[str, float]:
    longitude, latitude = _angles(_TO_ECLIPTIC @ towards)
    galactic = _angles(_TO_GALACTIC @ towards)
    return {"eclLambda": longitude, "eclBeta": latitude, "galLon": galactic[0], "galLat": galactic[1]}


def _unit(ra: float, dec: float) -> F64:
    a, d = np.radians(ra), np.radians(dec)
    return np.array([np.cos(d) * np.cos(a), np.cos(d) * np.sin(a), np.sin(d)])


def _angles(vector: F64) -> tuple[float, float]:
    x, y, z = vector.tolist()
    return float(np.degrees(np.arctan2(y, x)) % 360.0), float(np.degrees(np.arcsin(np.clip(z, -1.0, 1.0))))


@lru_cache(maxsize=4096)
def orbit(seed: int, key: int) -> dict[str, Any]:
    """Return the `mpc_orbits` of the object of *key*; four in nine have little more than a name."""
    name = designation(key)
    chance = uniform(seed, key, np.arange(130, 146)).tolist()
    axis, eccentricity = 2.1 + 1.2 * chance[0], 0.3 * chance[1]
    row: dict[str, Any] = dict.fromkeys(field_types("mpc_orbits")) | {
        "id": 0,
        "designation": name,
        "packed_primary_provisional_designation": packed(name),
        "unpacked_primary_provisional_designation": name,
        "q": axis * (1.0 - eccentricity),
        "e": eccentricity,
        "node": 360.0 * chance[2],
    }
    if chance[15] < 4 / 9:
        return row
    row |= _elements(axis, chance)
    if chance[14] < 0.4:
        row |= dict.fromkeys(UNKNOWN, 0.0)
        row |= dict.fromkeys(
            ("created_at", "updated_at", "fitting_datetime"), datetime(1970, 1, 1, tzinfo=UTC)
        )
    return row | {"mpc_orb_jsonb": _solution(seed, key, row)}


def _elements(axis: float, chance: list[float]) -> dict[str, Any]:
    period = 365.25 * axis**1.5
    observed = 60 + int(600 * chance[3])
    arc = 3000.0 + 9000.0 * chance[4]
    errors = ("a", "q", "e", "i", "node", "argperi", "peri_time", "mean_anomaly", "period", "mean_motion")
    return {f"{name}_unc": 10.0 ** (-8.0 + 3.0 * chance[5]) for name in errors} | {
        "orbit_type_int": 11,
        "u_param": int(3 * chance[6]),
        "nopp": 3 + int(15 * chance[7]),
        "arc_length_total": arc,
        "arc_length_sel": arc,
        "nobs_total": observed,
        "nobs_total_sel": observed - 7,
        "a": axis,
        "i": 25.0 * chance[8],
        "argperi": 360.0 * chance[9],
        "peri_time": 61_000.0 + period * (chance[10] - 0.5),
        "mean_anomaly": 360.0 * chance[11],
        "period": period,
        "mean_motion": 360.0 / period,
        "epoch_mjd": 61_000.0,
        "h": 15.0 + 5.0 * chance[12],
        "g": 0.15,
        "normalized_rms": 0.5 + 0.5 * chance[13],
        "earth_moid": 0.3 + chance[13],
    }


def _solution(seed: int, key: int, row: dict[str, Any]) -> str:
    """Return the orbit solution as JSON: elements and covariances, 5 to 8 kB as in real ones."""
    names = ("q", "e", "i", "node", "argperi", "peri_time")
    values = {name: row[name] for name in names}
    return json.dumps(
        {
            "CAR": _fit(seed, key, 1, dict.fromkeys(("x", "y", "z", "vx", "vy", "vz"), 0.0)),
            "COM": _fit(seed, key, 2, values),
            "epoch_data": {"epoch": row["epoch_mjd"], "timeform": "MJD", "timesystem": "TDT"},
            "magnitude_data": {"G": row["g"], "H": row["h"], "photometric_model": "simulated"},
            "designation_data": {name: row[name] for name in row if name.endswith("designation")},
            "orbit_fit_statistics": {
                name: row[name] for name in ("nopp", "u_param", "nobs_total", "nobs_total_sel")
            },
        }
    )


def _fit(seed: int, key: int, number: int, values: dict[str, float]) -> dict[str, Any]:
    """Return one fit: values, uncertainties, covariance of ten parameters, six of them fitted."""
    chance = normal(seed, key, number, np.arange(200, 264)).tolist()
    covariance: dict[str, str | None] = {}
    for row in range(10):
        for column in range(row, 10):
            fitted = column < 6
            covariance[f"cov{row}{column}"] = f"{1e-14 * chance[row * 6 + column]:.35f}" if fitted else None
    return {
        "covariance": covariance,
        "eigenvalues": [abs(value) * 1e-9 for value in chance[:6]],
        "coefficient_names": list(values),
        "coefficient_values": [value + chance[index] for index, value in enumerate(values.values())],
        "coefficient_uncertainties": [abs(value) * 1e-8 for value in chance[6:12]],
    }
