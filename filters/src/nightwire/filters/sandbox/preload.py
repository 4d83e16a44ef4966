"""Modules that are imported before a process is confined, after which it can import nothing.

The basic modules are in every process, a group of heavy ones where a filter imports one of them.
Some modules read files at their first use: exercises make them do so beforehand.
"""

import importlib
import importlib.util
import logging
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

from nightwire.filters.language import MODULES, FilterError, imported_packages, parsed
from nightwire.filters.sandbox.types import RowFilter

log = logging.getLogger(__name__)

BASIC = (
    *("abc", "bisect", "calendar", "cmath", "collections", "collections.abc", "copy", "dataclasses"),
    *("datetime", "decimal", "enum", "fractions", "functools", "heapq", "itertools", "math", "numbers"),
    *("operator", "random", "re", "statistics", "string", "typing", "_strptime", "locale", "unicodedata"),
    *("encodings.ascii", "encodings.idna", "encodings.latin_1", "encodings.utf_16", "linecache"),
    *("numpy", "numpy.char", "numpy.fft", "numpy.lib.recfunctions", "numpy.lib.stride_tricks"),
    *("numpy.linalg", "numpy.ma", "numpy.polynomial", "numpy.random", "numpy.rec", "numpy.typing"),
    *("pyarrow", "pyarrow.compute"),
)
"""Modules in every process."""

GROUPS: Mapping[str, Sequence[str]] = {
    "astropy": (
        *("astropy.constants", "astropy.convolution", "astropy.coordinates", "astropy.cosmology"),
        *("astropy.io.fits", "astropy.modeling", "astropy.modeling.fitting", "astropy.modeling.models"),
        *("astropy.nddata", "astropy.stats", "astropy.table", "astropy.time", "astropy.timeseries"),
        *("astropy.uncertainty", "astropy.units", "astropy.wcs"),
    ),
    "pandas": ("pandas", "pandas.api.types"),
    "scipy": (
        *("scipy.constants", "scipy.fft", "scipy.integrate", "scipy.interpolate", "scipy.linalg"),
        *("scipy.ndimage", "scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.spatial"),
        *("scipy.special", "scipy.stats"),
    ),
    "healpy": ("healpy",),
}
"""By package: its modules that a filter can import in the sandbox; others it cannot."""


SURVEY = "survey:"
"""What the group of a survey's description begins with: a confined process reads no files."""


def survey_group(name: str) -> str:
    """Return the group that is the description of survey *name*."""
    return f"{SURVEY}{name}"


def groups_imported(filters: Iterable[RowFilter]) -> frozenset[str]:
    """Return the groups that *filters* import, of those that are installed."""
    return frozenset(group for one in filters for group in _groups(one) if _installed(group))


def _groups(one: RowFilter) -> frozenset[str]:
    return _imported(one.source) if one.imports is None else one.imports & GROUPS.keys()


@lru_cache(maxsize=4096)
def _imported(source: str) -> frozenset[str]:
    try:
        return imported_packages(parsed(source)) & GROUPS.keys()
    except FilterError:
        return frozenset()


@lru_cache(maxsize=len(GROUPS))
def _installed(group: str) -> bool:
    return importlib.util.find_spec(group) is not None


def import_advice(module: str) -> str:
    """Return which modules there are instead of a *module* that the sandbox has not."""
    package = module.split(".")[0]
    if package not in MODULES:
        return f"a filter may not import {package}"
    if package not in GROUPS:
        return "the sandbox has " + ", ".join(name for name in BASIC if name.split(".")[0] == package)
    if not _installed(package):
        return f"{package} is not installed here"
    return "of it the sandbox has " + ", ".join(GROUPS[package])


def preload_basics() -> None:
    """Import the modules of every process, and use them a little."""
    for module in BASIC:
        importlib.import_module(module)
    _exercise_basics()


def preload(group: str) -> None:
    """Import a group of heavy modules and use it a little; or read a survey's description.

    Raises:
        ImportError: It is not installed.
        SchemaError: There is no such survey, or its description is faulty.
    """
    if group.startswith(SURVEY):
        from nightwire.schemas import survey

        survey(group.removeprefix(SURVEY))
        return
    for module in GROUPS[group]:
        importlib.import_module(module)
    if exercise := EXERCISES.get(group):
        with warnings.catch_warnings(action="ignore"):
            exercise()


