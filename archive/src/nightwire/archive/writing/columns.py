"""Rows of `alerts` and `index` from decoded alerts.  Pure.

Numbers are kept in their widest kind (``long``, ``double``), so that no later version of a schema
finds a column too narrow; records become structs, so that ``diaSource.psfFlux`` is the column's
name in SQL as it is everywhere.  Arrays and bytes are not columns: they lie in the packets.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nightwire.schemas import AlertTable, Codec, SchemaError, Survey
from nightwire.schemas.survey_model import healpix as pixels_at

TEXT_COLUMNS = ("id", "object_id", "solar_system_id", "band")
NUMBER_COLUMNS = ("mjd_tai", "ra", "dec", "flux", "flux_error", "snr", "magnitude")
CANONICAL: tuple[str, ...] = ("id", "object_id", "solar_system_id", "visit", *NUMBER_COLUMNS, "band")
"""Columns by canonical names.  Ids are texts, since those of some surveys are."""
COMMON = ("night", "npix", "_healpix_29", *CANONICAL, "partition", "offset", "timestamp", "schema_id")
"""Columns that every survey has."""
ORDER = 29
"""HEALPix order of ``_healpix_29``, HATS' column by which rows are sorted."""
PARTITION_ORDER = 2
"""HEALPix order of ``npix``, the partitions of a night: 192 pixels of 14.7 degrees."""
NO_PIXEL = -1
"""Pixel of an alert without position."""
EPOCH = np.datetime64("1858-11-17")
"""Day 0 of the modified Julian date."""


def scalar_paths(codec: Codec) -> list[str]:
    """Return the dotted paths of the fields of a schema that are columns."""
    found: list[str] = []
    for field in codec.schema["fields"]:
        try:
            kind = codec.columns([], [field["name"]]).schema.field(0).type
        except SchemaError:  # a union of several types
            continue
        found += _leaves(field["name"], kind)
    return list(dict.fromkeys(found))


def _leaves(path: str, kind: Any) -> list[str]:
    if pa.types.is_struct(kind):
        return [leaf for field in kind for leaf in _leaves(f"{path}.{field.name}", field.type)]
    return [path] if _widest(kind) is not None else []


def _widest(kind: Any) -> Any:
    """Return the type of a column that holds *kind*; None for a type that is no column."""
    kinds: Sequence[tuple[Callable[[Any], bool], Any]] = (
        (pa.types.is_boolean, pa.bool_()),
        (pa.types.is_integer, pa.int64()),
        (pa.types.is_floating, pa.float64()),
        (pa.types.is_string, pa.string()),
        (pa.types.is_date, pa.date32()),
        (pa.types.is_timestamp, pa.timestamp("us", tz="UTC")),
    )
    return next((widest for test, widest in kinds if test(kind)), None)


def alert_rows(batch: Any, survey: Survey, origins: Any) -> Any:
    """Return the rows of alerts.

    Args:
        batch: One row an alert, columns named by dotted paths.
        survey: That of the alerts.
        origins: Each alert's row of `PACKET_SCHEMA`.
    """
    table = AlertTable(batch, survey)
    columns = {name: _canonical(table, name) for name in CANONICAL}
    pixels = healpix(columns["ra"], columns["dec"])
    sorting = {
        "night": nights(columns["mjd_tai"], origins.column("timestamp")),
        "npix": pc.if_else(
            pc.greater_equal(pixels, 0), pc.shift_right(pixels, 2 * (ORDER - PARTITION_ORDER)), NO_PIXEL
        ),
        "_healpix_29": pixels,
    }
    origin = {name: origins.column(name) for name in ("partition", "offset", "timestamp", "schema_id")}
    common = sorting | columns | origin
    return pa.table({name: common[name] for name in COMMON} | _survey_columns(batch))


def _canonical(table: AlertTable, name: str) -> Any:
    text = name in TEXT_COLUMNS
    kind = pa.string() if text else pa.int64() if name == "visit" else pa.float64()
    try:
        found = table[name]
    except KeyError:
        return pa.nulls(len(table), kind)
    if text and found.values.dtype == object:
        return pa.array([None if one is None else str(one) for one in found.items], kind)
    return _cast(pa.array(found.values, mask=found.null), kind)


def _cast(column: Any, kind: Any) -> Any:
    """Return a column cast to *kind*; values that it cannot hold, such as times in ms, are null."""
    try:
        return column.cast(kind, safe=not pa.types.is_floating(kind))
    except pa.ArrowInvalid:
        made = column.cast(kind, safe=False)
        return pc.if_else(pc.equal(made.cast(column.type, safe=False), column), made, pa.scalar(None, kind))


