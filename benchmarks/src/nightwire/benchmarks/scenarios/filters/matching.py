"""Matching alerts with a catalogue on disk, as the engine does before it asks filters."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nightwire.benchmarks import Context, Experiment, Figures, Kind, RunError
from nightwire.core.catalogues import Catalogue, CatalogueStore

ROWS = 2_500
"""Alerts that are matched at once, as in the engine."""
FIELD_DEG = 3.5
"""Width of the field in which a visit's alerts lie. [deg]"""
RADIUS = 2.0
"""Largest separation. [arcsec]"""
TURNS = 20
"""Fields that a run matches."""
COLUMNS = ["separation", "id", "magnitude"]
"""Of a match: what is asked for."""
PORTION = 2_000_000
"""Rows of a catalogue that are made at once."""
ON_DISK = 80
"""An object on disk while it is added: the file that is read, what is being written, the result.
[byte]"""

Array = np.ndarray[Any, Any]


class Matching(Experiment):
    """Alerts of one visit after the other, all over the sky; two columns of the nearest object.

    The baseline is SciPy's k-d tree of the same objects, built beforehand, in memory; of many
    objects there is none.

    Args:
        context: Has a folder.
        count: Objects of the catalogue.
        label: How its figure is called.
    """

    def __init__(self, context: Context, count: int, label: str) -> None:
        self._folder, self._count, self._label = context.folder / f"catalogue-{label}", count, label
        self.name = f"matching-{label}"
        self.at_most = {} if count <= PORTION else {Kind.BASELINE: 0}
        self._random = np.random.default_rng(count)

    def prepare(self) -> None:
        """Add the catalogue, and ask it once."""
        self._folder.mkdir(parents=True)
        file = self._folder / "objects.parquet"
        write(file, self._count, self._random)
        store = CatalogueStore(self._folder / "store")
        opened = store.open("objects", store.add("objects", file).version)
        if not isinstance(opened, Catalogue):
            raise RunError("what was added is no catalogue of objects")
        self._catalogue = opened
        if self._count <= PORTION:
            self._tree, self._columns = tree_of(file)
        file.unlink()
        self.run_once(Kind.SUBJECT)

    def run_once(self, kind: Kind) -> Figures:
        """Match the alerts of some visits. [µs an alert]"""
        work = self._by_catalogue if kind is Kind.SUBJECT else self._by_tree
        spent = 0.0
        for _ in range(TURNS):
            ra, dec = field(self._random)
            began = time.perf_counter()
            work(ra, dec)
            spent += time.perf_counter() - began
        return {f"match_us_{self._label}": 1e6 * spent / (TURNS * ROWS)}

    def _by_catalogue(self, ra: Array, dec: Array) -> None:
        found = self._catalogue.match(ra, dec, RADIUS, COLUMNS)
        if list(found) != COLUMNS:
            raise RunError(f"a match has the columns {', '.join(found)}")

    def _by_tree(self, ra: Array, dec: Array) -> None:
        apart, row = self._tree.query(vectors(ra, dec), distance_upper_bound=np.radians(RADIUS / 3600))
        index = pa.array(np.where(np.isfinite(apart), row, 0), mask=~np.isfinite(apart))
        for column in self._columns:
            column.take(index)


def write(file: Path, count: int, random: np.random.Generator) -> None:
    """Write a catalogue of objects all over the sky."""
    portions = (portion(begin, min(PORTION, count - begin), random) for begin in range(0, count, PORTION))
    first = next(portions)
    with pq.ParquetWriter(file, first.schema, compression="none", use_dictionary=False) as writer:
        writer.write_table(first)
        for table in portions:
            writer.write_table(table)


def portion(begin: int, count: int, random: np.random.Generator) -> pa.Table:
    """Return some objects."""
    ra, dec = random.uniform(0, 360, count), np.degrees(np.arcsin(random.uniform(-1, 1, count)))
    magnitude = random.normal(20, 2, count).astype(np.float32)
    return pa.table({"ra": ra, "dec": dec, "id": np.arange(begin, begin + count), "magnitude": magnitude})


def field(random: np.random.Generator) -> tuple[Array, Array]:
    """Return the positions of a visit's alerts. [deg]"""
    middle = np.degrees(np.arcsin(random.uniform(-1, 1)))
    dec = np.clip(middle + random.uniform(-0.5, 0.5, ROWS) * FIELD_DEG, -90, 90)
    width = FIELD_DEG / max(0.01, np.cos(np.radians(middle)))
    return (random.uniform(0, 360) + random.uniform(-0.5, 0.5, ROWS) * width) % 360, dec


def vectors(ra: Array, dec: Array) -> Array:
    """Return positions [deg] as unit vectors, shape (n, 3)."""
    ra, dec = np.radians(ra), np.radians(dec)
    return np.stack([np.cos(dec) * np.cos(ra), np.cos(dec) * np.sin(ra), np.sin(dec)], axis=1)


def tree_of(file: Path) -> tuple[Any, list[Any]]:
    """Return SciPy's tree of the objects in a file, and two of their columns."""
    from scipy.spatial import cKDTree

    table = pq.read_table(file)
    places = vectors(table["ra"].to_numpy(), table["dec"].to_numpy())
    return cKDTree(places), [table[name].combine_chunks() for name in ("id", "magnitude")]


def matchings(context: Context) -> Iterator[Matching]:
    """Yield the experiments: a million objects, and in the full profile 10⁸."""
    yield Matching(context, 10**6, "million")
    if context.size.profile == "full":
        yield Matching(context, 10**8, "hundred_million")
