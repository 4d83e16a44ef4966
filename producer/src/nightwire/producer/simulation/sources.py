"""Detections and forced measurements, and the object that sums up those of one static source."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

import numpy as np
import numpy.typing as npt

from nightwire.producer.simulation.chance import F64, U64, normal, uniform
from nightwire.producer.simulation.fields import field_types, in_order, rows
from nightwire.producer.simulation.sky import BANDS, Kind

Row = dict[str, Any]
Bools = npt.NDArray[np.bool_]

SLOTS = 1_000_000
"""Ids of a visit: a detection's id is that of its visit, followed by six digits of its slot."""
PROCESSING = 140.0 / 86_400
"""From the middle of the exposure to the record. [d]"""
PIXEL = 0.2
"""Side of a pixel. [arcsec]"""
PSF_PIXELS = 41 * 41
YOUNG = (Kind.NEW, Kind.ONCE, Kind.TWICE)
FLAGS = [name for name, kind in field_types("diaSource").items() if "boolean" in kind]
USUAL: Row = dict.fromkeys(FLAGS, False) | {
    "parentDiaSourceId": 0,
    "psfLnL": None,
    "psfNdata": PSF_PIXELS,
    "trailRaErr": None,
    "trailDecErr": None,
    "trailLengthErr": None,
    "trailAngleErr": None,
    "trailChi2": None,
    "trailNdata": 0,
    "timeWithdrawnMjdTai": None,
}


@dataclass(frozen=True)
class Detections:
    """Detections as columns of equal length, a row for each.

    Attributes:
        objects: Key of the object.
        kinds: Its kind.
        visits: Id of the visit.
        slots: Slot in that visit.
        mjd: Middle of the exposure. [d, MJD TAI]
        band: Filter band.
        ra: True right ascension. [deg, ICRS]
        dec: True declination. [deg, ICRS]
        age: Visits since the object was new.
        object_ids: Public id of the object; 0 for none.
        moving_ids: Public id of the solar-system object; 0 for none.
        side: Side of the detection's box. [pixel]
    """

    objects: U64
    kinds: npt.NDArray[np.int64]
    visits: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int64]
    mjd: F64
    band: Sequence[str]
    ra: F64
    dec: F64
    age: F64
    object_ids: npt.NDArray[np.int64]
    moving_ids: npt.NDArray[np.int64]
    side: npt.NDArray[np.int64]


def flux_error(seed: int, visits: npt.NDArray[np.int64], objects: U64) -> F64:
    """Return the standard error of a point source's flux, by the visit's depth. [nJy]"""
    depth = 230.0 + 330.0 * uniform(seed, visits, 21)
    return np.asarray(depth * (0.92 + 0.16 * uniform(seed, visits, objects, 22)))


def difference_flux(seed: int, seen: Detections, error: F64) -> F64:
    """Return the true difference flux, at least five times *error* away from zero. [nJy]"""
    chance = np.maximum(1e-6, 1.0 - uniform(seed, seen.objects, 31))
    swing = _light_curve(seed, seen)
    ratio = {
        Kind.VARIABLE: 5.0 + np.abs(swing) * 12.0 * chance**-0.35,
        Kind.MOVING: 5.0 + 70.0 * np.exp(0.9 * normal(seed, seen.objects, 32)),
        Kind.LARGE: 8.0 + 120.0 * chance**-0.25,
        Kind.UNMATCHED: 5.0 + 15.0 * chance**-0.3,
    }
    young = 5.0 * chance ** -np.where(uniform(seed, seen.objects, 33) < 0.9, 0.09, 0.6) * 1.4**seen.age
    signal = np.select([seen.kinds == kind for kind in ratio], list(ratio.values()), young)
    young_fades = np.isin(seen.kinds, YOUNG) & (uniform(seed, seen.objects, 34) < 0.2)
    sign = np.where((seen.kinds == Kind.VARIABLE) & (swing < 0) | young_fades, -1.0, 1.0)
    return np.asarray(sign * np.minimum(signal, 2000.0) * error)


def _light_curve(seed: int, seen: Detections) -> F64:
    """Return a sine in time, of a period of 0.1 … 100 days that is the object's own, in -1 … 1."""
    period = 10.0 ** (-1.0 + 3.0 * uniform(seed, seen.objects, 35))
    return np.asarray(np.sin(2.0 * np.pi * (seen.mjd / period + uniform(seed, seen.objects, 36))))


def source_rows(seed: int, seen: Detections) -> list[Row]:
    """Return a `diaSource` for each of the detections *seen*."""
    columns = _identity(seen) | _place(seed, seen) | _flux(seed, seen)
    for part in (_trail, _dipole, _shape):
        columns |= part(seed, seen, columns)
    return rows("diaSource", _listed(columns, seen), USUAL)


def _listed(columns: Mapping[str, Any], seen: Detections) -> dict[str, list[Any]]:
    return {name: np.asarray(column).tolist() for name, column in columns.items()} | {"band": list(seen.band)}


