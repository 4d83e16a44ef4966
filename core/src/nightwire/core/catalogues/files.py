"""Files that hold catalogues: CSV, Parquet, FITS, VOTable, read as portions of one shape.

Of a portion ``ra`` and ``dec`` are its positions [deg, ICRS]; its other columns are numbers, truth
values and texts.  What has no position is left out, and counted by its line.
"""

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import OpenerDirector, install_opener

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightwire.schemas import MendableError

PORTION = 1 << 18
"""Rows of a portion of Parquet, about."""

CSV_BLOCK = 16 << 20
"""Of CSV so much is looked at to tell what its columns hold. [byte]"""

BEGINNING = 16 << 10
"""Of any file so much is looked at to tell what it is. [byte]"""

NAMES_OF_RA = (
    *("ra", "raj2000", "ra_icrs", "ra_deg", "radeg", "ramean", "meanra", "right_ascension"),
    *("alpha_j2000", "alpha"),
)
NAMES_OF_DEC = (
    *("dec", "dej2000", "decj2000", "de_icrs", "dec_icrs", "dec_deg", "decdeg", "decmean", "meandec"),
    *("declination", "delta_j2000", "delta"),
)
"""Names that columns of positions have, in small letters, without underscores at either end."""

UCDS = {"ra": "pos.eq.ra", "dec": "pos.eq.dec"}
"""What VOTable says of columns of positions; ``;meta.main`` behind it marks the best ones."""

OWN_COLUMNS = frozenset({"separation", "count"})
"""Names that a match has itself: a catalogue's columns of these names get an underscore behind."""


class CatalogueError(MendableError):
    """A file is no catalogue, or a catalogue is not what was asked for; says what to do."""


@dataclass
class LeftOut:
    """Rows without a position: how many, and the lines of the first."""

    count: int = 0
    lines: list[int] = field(default_factory=list)

    def note(self, lines: Sequence[int]) -> None:
        """Count rows, by their lines."""
        self.count += len(lines)
        self.lines += lines[: 5 - len(self.lines)]

    def __str__(self) -> str:
        more = ", …" if self.count > len(self.lines) else ""
        lines = ", ".join(f"{line:,}" for line in self.lines)
        return f"{self.count:,} rows without a position are left out (lines {lines}{more})"


@dataclass(frozen=True)
class Layout:
    """Which columns of a file are used.

    Attributes:
        ra: Column of right ascensions.
        dec: Column of declinations.
        columns: Those that are kept beside.
    """

    ra: str
    dec: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class CatalogueFile:
    """A file, opened.

    Attributes:
        names: Its columns.
        rows: How many rows it has, about.
        portions: Reads it; given the columns that are wanted.
        ucds: What it says of columns: UCDs by name.
        first_line: Line of its first row: 2 in CSV, below the names; elsewhere rows count from 1.
    """

    names: Sequence[str]
    rows: int
    portions: Callable[[Sequence[str]], Iterable[pa.RecordBatch]]
    ucds: Mapping[str, str] = field(default_factory=dict)
    first_line: int = 1

    def layout(self, ra: str | None = None, dec: str | None = None, columns: Sequence[str] = ()) -> Layout:
        """Return which columns are used; what is not named is guessed.

        Raises:
            CatalogueError: A column is not there, or there twice, or none looks like a position.
        """
        for name in (*filter(None, (ra, dec)), *columns):
            if name not in self.names:
                raise CatalogueError(f"there is no column {name}; there are: {_listed(self.names)}")
        ra = ra or self._guessed("ra", NAMES_OF_RA)
        dec = dec or self._guessed("dec", NAMES_OF_DEC)
        others = [name for name in columns or self.names if name not in (ra, dec)]
        there = Counter(self.names)
        if twice := next((name for name in (ra, dec, *others) if there[name] > 1), None):
            raise CatalogueError(
                f"{there[twice]} columns are called {twice}: rename them, or name others by --columns"
            )
        return Layout(ra, dec, tuple(dict.fromkeys(others)))

    def _guessed(self, what: str, known: Sequence[str]) -> str:
        marked = [name for name in self.names if self.ucds.get(name, "").startswith(UCDS[what])]
        marked.sort(key=lambda name: "meta.main" not in self.ucds[name])
        plain = {name.lower().strip("_"): name for name in reversed(self.names)}
        found = [*marked, *(plain[name] for name in known if name in plain)]
        if not found:
            word = "right ascensions" if what == "ra" else "declinations"
            raise CatalogueError(
                f"no column looks like {word} [deg]: name it by --{what} COLUMN; "
                f"there are: {_listed(self.names)}"
            )
        return found[0]

    def read(self, layout: Layout, left_out: LeftOut) -> Iterator[pa.RecordBatch]:
        """Yield its rows: ``ra``, ``dec`` and the columns of *layout*.

        Raises:
            CatalogueError: A position is none, with its line; or the file cannot be read.
        """
        line = self.first_line
        for portion in self.portions([layout.ra, layout.dec, *layout.columns]):
            yield _positioned(portion, layout, line, left_out)
            line += portion.num_rows