def _exercise_basics() -> None:
    from datetime import datetime

    import numpy as np
    import pyarrow as pa

    from nightwire.schemas import SchemaError, survey, surveys
    from nightwire.schemas.avro import best_engine
    from nightwire.schemas.survey_model import mjd_tai

    best_engine()
    mjd_tai(60000.0, "utc")
    for name in surveys():
        with suppress(SchemaError):  # one of an owner's surveys may be faulty
            survey(name)
    datetime.strptime("2026-01-01", "%Y-%m-%d")  # noqa: DTZ007 - imports what parses
    np.random.default_rng().normal()
    pa.array([1.0, None]).to_numpy(zero_copy_only=False)
    repr(np.array([1.5, np.nan]))


def _exercise_astropy() -> None:
    from astropy import units as u
    from astropy.coordinates import AltAz, EarthLocation, SkyCoord, get_body, get_sun
    from astropy.stats import sigma_clipped_stats
    from astropy.table import Table
    from astropy.time import Time
    from astropy.timeseries import LombScargle
    from astropy.utils import iers

    iers.conf.auto_download = False
    iers.conf.iers_degraded_accuracy = "ignore"
    when = Time([60000.0, 60400.5], format="mjd", scale="tai")
    _ = str(when.utc.iso), when.ut1, when.tdb, when.datetime, Time("2026-01-01T00:00:00").jd
    where = EarthLocation.from_geodetic(-70.7 * u.deg, -30.2 * u.deg, 2663 * u.m)
    places = SkyCoord([10.0, 20.0], [-5.0, 5.0], unit="deg")
    _ = places.galactic, places.transform_to(AltAz(obstime=when, location=where)), places.get_constellation()
    _ = places.separation(places[0]).arcsec, places.to_string("hmsdms"), SkyCoord("00h42m30s +41d12m00s")
    _ = get_sun(when), get_body("moon", when), places.barycentrictrueecliptic
    _ = (500 * u.nm).to(u.eV, u.spectral()), (1 * u.nJy).to(u.ABmag), u.Unit("erg / (s cm2)")
    _ = sigma_clipped_stats([1.0, 2.0, 3.0, 100.0]), str(Table({"a": [1, 2]}))
    _ = LombScargle([1.0, 2.0, 3.0, 4.5], [1.0, 2.0, 1.0, 2.5]).power([0.1, 0.2], method="slow")
    _exercise_fits()
    with suppress(ImportError):  # distances want scipy
        _exercise_cosmology()


def _exercise_fits() -> None:
    import io

    import numpy as np
    from astropy.io import fits
    from astropy.wcs import WCS

    file = io.BytesIO()
    fits.PrimaryHDU(np.eye(4, dtype=np.float32)).writeto(file)
    with fits.open(io.BytesIO(file.getvalue())) as hdus:
        _ = WCS(hdus[0].header), hdus[0].data.sum()


def _exercise_cosmology() -> None:
    from astropy.cosmology import Planck18

    _ = Planck18.H0, Planck18.luminosity_distance(0.1)


def _exercise_pandas() -> None:
    import pandas as pd

    frame = pd.DataFrame({"t": [1.0, 2.0, 3.0], "b": ["g", "r", "g"], "f": [1.0, None, 3.0]})
    bands = frame.groupby("b")
    _ = bands["f"].agg(["mean", "max"]), bands["f"].median(), bands.size(), bands["f"].apply(len)
    _ = (
        frame.describe(),
        frame.sort_values("t"),
        frame.pivot_table(index="b", values="f"),
        frame[["t", "f"]].corr(),
    )
    _ = (
        frame["f"].rolling(2).mean(),
        frame["f"].ewm(2).mean(),
        frame["f"].interpolate(),
        frame["b"].str.upper(),
    )
    _ = (
        frame.merge(frame, on="t"),
        pd.concat([frame, frame]),
        frame.query("t > 1 and b == 'g'"),
        frame.eval("t + f"),
    )
    _ = pd.to_datetime(["2026-01-01"]).tz_localize("UTC"), pd.cut(frame["t"], 2), repr(frame)
    _ = (
        frame["t"].quantile(0.5),
        frame.dropna(),
        frame.fillna(0.0),
        frame.to_dict("records"),
        frame["t"].diff(),
    )


EXERCISES: Mapping[str, Callable[[], None]] = {"astropy": _exercise_astropy, "pandas": _exercise_pandas}
"""By group: what makes it read the files that it reads at first use."""
