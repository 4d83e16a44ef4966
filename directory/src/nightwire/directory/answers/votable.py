"""Rows as tables of one VOTable: with units, descriptions, and numbers that may be unknown."""

import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from nightwire.directory.model import COLUMNS, Column, Rows

UNKNOWN = Column("", "")
NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, escaped or not."""


def xml_text(text: str) -> str:
    """Return *text* without the characters that XML cannot hold."""
    return NOT_XML.sub("\ufffd", text)


def votable(tables: Mapping[str, Rows]) -> bytes:
    """Return *tables*, by name, as one VOTable."""
    from astropy.io.votable.tree import Resource, VOTableFile

    document, resource = VOTableFile(), Resource()
    document.resources.append(resource)
    resource.tables.extend(_table(document, name, rows) for name, rows in tables.items())
    out = io.BytesIO()
    document.to_xml(out)
    return out.getvalue()


def _table(document: Any, name: str, rows: Rows) -> Any:
    """Return a table; columns are named afterwards, as in SQL they may have any name, and twice."""
    from astropy.io.votable.tree import TableElement
    from astropy.table import Table

    cells = list(zip(*rows.rows, strict=True)) or [()] * len(rows.columns)
    columns = [_column(f"column{n}", *one) for n, one in enumerate(zip(rows.columns, cells, strict=True))]
    table = TableElement.from_table(document, Table(columns))
    table.name = xml_text(name)
    for field, column in zip(table.fields, rows.columns, strict=True):
        field.name, field.ID = xml_text(column), None
    return table


def _column(ident: str, name: str, values: Sequence[Any]) -> Any:
    """Return a column of numbers, masked where they are null, or of texts, where null is empty."""
    from astropy.table import MaskedColumn

    kind, empty = _kind(values)
    cells = [empty if value is None else value for value in values]
    known = COLUMNS.get(name, UNKNOWN)
    return MaskedColumn(
        [xml_text(_text(cell)) for cell in cells] if kind is object else cells,
        mask=None if kind is object else [value is None for value in values],
        name=ident,
        dtype=kind if values else "U1",
        unit=known.unit or None,
        description=known.text or None,
    )


def _kind(values: Sequence[Any]) -> tuple[Any, Any]:
    """Return type and empty value of a column: numbers stay numbers, all else is text."""
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, int) for value in known):
        return "int64", 0
    if known and all(isinstance(value, int | float) for value in known):
        return "float64", math.nan
    return object, ""


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
