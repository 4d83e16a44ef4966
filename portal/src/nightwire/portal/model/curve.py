"""The light curve of an object: the measurements in its alerts, each once."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from nightwire.consumers import ReceivedAlert
from nightwire.consumers.alert import known_survey
from nightwire.portal.model.rows import to_utc
from nightwire.schemas import Point
from nightwire.schemas.survey_model import Measurement

ZERO_POINT = 31.4
"""AB magnitude of 1 nJy."""
FAINT = 3.0
"""Forced photometry below so many times its error is an upper limit."""
UNITS = {
    "mjd": "d", "mjd_tai": "d", "flux": "nJy", "flux_error": "nJy", "magnitude": "mag",
    "magnitude_error": "mag", "limit": "mag", "ra": "deg", "dec": "deg",
}  # fmt: skip
"""Unit of each column that has one."""


@dataclass(frozen=True)
class CurvePoint:
    """One measurement of a light curve; None for what is missing.

    Attributes:
        mjd: Time. [d, UTC]
        mjd_tai: The same on TAI. [d]
        band: Filter.
        kind: ``detection``, ``forced`` photometry, or ``limit``: nothing was seen.
        flux: Difference flux. [nJy]
        flux_error: [nJy]
        magnitude: Of the size of the flux. [AB mag]
        magnitude_error: [mag]
        limit: Faintest magnitude that would have been seen; of forced photometry below three times
            its error that of three errors. [AB mag]
        ra: [deg, ICRS]
        dec: [deg, ICRS]
        alert: Id of the alert, where the measurement is an alert's own.
    """

    mjd: float | None
    mjd_tai: float
    band: str
    kind: str
    flux: float | None
    flux_error: float | None
    magnitude: float | None
    magnitude_error: float | None
    limit: float | None
    ra: float | None
    dec: float | None
    alert: str | None = None


def curve_of(alerts: Iterable[ReceivedAlert]) -> list[CurvePoint]:
    """Return the measurements in *alerts*, by time; of equal ones the first alert's."""
    once: dict[tuple[float, str, str], CurvePoint] = {}
    for alert in alerts:
        for one in _points(alert):
            key = round(one.mjd_tai, 6), one.band, one.kind
            if key not in once or (one.alert and not once[key].alert):
                once[key] = one
    found = sorted(once.values(), key=lambda one: one.mjd_tai)
    dates = to_utc([one.mjd_tai for one in found]).tolist() if found else []
    return [replace(one, mjd=_finite(mjd)) for one, mjd in zip(found, dates, strict=True)]


def as_columns(curve: Sequence[CurvePoint]) -> dict[str, Any]:
    """Return the measurements as columns, shape (n,): numbers with NaN, or texts."""
    rows, found = [asdict(one) for one in curve], {}
    for column in fields(CurvePoint):
        values = [row[column.name] for row in rows]
        if column.name in UNITS:
            found[column.name] = np.array([math.nan if one is None else one for one in values], float)
        else:
            found[column.name] = np.array([one or "" for one in values], str)
    return found


def _points(alert: ReceivedAlert) -> Iterator[CurvePoint]:
    survey = known_survey(alert.survey)
    if survey is None or alert.view is None:
        return
    points: list[tuple[Point, Measurement, str | None]] = [
        (alert.view, survey.description.source, str(alert.alert_id))
    ]
    for get, where in survey.history:
        records = get(alert.alert) or ()
        points += [(Point(record, where), where, None) for record in records if isinstance(record, Mapping)]
    for point, where, alert_id in points:
        try:
            kind = "forced" if where.forced else "detection"
            one = _of_point(point, kind, where.limit and point.get(where.limit), alert_id)
        except (TypeError, ValueError):  # a field holds what its survey does not announce
            continue
        if one is not None:
            yield one


def _of_point(point: Point, kind: str, limit: Any, alert_id: str | None) -> CurvePoint | None:
    time, flux, error = point.mjd_tai, _finite(point.flux), _finite(point.flux_error)
    limit = _finite(limit) if flux is None else None
    if kind == "forced" and flux is not None and error is not None and error > 0 and flux < FAINT * error:
        limit = ZERO_POINT - 2.5 * math.log10(FAINT * error)
    if time is None or not math.isfinite(time) or (flux is None and limit is None):
        return None
    relative = abs(error / flux) if flux and error else None
    return CurvePoint(
        mjd=None,
        mjd_tai=time,
        band=str(point.band or "")[:20],
        kind="limit" if flux is None else kind,
        flux=flux,
        flux_error=error,
        magnitude=_finite(point.magnitude),
        magnitude_error=_finite(relative and 2.5 / math.log(10) * relative),
        limit=limit,
        ra=_finite(point.ra),
        dec=_finite(point.dec),
        alert=alert_id,
    )


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