def healpix(ra: Any, dec: Any) -> Any:
    """Return the pixel of each position [deg, ICRS], order 29, nested; `NO_PIXEL` for none."""
    longitude, latitude = (np.asarray(one.to_numpy(zero_copy_only=False), float) for one in (ra, dec))
    known = np.isfinite(longitude) & (np.abs(latitude) <= 90.0)
    found = np.full(len(longitude), NO_PIXEL, np.int64)
    found[known] = pixels_at(longitude[known], latitude[known], ORDER)
    return pa.array(found)


def nights(mjd: Any, timestamps: Any) -> Any:
    """Return the night of each alert: the day, from noon to noon UTC, on which it began.

    Args:
        mjd: Modified Julian dates; where null, the record's timestamp counts.
        timestamps: The records' timestamps.
    """
    moments = timestamps.cast(pa.timestamp("us")).to_numpy().astype("datetime64[us]")
    days = (moments - EPOCH.astype("datetime64[us]")) / np.timedelta64(1, "D")
    found = np.asarray(mjd.to_numpy(zero_copy_only=False), float)
    found = np.floor(np.where(np.isfinite(found), found, days) - 0.5)
    return pa.array(EPOCH + np.clip(found, 0, 300_000).astype("timedelta64[D]"))


def _survey_columns(batch: Any) -> dict[str, Any]:
    """Return the survey's own columns: texts, numbers, and structs of them."""
    tree: dict[str, Any] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if (kind := _widest(column.type)) is None:
            continue
        *records, leaf = name.split(".")
        inner = tree
        for record in records:
            inner = inner.setdefault(record, {})
        inner[leaf] = _cast(column, kind)
    return _unique({_unused(name): _struct(found) for name, found in tree.items()})


def _unused(name: str) -> str:
    """Return *name*, with ``_`` where it is a common column's: SQL ignores case."""
    return f"{name}_" if name.lower() in COMMON else name


def _struct(found: Any) -> Any:
    if not isinstance(found, Mapping):
        return found
    named = _unique(found)
    return pa.StructArray.from_arrays([_struct(one) for one in named.values()], list(named))


def _unique(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns by names that differ in more than case."""
    made: dict[str, Any] = {}
    for name, one in found.items():
        while name.lower() in {other.lower() for other in made}:
            name += "_"  # noqa: PLW2901
        made[name] = one
    return made


def conform(rows: Any, known: Any) -> Any:
    """Return *rows* as they can be appended to a table of the schema *known*.

    A field whose type has changed, a number to a text, gets a column beside the old one:
    ``flags_string``; one that differs from another in case, ``Flags_``.
    """
    columns = zip(rows.schema.names, rows.combine_chunks().columns, strict=True)
    parts = [_conform(name, column, known) for name, column in columns]
    return pa.table(_unique(dict(parts)))


def _conform(name: str, column: Any, known: Any) -> tuple[str, Any]:
    """Return a column and its name among the fields *known* of a schema or a struct."""
    index = known.get_field_index(name)
    if index < 0 and name.lower() in {one.name.lower() for one in known}:
        return _conform(f"{name}_", column, known)
    kind = column.type if index < 0 else known.field(index).type
    if kind == column.type:
        return name, column
    if not (pa.types.is_struct(kind) and pa.types.is_struct(column.type)):
        return _conform(f"{name}_{column.type}".partition("<")[0], column, known)
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    parts = dict(_conform(one.name, whole.field(one.name), kind) for one in column.type)
    return name, pa.StructArray.from_arrays(list(parts.values()), list(parts))


def index_rows(alerts: Any) -> Any:
    """Return the index rows of alerts: by id, object, solar-system object, and position.

    Each has the common columns, so that most answers need nothing else; each kind is sorted by its
    ``key``, so that one object's rows lie together.
    """
    kinds = (("id", "id"), ("object", "object_id"), ("object", "solar_system_id"), ("place", "_healpix_29"))
    return pa.concat_tables([_indexed(alerts.select(COMMON), kind, column) for kind, column in kinds])


def _indexed(alerts: Any, kind: str, column: str) -> Any:
    found = alerts.filter(pc.is_valid(alerts.column(column)))
    keys = found.column(column)
    if column == "_healpix_29":
        keys = pc.utf8_lpad(keys.cast(pa.string()), 20, "0")
    added = {
        "month": pc.strftime(found.column("night"), "%Y-%m"),
        "kind": pa.array([kind] * len(found), pa.string()),
        "key": keys.cast(pa.string()),
    }
    return pa.table(added | {name: found.column(name) for name in COMMON})
