"""The guide's list of what compiles: each word of it does."""

import re
from pathlib import Path

import pytest

from nightwire.filters.language import NotCompilable, compile_python

GUIDE = (Path(__file__).parents[3] / "docs/user/filter-language.md").read_text()

TOP = """
import math
import numpy as np
NAMES = ("g", ["r"][0])
TABLE = {"g": 1, "r": 2.5}
def helper(point):
    return point.flux
def keep(alert):
    curve = alert.light_curve()
    flux, time, x = curve["flux"], curve["mjd_tai"], alert.visit
    well = [p.flux for p in alert.history if p.flux is not None]
"""

ARRAYS = "sum mean median std var min max any all argmax argmin ptp prod count_nonzero"
NANS = "nansum nanmean nanmin nanmax nanmedian nanstd nanvar"
ONE = "log10 sqrt exp sin isfinite"

EXAMPLES: dict[str, list[str]] = {
    "values": ["return True if x == math.pi else False or None", "return x in NAMES and TABLE['g'] < np.inf"],
    "the alert": [
        'return alert.colour("g", "r")',
        'return alert.magnitudes("r")[0]',
        "return alert.healpix_at(8)",
        'return alert.match("gaia", 2) is None and alert.in_moc("footprint")',
        'return alert["diaSource"]["psfFlux"]',
        'return alert.get("x", 0)',
        'return (alert.get("ssSource") or {}).get("x")',
    ],
    "operators": [
        "return x + 1 - 2 * 3 / 4 // 5 % 6 ** -x",
        "return ~x & 1 | 2 ^ 3",
        "return 1 < x <= 2 or x > 3 >= 4 or x == 5 != 6",
        "return x in (1, 2) and x not in (3, 4) or x is None or not x",
        "a, b, c = 1, 2, x\n    return a if c else b",
    ],
    "sets": [
        'return alert.band in {"g", "r"} or alert.band in set("gri") or x in frozenset([1, 2])',
        "return alert.band in {p.band for p in alert.history}",
        "return len({p.band for p in alert.history}) + len(set(p.band for p in alert.history))",
        "return 3 in [p.flux for p in alert.history]",
    ],
    "statements": [
        "if x:\n        return 1\n    elif x > 2:\n        x = 1\n    else:\n        x += 1\n    return x",
        "pass",
    ],
    "functions": [
        "return abs(x) + min(x, 1) + max(x, 2) + round(x, 1) + float(x) + int(x) + bool(x)",
        "return sum(well) + len(well) + any(well) + all(well) + sorted(well, key=abs, reverse=True)[0]",
        "return min(alert.history, key=helper).flux + max(list(well)) + len(tuple(well))",
        "return alert.band.lower().upper().strip().startswith('R') or alert.band.endswith('r')",
        "return math.sqrt(x) + math.atan2(x, 2)",
    ],
    "text": ['return f"{alert.band}{alert.visit % 2}" == "r1"', 'label = f"{alert.flux:.1f}"\n    return x'],
    "NumPy": [
        *(f"return np.{name}(x) and np.sum(np.{name}(flux))" for name in ONE.split()),
        *(f"return np.{name}(x, 2) + np.sum(np.{name}(flux, 2))" for name in ("hypot", "maximum")),
        *(f"return np.{name}(flux)" for name in (ARRAYS + " " + NANS).split()),
        *(f"return np.{name}(flux, 0.5)" for name in ("percentile", "quantile", "nanpercentile")),
        "return np.where(flux > 0, flux, 0).sum() + np.clip(flux, 0, 1).max() + np.diff(flux).min()",
        'return flux[np.isin(curve["band"], ["g"])].size + flux[flux > 0].size + flux[-3:].size',
        "return time[np.argmax(flux)] + (flux * 2 - time).mean()",
    ],
    "the history": [
        'chosen = [p.flux for p in alert.history if p.band == "r"]\n    return len(chosen)',
        'return any(p.flux for p in alert.history if p.band == "r") or sum(p.flux for p in alert.history)',
        "return max((p.flux for p in alert.history), default=0)",
        "return alert.history[-1].flux + len(alert.history[-3:]) + len(alert.history)",
        "return max(alert.history, key=lambda p: p.mjd_tai).flux",
        'return np.array([p.flux for p in alert.history]).sum() + alert.light_curve()["flux"].sum()',
    ],
    "loops": [
        "n = 0\n    for p in alert.history:\n        if p.snr:\n            n += 1\n    return n",
        "chosen = []\n    for p in alert.history:\n        chosen.append(p.flux)\n    return len(chosen)",
        "for p in alert.history:\n        if p.snr:\n            return p.snr\n    return 0",
    ],
    "the survey's lists": [
        'return sum(s["psfFlux"] for s in alert["prvDiaSources"])',
        'return len((alert["prvDiaSources"] or [])[-3:])',
    ],
}

ROWS = dict(
    re.findall(
        r"^\| ([^|`]+) \| (.+) \|$",
        GUIDE.partition("## What compiles")[2].partition("## What does not")[0],
        re.M,
    )
)


@pytest.mark.parametrize("row", EXAMPLES)
def test_what_the_guide_lists_compiles(row: str) -> None:
    for body in EXAMPLES[row]:
        compile_python(f"{TOP}    {body}\n")


def test_there_is_an_example_for_each_word_of_the_guide() -> None:
    assert list(ROWS) == list(EXAMPLES)
    for row, said in ROWS.items():
        code = " ".join(re.findall(r"`([^`]+)`", said)).replace("\\|", "|")
        words = set(re.findall(r"[A-Za-z_]\w*|[^\w\s\"'()\[\]{},:.…]+", code))
        shown = set(re.findall(r"[A-Za-z_]\w*|[^\w\s\"'()\[\]{},:.…]+", TOP + " ".join(EXAMPLES[row])))
        assert words - shown == set(), row


DOES_NOT = {
    "try": "try:\n        return 1\n    except KeyError:\n        return 0",
    "while": "while x:\n        return 1",
    "with": "with x:\n        return 1",
    "alert.stamps": "return alert.stamps",
}


def test_what_the_guide_leaves_out_does_not_compile() -> None:
    listed = GUIDE.partition("## What does not")[2].partition("## Faults")[0]
    assert set(re.findall(r"`([^`]+)`", listed)) == set(DOES_NOT)
    for body in DOES_NOT.values():
        with pytest.raises(NotCompilable):
            compile_python(f"{TOP}    {body}\n")