def source_ids(seen: Detections) -> npt.NDArray[np.int64]:
    """Return the ids of the detections."""
    return np.asarray(seen.visits * SLOTS + seen.slots + 1)


def _identity(seen: Detections) -> dict[str, Any]:
    return {
        "diaSourceId": source_ids(seen),
        "visit": seen.visits,
        "detector": (seen.objects % np.uint64(189)).astype(np.int64),
        "diaObjectId": _where(seen.object_ids != 0, seen.object_ids),
        "ssObjectId": _where(seen.moving_ids != 0, seen.moving_ids),
        "midpointMjdTai": seen.mjd,
        "timeProcessedMjdTai": seen.mjd + PROCESSING,
        "bboxSize": seen.side,
    }


def _place(seed: int, seen: Detections) -> dict[str, Any]:
    spread = 0.04 + 0.4 * uniform(seed, seen.visits, seen.objects, 41)  # [pixel]
    degrees = spread * PIXEL / 3600.0
    east = degrees * normal(seed, seen.visits, seen.objects, 42) / np.cos(np.radians(seen.dec))
    column = {"ra": seen.ra + east, "dec": seen.dec + degrees * normal(seed, seen.visits, seen.objects, 43)}
    return column | {
        "raErr": degrees,
        "decErr": degrees * 1.06,
        "ra_dec_Cov": degrees**2 * 0.2 * normal(seed, seen.visits, seen.objects, 44),
        "x": 60.0 + 3950.0 * uniform(seed, seen.visits, seen.objects, 45),
        "xErr": spread,
        "y": 60.0 + 3880.0 * uniform(seed, seen.visits, seen.objects, 46),
        "yErr": spread * 1.06,
    }


def _flux(seed: int, seen: Detections) -> dict[str, Any]:
    error = flux_error(seed, seen.visits, seen.objects)
    flux = difference_flux(seed, seen, error)
    noise = normal(seed, seen.visits, seen.objects, np.arange(51, 54)[:, None])
    template = np.where(seen.kinds == Kind.MOVING, 0.0, np.abs(flux)) * 30.0 * uniform(seed, seen.objects, 54)
    faint = np.abs(flux) < 8.0 * error
    template = np.where(faint, 300.0 * noise[0], np.maximum(template, -1.2 * np.minimum(flux, 0.0)))
    return {
        "psfFlux": flux,
        "psfFluxErr": error,
        "snr": np.abs(flux) / error * (1.0 + 0.01 * noise[2]),
        "isNegative": flux < 0,
        "apFlux": flux * 0.93 + 2.9 * error * noise[1],
        "apFluxErr": 2.9 * error,
        "scienceFlux": flux + template,
        "scienceFluxErr": error * 0.98,
        "templateFlux": template,
        "templateFluxErr": error * (0.04 + 0.35 * uniform(seed, seen.objects, 55)),
        "psfChi2": PSF_PIXELS * (1.0 + 0.035 * noise[0]),
        "reliability": np.clip(0.16 * np.abs(flux) / error - 0.75 + 0.3 * noise[1], 0.01, 0.9999),
    }


def _trail(seed: int, seen: Detections, columns: dict[str, Any]) -> dict[str, Any]:
    """Return the trail's fit, which fails for a third of the new sources."""
    fitted = (seen.kinds != Kind.NEW) | (uniform(seed, seen.visits, seen.objects, 61) > 0.36)
    length = 0.4 + 1.2 * uniform(seed, seen.visits, seen.objects, 62)
    values = {
        "trailFlux": columns["psfFlux"] * (0.95 + 0.2 * length / 1.6),
        "trailFluxErr": columns["psfFluxErr"] * 0.03,
        "trailRa": columns["ra"] + 1e-6 * length,
        "trailDec": columns["dec"] - 1e-6 * length,
        "trailLength": length,
        "trailAngle": 360.0 * uniform(seed, seen.visits, seen.objects, 63) - 180.0,
        "extendedness": uniform(seed, seen.visits, seen.objects, 64) ** 3,
    }
    return {name: _where(fitted, column) for name, column in values.items()}


def _dipole(seed: int, seen: Detections, columns: dict[str, Any]) -> dict[str, Any]:
    """Return the dipole's fit, which is tried where source and template are both there."""
    tried = _dipole_tried(seed, seen)
    flux = np.abs(columns["scienceFlux"]) + 1.0
    values = {
        "dipoleMeanFlux": flux,
        "dipoleMeanFluxErr": columns["psfFluxErr"] * 0.6,
        "dipoleFluxDiff": columns["psfFlux"],
        "dipoleFluxDiffErr": columns["psfFluxErr"] * 1.2,
        "dipoleLength": 0.05 + 0.2 * uniform(seed, seen.visits, seen.objects, 71),
        "dipoleAngle": 360.0 * uniform(seed, seen.visits, seen.objects, 72),
        "dipoleChi2": 1100.0 + 900.0 * uniform(seed, seen.visits, seen.objects, 73),
    }
    filled = {name: _where(tried, column) for name, column in values.items()}
    return filled | {"dipoleNdata": np.where(tried, 2100, 0), "dipoleFitAttempted": tried}