def open_file(path: Path, texts: Sequence[str] = ()) -> CatalogueFile:
    """Return the catalogue in a file, whatever its format.

    Args:
        path: Of the file.
        texts: Columns of CSV that are texts, whatever they look like; with nothing between two
            commas, not even quotes, they are null.

    Raises:
        CatalogueError: It is none.
    """
    begin = beginning(path)
    with told(path):
        if begin.startswith(b"PAR1"):
            return _parquet(path)
        if begin.startswith(b"SIMPLE  ="):
            return _astropy(path, "fits")
        if begin.removeprefix(BOM_UTF8).lstrip().startswith(b"<"):
            return _astropy(path, "votable")
        if begin.startswith(b"# %ECSV"):
            return _astropy(path, "ascii.ecsv")
        return _csv(path, begin, texts)


def beginning(path: Path) -> bytes:
    """Return the first bytes of a file.

    Raises:
        CatalogueError: There is none.
    """
    if not path.is_file():
        raise CatalogueError(f"there is no file {path}")
    with path.open("rb") as file:
        return file.read(BEGINNING)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Say of errors within which file they are of."""
    try:
        yield
    except CatalogueError as error:
        raise CatalogueError(f"{path.name}: {error}") from error
    except (pa.ArrowException, ValueError, TypeError, IndexError, OSError) as error:
        why = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        raise CatalogueError(f"{path.name} cannot be read as a catalogue: {why}") from error


def _parquet(path: Path) -> CatalogueFile:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)

    def portions(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return file.iter_batches(PORTION, columns=list(names))  # type: ignore[no-any-return]

    return CatalogueFile(file.schema_arrow.names, file.metadata.num_rows, portions)


def _csv(path: Path, begin: bytes, texts: Sequence[str]) -> CatalogueFile:
    from pyarrow import csv

    first = begin.split(b"\n")[0]
    if b"\0" in begin or b"," not in first:
        raise CatalogueError("no CSV with a line of names, Parquet, FITS or VOTable")
    blocks = csv.ReadOptions(block_size=CSV_BLOCK)
    with csv.open_csv(path, blocks) as reader:
        names = reader.schema.names

    def portions(wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
        kinds = dict.fromkeys(texts, pa.string()) | dict.fromkeys(wanted[:2], pa.float64())
        chosen = csv.ConvertOptions(
            include_columns=list(wanted),
            column_types=kinds,
            strings_can_be_null=bool(texts),
            quoted_strings_can_be_null=not texts,
        )
        with csv.open_csv(path, blocks, convert_options=chosen) as reader:
            yield from reader

    lines = begin.count(b"\n") or 1
    return CatalogueFile(names, path.stat().st_size * lines // len(begin), portions, first_line=2)


class _Links(OpenerDirector):
    """Opens none: what a VOTable's STREAM names may be any file, or host, that is ours to read."""

    def open(self, fullurl: Any, *_args: Any, **_named: Any) -> Any:
        raise CatalogueError(f"its rows lie elsewhere, at {str(fullurl)[:200]!r}: write them into the file")


