"""A watchlist: an owner's own catalogue, submitted with the filter that asks for it."""

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nightwire.core.catalogues import CatalogueError, Columns, LeftOut, open_file
from nightwire.filters.authoring.client import Submission
from nightwire.filters.language import FilterError, column_arguments, parsed
from nightwire.schemas.survey_model import MatchName

MAX_WATCHLIST = 2 << 20
"""Largest watchlist, as CSV: some 50,000 targets. [byte]"""

ENTRY = "keep_on_watchlist"
"""Name of the function that asks whether an alert is near a target, and then the filter's own."""

TRIED = "tried"
"""Name of a filter that is tried, and so of a catalogue of targets that comes with it."""

WRAPPED = """

def {entry}(alert):
    return alert.match({catalogue!r}, {radius!r}) is not None and {inner}(alert)
"""

WRAPPING = re.compile(rf"\n+def {ENTRY}\(alert\):\n    return .* is not None and (\w+)\(alert\)\n?")
"""That, in a text that was submitted before."""


def near_targets(submission: Submission | None, catalogue: str, radius: float, text: bytes) -> Submission:
    """Return a submission that takes alerts near targets alone.

    Args:
        submission: What else it asks; None for nothing.
        catalogue: Name of the catalogue of targets.
        radius: Largest separation. [arcsec]
        text: The targets, as `watchlist_text` returns them.

    Raises:
        FilterError: There is no such radius; or it is a function of many alerts at once.
    """
    radius = float(radius)  # of NumPy's numbers, too, the digits are submitted
    try:
        MatchName.of(catalogue, radius)
    except ValueError as error:
        raise FilterError(str(error)) from error
    near = f"MATCH('{catalogue}', {radius!r}) IS NOT NULL"
    submission = submission and _without_targets(submission, catalogue)
    if submission is None:
        return Submission("sql", near, "", watchlist=text)
    if submission.language == "sql":
        condition = submission.source.rstrip().rstrip(";")
        plain = condition[5:] if condition[:5].upper() == "WHERE" else condition
        return replace(submission, source=f"{near} AND ({plain.strip()})", watchlist=text)
    if column_arguments(parsed(submission.source), submission.entry) is not None:
        raise FilterError("a watchlist goes with a function of one alert, or with an SQL condition")
    wrapped = WRAPPED.format(entry=ENTRY, catalogue=catalogue, radius=radius, inner=submission.entry)
    return replace(submission, source=submission.source + wrapped, entry=ENTRY, watchlist=text)


def _without_targets(submission: Submission, catalogue: str) -> Submission | None:
    """Return what is asked beside an earlier watchlist of that name; None for nothing."""
    if submission.entry == ENTRY and (found := WRAPPING.search(submission.source)):
        return replace(submission, source=WRAPPING.sub("\n", submission.source), entry=found[1])
    near = rf"MATCH\('{re.escape(catalogue)}', [\d.e+-]+\) IS NOT NULL(?: AND \((.*)\))?"
    if submission.language == "sql" and (asked := re.fullmatch(near, submission.source, re.DOTALL)):
        return replace(submission, source=asked[1]) if asked[1] else None
    return submission


def watchlist_text(path: Path, columns: Columns) -> tuple[bytes, str]:
    """Return the targets in a file as CSV, and a remark on rows that are left out.

    Names of columns that are texts are in quotes, others are not: ``007`` stays what it was.

    Raises:
        FilterError: It is no catalogue, empty, or too large.
    """
    from pyarrow import csv

    left_out, found = LeftOut(), io.BytesIO()
    try:
        file = open_file(path)
        portions = [*file.read(file.layout(columns.ra, columns.dec, columns.kept), left_out)]
    except CatalogueError as error:
        raise FilterError(str(error)) from error
    if not any(map(len, portions)):
        raise FilterError(f"{path.name} has no targets with a position")
    rows = pa.Table.from_batches(portions)
    found.write(",".join(map(_headed, rows.schema)).encode() + b"\n")
    for at, column in enumerate(rows.columns[2:], 2):  # ra and dec are read as they are meant
        rows = rows.set_column(at, rows.schema.names[at], _pointed(column))
    csv.write_csv(rows, found, csv.WriteOptions(include_header=False))
    if found.tell() > MAX_WATCHLIST:
        raise FilterError(
            f"{path.name} has {rows.num_rows:,} targets, {found.tell():,} bytes as CSV; a watchlist has "
            f"{MAX_WATCHLIST:,}: keep fewer columns by --watchlist-columns, or ask who runs the engine for "
            "`nightwire catalogue add`"
        )
    return found.getvalue(), str(left_out) if left_out.count else ""


def _headed(column: Any) -> str:
    name = re.sub(r'[",\r\n]', "_", column.name)
    return f'"{name}"' if pa.types.is_string(column.type) else name


def _pointed(column: Any) -> Any:
    """Return floats that all are whole as texts that say so, ``1.0``; other columns as they are."""
    if not pa.types.is_floating(column.type) or not pc.all(pc.equal(column, pc.floor(column))).as_py():
        return column
    text = column.cast(pa.string())
    return pc.if_else(
        pc.match_substring_regex(text, r"^-?\d+$"), pc.binary_join_element_wise(text, "0", "."), text
    )
