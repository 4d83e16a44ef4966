"""The summary of a static object: what all its detections have in common."""

import itertools
from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Any

from nightwire.producer._fields import field_types, in_order
from nightwire.producer._sky import BANDS
from nightwire.producer._sources import Row

_PREFIXES = {f"{band}_" for band in BANDS}
EMPTY: dict[str, Any] = {
    name: 0 if name.endswith("Ndata") else None for name in field_types("diaObject") if name[:2] in _PREFIXES
}


def object_row(detections: Sequence[Row]) -> Row:
    """Return the `diaObject` of *detections*: all of one object, oldest first, at least one.

    As in the first year of the survey, there are statistics for the band of the last one only.
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
