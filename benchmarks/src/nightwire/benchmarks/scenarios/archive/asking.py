"""Questions to an archive of many rows, beside astropy and a scan of the same rows in memory."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.compute as pc
from astropy import units
from astropy.coordinates import SkyCoord

from nightwire.archive import Archive
from nightwire.benchmarks import Context, Experiment, Figures, Kind, RunError
from nightwire.benchmarks.model.statistics import median
from nightwire.benchmarks.scenarios.archive.simulated import fill

TURNS = {Kind.SUBJECT: 30, Kind.BASELINE: 3}
"""Questions of each sort in a run; a scan takes as long each time."""
ARCMIN = 1 / 60
RADII = {"cone_1arcmin_ms": ARCMIN, "cone_5deg_ms": 5.0}
"""Of cones. [deg]"""


class Asking(Experiment):
    """By id, by object, by cone: how long an answer takes, in one process that has asked before."""

    name = "asking"

    def __init__(self, context: Context) -> None:
        self._context, self._rng = context, np.random.default_rng(2)

    def prepare(self) -> None:
        """Make the archive, and read its columns into memory for the baseline."""
        self._context.say(f"archiving {self._context.size.alerts:,} rows")
        folder, began = self._context.folder / "archive", time.perf_counter()
        fill(folder, self._context.size.alerts)
        self._filled = time.perf_counter() - began
        self._archive = Archive(folder)
        self.exits.callback(self._archive.close)
        self._rows = self._archive.query("SELECT id, object_id, ra, dec FROM sim")
        self._sky = SkyCoord(*(self._rows.column(name).to_numpy() for name in ("ra", "dec")), unit="deg")
        self._size = sum(one.stat().st_size for one in folder.rglob("*.parquet"))

    def run_once(self, kind: Kind) -> Figures:
        """Ask for alerts of the archive, one after the other."""
        ask, turns = (self._asked if kind is Kind.SUBJECT else self._scanned), TURNS[kind]
        figures = {"get_ms": 0.0, "object_ms": 0.0} | dict.fromkeys(RADII, 0.0)
        for name in figures:
            figures[name] = median([self._timed(ask(name, self._drawn())) for _ in range(turns)]) * 1e3
        if kind is Kind.BASELINE:
            return figures
        rows = self._context.size.alerts
        return figures | {"fill_per_s": rows / self._filled, "row_bytes": self._size / rows}

    def _drawn(self) -> dict[str, Any]:
        at = int(self._rng.integers(0, len(self._rows)))
        return {name: self._rows.column(name)[at].as_py() for name in self._rows.schema.names}

    def _asked(self, name: str, row: dict[str, Any]) -> Callable[[], int]:
        if name == "get_ms":
            return lambda: len(self._archive.get(row["id"]))
        if name == "object_ms":
            return lambda: len(self._archive.object(row["object_id"]))
        return lambda: len(self._archive.cone(row["ra"], row["dec"], RADII[name]))

    def _scanned(self, name: str, row: dict[str, Any]) -> Callable[[], int]:
        column = {"get_ms": "id", "object_ms": "object_id"}.get(name)
        if column is not None:
            return lambda: len(self._rows.filter(pc.equal(self._rows.column(column), row[column])))
        centre, radius = SkyCoord(row["ra"], row["dec"], unit="deg"), RADII[name] * units.deg
        return lambda: int((self._sky.separation(centre) <= radius).sum())

    def _timed(self, question: Callable[[], int]) -> float:
        began = time.perf_counter()
        if not question():
            raise RunError("nothing was found")
        return time.perf_counter() - began
