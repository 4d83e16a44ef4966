"""One version of a catalogue on disk: an index of zones, and its rows in Arrow files.

The files are mapped, not read: a catalogue takes memory as far as it is asked about, and the kernel
shares it between processes.  ``keys`` and ``dec`` are float64 of all rows; the parts are Arrow
files of some millions of rows each, in the same order.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nightwire.core.catalogues.files import OWN_COLUMNS, CatalogueError
from nightwire.core.catalogues.zone_index import Array, Nearest, ZoneIndex, zone_height, zone_keys, zones

PART_ROWS = 4_000_000
"""Rows of a part, about: so many are sorted in memory."""


@dataclass(frozen=True)
class Description:
    """What is known of a version.

    Attributes:
        name: Of the catalogue.
        version: Twelve digits of the hash of its file and of how that was read.
        kind: ``table`` or ``moc``.
        rows: How many; of a map its ranges.
        source: Name of its file.
        added: When, UTC (ISO 8601).
        columns: Types of its columns by name; none of a map.
        remark: Rows that were left out, and their lines; empty where none were.
        height: Of zones. [deg]
        parts: Rows of each part.
        share: Of a map, its part of the sky.
    """

    name: str
    version: str
    kind: str
    rows: int
    source: str
    added: str
    columns: Mapping[str, str] = field(default_factory=dict)
    remark: str = ""
    height: float = 1.0
    parts: Sequence[int] = ()
    share: float = 0.0

    @property
    def offered(self) -> list[str]:
        """Columns of a match."""
        return [*sorted(OWN_COLUMNS, reverse=True), *self.columns]

    @classmethod
    def of(cls, folder: Path) -> "Description":
        """Return the description of the version in a folder."""
        return cls(**json.loads((folder / "catalogue.json").read_text()))


class Catalogue:
    """The objects of one version.

    Args:
        folder: Holds its files.
        description: What is known of it.

    Raises:
        CatalogueError: Its files are not whole.
    """

    def __init__(self, folder: Path, description: Description) -> None:
        self.description = description
        keys, dec = (np.memmap(folder / name, np.float64, "r") for name in ("keys", "dec"))
        self._index = ZoneIndex(keys, dec, description.height)
        maps = (pa.memory_map(str(part_file(folder, number))) for number in range(len(description.parts)))
        self._parts = [pa.ipc.open_file(one).read_all() for one in maps]
        if not len(keys) == len(dec) == description.rows == sum(map(len, self._parts)):
            raise CatalogueError(f"the files of {folder} are not whole: remove it, and add it anew")

    def match(self, ra: Array, dec: Array, radius: float, names: Sequence[str]) -> dict[str, pa.Array]:
        """Return columns of the nearest objects, null where none is near.

        Args:
            ra: Right ascensions [deg], shape (n,); NaN where there is no position.
            dec: Declinations. [deg]
            radius: Largest separation. [arcsec]
            names: Columns; those that there are not are left out.
        """
        found = self._index.nearest(ra, dec, radius)
        nothing = found.row < 0
        own = {
            "separation": lambda: pa.array(found.separation, mask=nothing),
            "count": lambda: pa.array(found.count, mask=nothing),
        }
        taken = self._rows(found, [name for name in names if name in self.description.columns])
        return {name: own[name]() for name in names if name in own} | taken

    def _rows(self, found: Nearest, names: Sequence[str]) -> dict[str, pa.Array]:
        """Return columns of the rows found; each part is asked once."""
        matched = np.flatnonzero(found.row >= 0)
        matched = matched[np.argsort(found.row[matched], kind="stable")]
        rows = found.row[matched]
        place = np.zeros(len(found.row), np.int64)
        place[matched] = np.arange(len(matched))
        index = pa.array(place, mask=found.row < 0)
        starts = np.cumsum([0, *self.description.parts])
        cuts = np.searchsorted(rows, starts)
        some = [
            self._parts[number].select(list(names)).take(pa.array(rows[begin:end] - starts[number]))
            for number, (begin, end) in enumerate(pairwise(cuts))
            if end > begin
        ]
        if not names:
            return {}
        if not some:
            kinds = self._parts[0].schema
            return {name: pa.nulls(len(place), kinds.field(name).type) for name in names}
        (whole,) = pa.concat_tables(some).combine_chunks().to_batches()
        return {name: whole.column(name).take(index) for name in names}


def part_file(folder: Path, number: int) -> Path:
    """Return the file of a part."""
    return folder / f"part-{number:04d}.arrow"


def build(folder: Path, portions: Iterable[pa.RecordBatch], expected: int) -> dict[str, Any]:
    """Write a catalogue's files; return the rows, columns, height and parts of its `Description`.

    Portions go to their parts as they come, bands of the sky of about equal area; then each part is
    sorted by itself.  So much memory is taken as a part needs, however many there are.

    Args:
        folder: Where.
        portions: Its rows, ``ra`` and ``dec`` [deg] among their columns.
        expected: How many there will be, about.
    """
    height, count = zone_height(expected), max(1, round(expected / PART_ROWS))
    parts = _Parts(folder, count, height)
    with parts:
        for portion in portions:
            parts.add(portion)
    return parts.sorted()


class _Parts:
    """Parts while they are written."""

    def __init__(self, folder: Path, count: int, height: float) -> None:
        self._folder, self._height = folder, height
        edges = np.degrees(np.arcsin(np.linspace(-1, 1, count + 1)))
        self._first = zones(edges[1:-1], height)  # a zone lies in one part as a whole
        self._writers: list[Any] = [None] * count
        self._schema: pa.Schema | None = None

    def __enter__(self) -> "_Parts":
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self._writers:
            if writer is not None:
                writer.close()

    def add(self, portion: pa.RecordBatch) -> None:
        """Write each row to its part."""
        self._schema = self._schema or portion.schema
        part = np.searchsorted(self._first, zones(portion.column("dec").to_numpy(), self._height), "right")
        for number in np.unique(part).tolist():
            if self._writers[number] is None:
                self._writers[number] = pa.ipc.new_stream(str(self._raw(number)), self._schema)
            some = portion if len(self._writers) == 1 else portion.filter(pa.array(part == number))
            self._writers[number].write_batch(some)

    def sorted(self) -> dict[str, Any]:
        """Sort the parts, write them and the index."""
        columns = {} if self._schema is None else {one.name: str(one.type) for one in self._schema}
        rows: list[int] = []
        with (self._folder / "keys").open("wb") as keys, (self._folder / "dec").open("wb") as dec:
            for number, writer in enumerate(self._writers):
                if writer is not None:
                    rows.append(self._sort(number, len(rows), keys, dec))
        return {"rows": sum(rows), "columns": columns, "height": self._height, "parts": rows}

    def _sort(self, number: int, place: int, keys: Any, dec: Any) -> int:
        with pa.ipc.open_stream(pa.memory_map(str(self._raw(number)))) as stream:
            table = stream.read_all()
        ra, dec_deg = (table.column(name).to_numpy() for name in ("ra", "dec"))
        key = zone_keys(ra, dec_deg, self._height)
        order = np.argsort(key, kind="stable")
        keys.write(key[order].tobytes())
        dec.write(dec_deg[order].tobytes())
        with pa.ipc.new_file(str(part_file(self._folder, place)), table.schema) as file:
            file.write_table(table.combine_chunks().take(pa.array(order)).combine_chunks())
        self._raw(number).unlink()
        return len(order)

    def _raw(self, number: int) -> Path:
        return self._folder / f"raw-{number:04d}"
