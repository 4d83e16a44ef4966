"""What filters may import works in a confined process, where no file can be opened."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from filters.tests.helpers.sandboxed import ROWS, function, judge, row_filter
from nightwire.filters.language import MODULES
from nightwire.filters.sandbox import Limits, RowFilter, Sandbox
from nightwire.filters.sandbox.preload import BASIC, GROUPS, groups_imported, import_advice

USES = {
    "numpy": "import numpy as np\nreturn np.median([alert.flux, 1.0]) + np.polyfit([1, 2], [3, 4], 1)[0]",
    "numpy.random": "import numpy as np\nreturn np.random.default_rng(1).normal() < 99",
    "large matrices": "import numpy as np\nreturn (np.ones((300, 300)) @ np.ones((300, 300)))[0, 0] == 300",
    "numpy.linalg": "import numpy as np\nreturn np.linalg.lstsq(np.eye(3), np.ones(3), rcond=None)[0].sum()",
    "statistics": "import statistics\nreturn statistics.stdev([alert.flux, 1.0]) > 0",
    "decimal": "from decimal import Decimal\nreturn Decimal(str(alert.flux)) > Decimal('1.5')",
    "datetime": "from datetime import datetime\nreturn datetime.strptime('2026-01-02', '%Y-%m-%d').year",
    "re": "import re\nreturn re.search('[a-z]', alert.band)",
    "encodings": "return str(b'x', 'latin-1') + 'é'.encode('utf-16').hex()",
    "a light curve": "curve = alert.light_curve()\nreturn len(curve['flux']) == 1",
    "a history": "return sum(point.flux > 0 for point in alert.history) == 0",
    "coordinates": "from astropy.coordinates import SkyCoord\n"
    "return SkyCoord(alert.ra, alert.dec, unit='deg').galactic.b.deg + 90",
    "separation": "from astropy import units as u\nfrom astropy.coordinates import SkyCoord\n"
    "return SkyCoord(alert.ra * u.deg, alert.dec * u.deg).separation(SkyCoord('00h42m +41d')).deg",
    "time": "from astropy.time import Time\nreturn Time(alert.mjd_tai, format='mjd', scale='tai').utc.iso",
    "altitude": "from astropy import units as u\nfrom astropy.time import Time\n"
    "from astropy.coordinates import AltAz, EarthLocation, SkyCoord\n"
    "where = EarthLocation.from_geodetic(-70.7 * u.deg, -30.2 * u.deg)\n"
    "frame = AltAz(obstime=Time(alert.mjd_tai, format='mjd'), location=where)\n"
    "return SkyCoord(alert.ra, alert.dec, unit='deg').transform_to(frame).alt.deg + 91",
    "units": "from astropy import units as u\nreturn (alert.flux * u.nJy).to(u.ABmag).value",
    "sigma clip": "from astropy.stats import sigma_clip\nreturn sigma_clip([1.0, 2.0, 3.0]).sum()",
    "periodogram": "import numpy as np\nfrom astropy.timeseries import LombScargle\n"
    "return LombScargle(np.arange(9.0), np.sin(np.arange(9.0))).power([0.1, 0.2]).max() > -1",
    "pandas": "import pandas as pd\nframe = pd.DataFrame(alert.light_curve())\n"
    "return frame.groupby('band')['flux'].mean().iloc[0] and len(frame.dropna(subset=['flux']))",
    "pandas rolling": "import pandas as pd\nreturn pd.Series([1.0, 2.0, 3.0]).rolling(2).mean().iloc[-1]",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Yield a sandbox that has all modules."""
    with Sandbox(limits=Limits(cpu_s=20.0, wall_s=30.0)) as one:
        yield one


@pytest.mark.slow
def test_modules_work_in_a_confined_process(sandbox: Sandbox, batch: Any) -> None:
    filters = [row_filter("alice", function(body), name) for name, body in USES.items()]
    found = judge(sandbox, batch, *filters)
    failed = {key: (one.killed, dict(one.faults)) for key, one in found.items() if len(one.passed) < ROWS}
    assert failed == {}


def test_what_is_not_there_is_refused_with_what_is(sandbox: Sandbox, batch: Any) -> None:
    source = "from astropy.visualization.wcsaxes import WCSAxes\ndef keep(alert): return True"
    outcome = judge(sandbox, batch, row_filter("alice", source))["alice/one"]
    assert "ModuleNotFoundError" in outcome.faults[0]
    assert "of it the sandbox has astropy.constants," in outcome.faults[0]


def test_every_package_that_a_filter_may_import_is_preloaded_or_in_a_group() -> None:
    preloaded = {module.split(".")[0] for module in BASIC} | set(GROUPS)
    assert set(MODULES) - {"__future__"} <= preloaded


def asked(source: str) -> RowFilter:
    """Return a filter."""
    return row_filter("alice", source)


def test_groups_are_those_that_are_imported() -> None:
    assert groups_imported(map(asked, ["import astropy.units as u", "import math"])) == {"astropy"}
    assert groups_imported(map(asked, ["def f():\n  from pandas import NA", "no python ("])) == {"pandas"}
    told = replace(asked("import pandas"), imports=frozenset({"astropy", "numpy"}))
    assert groups_imported([told]) == {"astropy"}  # its source is not looked at


def test_advice_says_what_there_is() -> None:
    assert import_advice("os") == "a filter may not import os"
    assert "numpy.linalg" in import_advice("numpy.ctypeslib")
    assert import_advice("pandas.nothing") == "of it the sandbox has pandas, pandas.api.types"
