"""A light curve as a file: CSV, FITS, VOTable, Parquet."""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nightwire.portal.model import CurvePoint, as_columns
from nightwire.portal.model.curve import UNITS

TEXTS = ("band", "kind", "alert")
"""Columns of texts, which may be strangers'."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a spreadsheet's formulas."""


def _table(curve: Sequence[CurvePoint], name: str) -> Any:
    from astropy.table import Table

    table = Table(as_columns(curve), meta={"description": name})
    for column, unit in UNITS.items():
        table[column].unit = unit
    return table


def _csv(curve: Sequence[CurvePoint], name: str) -> bytes:
    text, table = io.StringIO(), _table(curve, name)
    for column in TEXTS:
        table[column] = [f"'{one}" if one.startswith(FORMULA) else one for one in map(str, table[column])]
    table.write(text, format="ascii.csv", fill_values=[("nan", "")])
    return text.getvalue().encode()


def _fits(curve: Sequence[CurvePoint], name: str) -> bytes:
    file, table = io.BytesIO(), _table(curve, name)
    table.meta = {"OBJECT": _printable(name)[:60]}
    for column in TEXTS:
        table[column] = [_printable(str(one)) for one in table[column]]
    table.write(file, format="fits")
    return file.getvalue()


def _printable(text: str) -> str:
    """Return *text* with ? for what FITS does not have."""
    return "".join(one if " " <= one <= "~" else "?" for one in text)


def _votable(curve: Sequence[CurvePoint], name: str) -> bytes:
    file, table = io.BytesIO(), _table(curve, _xml(name))
    for column in TEXTS:
        table[column] = [_xml(str(one)) for one in table[column]]
    table.write(file, format="votable")
    return file.getvalue()


def _xml(text: str) -> str:
    """Return *text* with ? for what XML does not have."""
    return "".join(one if one >= " " or one in "\t\n" else "?" for one in text)


def _parquet(curve: Sequence[CurvePoint], name: str) -> bytes:
    import pyarrow
    from pyarrow import parquet

    file = io.BytesIO()
    units = {f"unit.{column}": unit for column, unit in UNITS.items()}
    found = pyarrow.Table.from_pydict(
        {column: pyarrow.array(all_) for column, all_ in as_columns(curve).items()}
    )
    parquet.write_table(found.replace_schema_metadata({"object": name, **units}), file)
    return file.getvalue()


FORMATS: Mapping[str, tuple[str, Callable[[Sequence[CurvePoint], str], bytes]]] = {
    "csv": ("text/csv; charset=utf-8", _csv),
    "fits": ("application/fits", _fits),
    "votable": ("application/x-votable+xml", _votable),
    "parquet": ("application/vnd.apache.parquet", _parquet),
}
"""Ending of the file: its media type, and what makes it of a light curve and an object's name."""