def _astropy(path: Path, form: str) -> CatalogueFile:
    from astropy import units as u
    from astropy.table import Table

    install_opener(_Links())  # for good: other threads may be reading, too
    table = Table.read(path, format=form)
    flat = [name for name in table.colnames if table[name].ndim == 1]

    def portions(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_arrays([_array(table[name], u) for name in names], [*names])

    ucds = {name: str(table[name].meta.get("ucd", "")) for name in flat if hasattr(table[name], "meta")}
    return CatalogueFile(flat, len(table), portions, ucds)


def _array(column: Any, u: Any) -> pa.Array:
    """Return a column of astropy's; angles in degrees."""
    values, mask = np.ma.getdata(column), np.ma.getmaskarray(column)
    if column.unit is not None and column.unit.is_equivalent(u.deg) and column.unit in (u.hourangle, u.rad):
        values = (np.asarray(values) * column.unit).to_value(u.deg)
    values = np.asarray(values)
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    values = values.astype(values.dtype.newbyteorder("="))  # FITS is big-endian, Arrow is not
    return pa.array(values.tolist() if values.dtype.kind in "OU" else values, mask=mask)


def _positioned(portion: pa.RecordBatch, layout: Layout, line: int, left_out: LeftOut) -> pa.RecordBatch:
    """Return the rows of a portion that have a position; *line* is its first."""
    ra, dec = (_degrees(portion.column(name), name) for name in (layout.ra, layout.dec))
    known = np.isfinite(ra) & np.isfinite(dec)
    wrong = np.flatnonzero(known & ((np.abs(dec) > 90) | (ra < -180) | (ra > 360)))
    if len(wrong):
        at = int(wrong[0])
        raise CatalogueError(
            f"line {line + at}: ra {ra[at]:g}, dec {dec[at]:g} is no position [deg]; "
            f"{layout.ra} and {layout.dec} were taken for ra and dec: --ra and --dec name others"
        )
    left_out.note((np.flatnonzero(~known) + line).tolist())
    taken = {name: array for name in layout.columns if (array := plain(portion.column(name))) is not None}
    columns = {"ra": pa.array(ra % 360.0), "dec": pa.array(dec)}
    for name, array in taken.items():
        columns[_safe(name, columns)] = array
    whole = pa.RecordBatch.from_pydict(columns)
    return whole if known.all() else whole.filter(pa.array(known))


def _degrees(column: pa.Array, name: str) -> Any:
    if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
        if column.null_count == len(column):
            return np.full(len(column), np.nan)
        raise CatalogueError(f"column {name} holds {column.type}, not degrees: --ra and --dec name others")
    return column.cast(pa.float64()).to_numpy(zero_copy_only=False)


def plain(array: pa.Array) -> pa.Array | None:
    """Return values as filters take them: float64, int64, bool or text; None for anything else.

    Dates become texts, by ISO 8601; NaN, as FITS has it where nothing is known, becomes null.
    """
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    kind = array.type
    if pa.types.is_boolean(kind):
        return array
    if pa.types.is_floating(kind) or pa.types.is_uint64(kind) or pa.types.is_null(kind):
        numbers = array.cast(pa.float64(), safe=False)  # beyond 2**53 the nearest
        return pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
    if pa.types.is_integer(kind):
        return array.cast(pa.int64())
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_temporal(kind)
    return array.cast(pa.string()) if text else None


def _safe(name: str, others: Container[str]) -> str:
    """Return the name by which filters ask for a column, none of *others*.

    A dot would name a field of a record, a question mark ask whether there is one.
    """
    name = re.sub(r"[.?]", "_", name) or "_"
    while name in OWN_COLUMNS or name in others:
        name += "_"
    return name


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:30])
    return f"{shown}, … {len(names)} in all" if len(names) > 30 else shown


def is_map(begin: bytes) -> bool:
    """Return whether a file that begins so is a map of the sky (MOC): FITS, JSON or text."""
    fits = (
        begin.startswith(b"SIMPLE  =") and re.search(rb"MOC(ORDER|ORD_S|VERS|DIM)|NUNIQ", begin) is not None
    )
    return fits or begin.lstrip()[:1] == b"{" or re.match(rb"\s*\d{1,2}/\d", begin) is not None
