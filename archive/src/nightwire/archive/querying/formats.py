"""The formats of answers: JSON, CSV, Parquet, Arrow, VOTable."""

import io
import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import csv, parquet

from nightwire.archive.querying.sql_engine import QueryError

if TYPE_CHECKING:
    from astropy.io.votable.tree import VOTableFile

NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, escaped or not."""
COLUMN_METADATA: Mapping[str, tuple[str | None, str | None, str]] = {
    "id": (None, "ID_MAIN", "The survey's id of the alert"),
    "object_id": (None, "meta.id", "The survey's id of the object"),
    "solar_system_id": (None, "meta.id", "The survey's id of the solar-system object"),
    "visit": (None, "meta.id;obs", "The visit"),
    "mjd_tai": ("d", "time.epoch", "Time of the exposure, modified Julian date on TAI"),
    "ra": ("deg", "POS_EQ_RA_MAIN", "Right ascension, ICRS"),
    "dec": ("deg", "POS_EQ_DEC_MAIN", "Declination, ICRS"),
    "flux": ("nJy", "phot.flux", "Difference flux"),
    "flux_error": ("nJy", "stat.error;phot.flux", "Standard error of the flux"),
    "snr": (None, "stat.snr", "Size of the flux over its error"),
    "magnitude": ("mag", "phot.mag", "AB magnitude of the size of the flux"),
    "band": (None, "instr.bandpass", "Passband"),
    "distance": ("deg", "pos.angDistance", "Distance from the position that was asked for"),
}
"""Unit, UCD (those of Simple Cone Search 1.03 are of the first kind) and description of columns."""


def as_json(table: Any) -> bytes:
    """Return rows as a JSON array of objects; numbers that are not finite become null."""
    rows = [{name: _json(value) for name, value in row.items()} for row in table.to_pylist()]
    return json.dumps(rows, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _json(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case datetime() | date():
            return value.isoformat()
        case dict():
            return {name: _json(one) for name, one in value.items()}
        case list() | tuple():  # a pair of a map
            return [_json(one) for one in value]
        case bytes():
            return value.hex()
        case None | int() | str():
            return value
    return str(value)


def as_csv(table: Any) -> bytes:
    """Return rows as CSV, the fields of structs as columns."""
    out = io.BytesIO()
    csv.write_csv(flatten(table), out)
    return out.getvalue()


def as_parquet(table: Any) -> bytes:
    """Return rows as a Parquet file."""
    out = io.BytesIO()
    parquet.write_table(table, out, compression="zstd")
    return out.getvalue()


def as_arrow(table: Any) -> bytes:
    """Return rows as an Arrow IPC stream."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def as_votable(table: Any) -> bytes:
    """Return rows as a VOTable, with units and UCDs."""
    from astropy.io.votable import from_table
    from astropy.table import Table

    table = flatten(table)
    columns = [_column(name, table.column(name)) for name in table.schema.names]
    return _xml(from_table(Table(columns)))


def votable_error(why: str) -> bytes:
    """Return a VOTable with the error *why*, as Simple Cone Search wants it."""
    from astropy.io.votable.tree import Info, Resource, VOTableFile

    document = VOTableFile()
    document.resources.append(Resource())
    document.infos.append(Info(ID="Error", name="Error", value=NOT_XML.sub("\ufffd", why)))
    return _xml(document)


def _xml(document: "VOTableFile") -> bytes:
    out = io.BytesIO()
    document.to_xml(out)
    return out.getvalue()


def _column(name: str, values: Any) -> Any:
    from astropy.table import MaskedColumn

    unit, ucd, text = COLUMN_METADATA.get(name, (None, None, ""))
    about = {"name": name, "unit": unit, "description": text or None, "meta": {"ucd": ucd} if ucd else {}}
    kind = values.type
    mask = [not one.is_valid for one in values]
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        empty: Any = False if pa.types.is_boolean(kind) else 0
        plain = values.fill_null(empty).combine_chunks()
        return MaskedColumn(plain.to_numpy(zero_copy_only=False), mask=mask, **about)
    texts = ["" if one is None else NOT_XML.sub("\ufffd", str(_json(one))) for one in values.to_pylist()]
    return MaskedColumn(texts, dtype=object if texts else "U1", **about)


def flatten(table: Any) -> Any:
    """Return *table* with the fields of structs as columns, ``diaSource.psfFlux``."""
    while any(pa.types.is_struct(one.type) for one in table.schema):
        table = table.flatten()
    return table


def _checked(name: str, encode: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Return *encode*, with a QueryError where the format *name* cannot hold the answer."""

    def encode_checked(table: Any) -> bytes:
        try:
            return encode(table)
        except (pa.ArrowException, KeyError, OverflowError) as error:
            raise QueryError(f"{name} cannot hold this answer: {error}; ask for another form") from error

    return encode_checked


FORMATS: Mapping[str, tuple[str, Callable[[Any], bytes]]] = {
    "json": ("application/json", _checked("json", as_json)),
    "csv": ("text/csv", _checked("csv", as_csv)),
    "parquet": ("application/vnd.apache.parquet", _checked("parquet", as_parquet)),
    "arrow": ("application/vnd.apache.arrow.stream", _checked("arrow", as_arrow)),
    "votable": ("application/x-votable+xml", _checked("votable", as_votable)),
}
"""The media type of each format, and its encoder of tables."""
