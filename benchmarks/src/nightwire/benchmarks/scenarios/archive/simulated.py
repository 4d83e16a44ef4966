"""An archive of many simulated rows: nights of a survey, without whole alerts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightwire.archive.storage import ALERTS, INDEX, Store, Table
from nightwire.archive.writing import COMMON, healpix, index_rows

NIGHTS = 10
PER_OBJECT = 20
"""Alerts of each object."""
CHUNK = 500_000
"""Rows of one commit."""
FIRST_NIGHT = np.datetime64("2026-01-01")
FIRST_MJD = 61041.5
BANDS = np.array(["u", "g", "r", "i", "z", "y"])
SOURCE = ("alerts.sim", 0)
OWN = ("apFlux", "apFluxErr", "reliability", "extendedness", "x", "y", "snr", "psfFluxErr", "psfFlux")
"""Fields of the survey's own."""


def fill(folder: Path, count: int, seed: int = 1) -> None:
    """Make an archive of *count* rows in *folder*, and compact it."""
    store = Store(folder)
    alerts, index = (Table(store, "sim", layout) for layout in (ALERTS, INDEX))
    begin: int | None = None
    for rows in chunks(count, seed):
        span = {SOURCE: (begin, (begin or 0) + len(rows))}
        index.append(index_rows(rows), span)
        alerts.append(rows, span)
        begin = span[SOURCE][1]
    for table in (index, alerts):
        table.compact()


def chunks(count: int, seed: int) -> Iterator[Any]:
    """Yield *count* rows, night after night."""
    rng = np.random.default_rng(seed)
    objects = max(1, count // PER_OBJECT)
    ra, dec = rng.uniform(0, 360, objects), np.degrees(np.arcsin(rng.uniform(-0.95, 0.05, objects)))
    size = min(CHUNK, -(-count // NIGHTS))
    for first in range(0, count, size):
        yield rows_of(rng, np.arange(first, min(first + size, count)), count, ra, dec)


def rows_of(rng: Any, numbers: Any, count: int, ra: Any, dec: Any) -> Any:
    """Return the rows of alerts by *numbers*; each is of one of the objects at *ra*, *dec*."""
    n, night = len(numbers), numbers * NIGHTS // count
    whose = rng.integers(0, len(ra), n)
    flux, error = rng.lognormal(8, 1.5, n), rng.lognormal(4, 0.3, n)
    at = pa.array(ra[whose] + rng.normal(0, 3e-5, n)), pa.array(dec[whose] + rng.normal(0, 3e-5, n))
    pixels = healpix(*at)
    columns = {
        "night": pa.array(FIRST_NIGHT + night.astype("timedelta64[D]")),
        "npix": pc.shift_right(pixels, 54),
        "_healpix_29": pixels,
        "id": pa.array(10**17 + numbers).cast(pa.string()),
        "object_id": pa.array(10**15 + whose).cast(pa.string()),
        "solar_system_id": pa.nulls(n, pa.string()),
        "visit": pa.array(numbers // 10_000),
        "mjd_tai": pa.array(FIRST_MJD + night + numbers * NIGHTS / count % 1 * 0.4),
        "ra": at[0],
        "dec": at[1],
        "band": pa.array(BANDS[rng.integers(0, 6, n)]),
        "flux": pa.array(flux),
        "flux_error": pa.array(error),
        "snr": pa.array(flux / error),
        "magnitude": pa.array(31.4 - 2.5 * np.log10(flux)),
        "partition": pa.array(np.zeros(n, np.int32)),
        "offset": pa.array(numbers),
        "timestamp": pa.array((numbers * 1000).astype("datetime64[us]"), pa.timestamp("us", tz="UTC")),
        "schema_id": pa.array(np.full(n, 100_100)),
    }
    own = pa.StructArray.from_arrays([pa.array(rng.normal(size=n)) for _ in OWN], list(OWN))
    return pa.table({name: columns[name] for name in COMMON} | {"diaSource": own})