def _dipole_tried(seed: int, seen: Detections) -> Bools:
    share = np.select([seen.kinds == Kind.VARIABLE, seen.kinds == Kind.NEW], [0.35, 0.06], 0.0)
    return np.asarray(uniform(seed, seen.visits, seen.objects, 74) < share)


def _shape(seed: int, seen: Detections, columns: dict[str, Any]) -> dict[str, Any]:
    width = 0.12 + 0.2 * uniform(seed, seen.visits, 81)
    fitted = np.asarray([value is not None for value in columns["trailFlux"]])
    own = {
        "ixx": width * (0.8 + 0.5 * uniform(seed, seen.visits, seen.objects, 82)),
        "iyy": width * (0.8 + 0.5 * uniform(seed, seen.visits, seen.objects, 83)),
        "ixy": width * 0.15 * normal(seed, seen.visits, seen.objects, 84),
    }
    psf = {
        "ixxPSF": width,
        "iyyPSF": width * 1.02,
        "ixyPSF": width * 0.02 * normal(seed, seen.visits, seen.objects, 85),
    }
    return {name: _where(fitted, column) for name, column in own.items()} | psf


def _where(there: Bools, column: Any) -> npt.NDArray[np.object_]:
    """Return *column* with None where *there* is false."""
    values = np.asarray(column).astype(object)
    values[~there] = None
    return values


def forced_rows(seed: int, seen: Detections) -> list[Row]:
    """Return a `diaForcedSource` for each of the detections *seen*, at the object's position."""
    error = flux_error(seed, seen.visits, seen.objects)
    flux = difference_flux(seed, seen, error) + error * normal(seed, seen.visits, seen.objects, 91)
    columns = {
        "diaForcedSourceId": source_ids(seen) + SLOTS // 2,
        "diaObjectId": seen.object_ids,
        "ra": seen.ra,
        "dec": seen.dec,
        "visit": seen.visits,
        "detector": (seen.objects % np.uint64(189)).astype(np.int64),
        "psfFlux": flux,
        "psfFluxErr": error,
        "midpointMjdTai": seen.mjd,
        "scienceFlux": flux + 20.0 * error,
        "scienceFluxErr": error * 0.98,
        "timeProcessedMjdTai": seen.mjd + PROCESSING,
    }
    return rows("diaForcedSource", _listed(columns, seen), USUAL)


_PREFIXES = {f"{band}_" for band in BANDS}
EMPTY: dict[str, Any] = {
    name: 0 if name.endswith("Ndata") else None for name in field_types("diaObject") if name[:2] in _PREFIXES
}


def object_row(detections: Sequence[Row]) -> Row:
    """Return the `diaObject` of all *detections* of one object, oldest first, at least one.

    As in the first year of the survey, it has statistics for the band of the last one only.
    """
    last = detections[-1]
    same = [row for row in detections if row["band"] == last["band"]]
    place = {name: last[name] for name in ("diaObjectId", "ra", "raErr", "dec", "decErr", "ra_dec_Cov")}
    times = {
        "validityStartMjdTai": last["timeProcessedMjdTai"],
        "firstDiaSourceMjdTai": detections[0]["midpointMjdTai"],
        "lastDiaSourceMjdTai": last["midpointMjdTai"],
        "nDiaSources": len(detections),
    }
    return in_order("diaObject", EMPTY | place | _statistics(last["band"], same) | times)


def _statistics(band: str, rows: Sequence[Row]) -> dict[str, Any]:
    fluxes = [row["psfFlux"] for row in rows]
    errors = [row["psfFluxErr"] for row in rows]
    values: dict[str, Any] = {
        "psfFluxMean": fmean(fluxes),
        "psfFluxMeanErr": fmean(errors) / len(rows) ** 0.5,
        "psfFluxNdata": len(rows),
        "psfFluxMin": min(fluxes),
        "psfFluxMax": max(fluxes),
        "psfFluxErrMean": fmean(errors),
        "scienceFluxMean": fmean(row["scienceFlux"] for row in rows),
        "scienceFluxMeanErr": fmean(errors) / len(rows) ** 0.5,
    }
    if len(rows) > 1:
        values |= {"psfFluxSigma": pstdev(fluxes), "psfFluxMaxSlope": _steepest(rows)}
    return {f"{band}_{name}": value for name, value in values.items()}


def _steepest(rows: Sequence[Row]) -> float | None:
    """Return the steepest rise between two successive detections. [nJy/d]"""
    slopes = [
        (later["psfFlux"] - sooner["psfFlux"]) / (later["midpointMjdTai"] - sooner["midpointMjdTai"])
        for sooner, later in itertools.pairwise(rows)
        if later["midpointMjdTai"] > sooner["midpointMjdTai"]
    ]
    return max(slopes, default=None)
