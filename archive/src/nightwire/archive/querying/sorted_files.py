"""Reads of Parquet files that are sorted by a column, by the row groups that can match."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from nightwire.archive.querying.min_max import MinMax
from nightwire.archive.querying.sql_engine import QueryError
from nightwire.archive.storage import StorageError, Store

Range = tuple[Any, Any]
"""The minimum and the maximum of a column, inclusive."""
CACHED_FOOTERS = 512
"""Files whose footers are cached: of ten million rows, 5 MB."""


class Footer(NamedTuple):
    """A file's footer: metadata, a column's statistics by row group, types to cast columns to."""

    metadata: Any
    min_max: MinMax
    casts: Mapping[str, Any]


class SortedFiles:
    """Reads files, and caches their footers and row groups: a file never changes.

    Args:
        store: The archive's.
        cached_groups: Number of cached row groups that were read alone.
    """

    def __init__(self, store: Store, cached_groups: int = 0) -> None:
        self._store = store
        self._footer = lru_cache(CACHED_FOOTERS)(self._read_footer)
        self._group = lru_cache(cached_groups)(self._read_groups)

    def rows(
        self,
        files: Sequence[str],
        column: str,
        ranges: Sequence[Range],
        names: Sequence[str],
        max_rows: int | None = None,
    ) -> Any:
        """Return the rows whose *column* lies in one of *ranges*.

        Args:
            files: Their addresses.
            column: The column by which they are sorted.
            ranges: Those of its values.
            names: Columns of the result.
            max_rows: Most rows that are read; None for any.

        Raises:
            QueryError: More would be read.
            StorageError: A file is not there, or damaged, or the store does not answer.
        """
        wanted = list(dict.fromkeys([*names, column]))
        groups = {file: some for file in files if (some := self._matching(file, column, ranges))}
        rows = (
            self._footer(one, column).metadata.row_group(n).num_rows for one in groups for n in groups[one]
        )
        if max_rows is not None and (count := sum(rows)) > max_rows:
            bound = f"up to {count:,} alerts would have to be looked at, {max_rows:,} are"
            raise QueryError(f"{bound}: ask for a smaller radius")
        found = [self._read(file, groups[file], column, ranges, wanted) for file in groups]
        return pa.concat_tables(found).select(list(names)) if found else None

    def _matching(self, file: str, column: str, ranges: Sequence[Range]) -> list[int]:
        """Return the row groups that can have a value in *ranges*."""
        min_max = self._footer(file, column).min_max
        return np.logical_or.reduce([min_max.may_contain(*one) for one in ranges]).nonzero()[0].tolist()  # type: ignore[no-any-return]

    def _read(
        self, file: str, groups: list[int], column: str, ranges: Sequence[Range], names: list[str]
    ) -> Any:
        read = self._group if len(groups) == 1 else self._read_groups
        table = read(file, tuple(groups), column, tuple(names))
        values = table.column(column)
        matches = reduce(pc.or_, [_between(values, *one) for one in ranges])
        indices = pc.indices_nonzero(matches)
        if len(indices) and (first := indices[0].as_py()) + len(indices) - 1 == indices[-1].as_py():
            return table.slice(first, len(indices))  # nothing is copied
        return table.filter(matches)

    def _read_groups(self, file: str, groups: tuple[int, ...], column: str, names: tuple[str, ...]) -> Any:
        footer = self._footer(file, column)
        with self._opened(file, footer.metadata) as opened:
            table = opened.read_row_groups(groups, list(names), use_threads=False)
        for name in footer.casts.keys() & {*names}:
            index = table.schema.get_field_index(name)
            table = table.set_column(index, name, table.column(index).cast(footer.casts[name]))
        return table

    def _read_footer(self, file: str, column: str) -> Footer:
        with self._opened(file) as opened:
            metadata, types = opened.metadata, {one.name: one.type for one in opened.schema_arrow}
        casts = {name: plain for name, kind in types.items() if (plain := _without_views(kind)) != kind}
        leaf = metadata.schema.names.index(column)
        found = [metadata.row_group(one).column(leaf).statistics for one in range(metadata.num_row_groups)]
        kind = _without_views(types[column])
        # of long texts there are none
        ends = (pa.array([getattr(one, end, None) for one in found], kind) for end in ("min", "max"))
        return Footer(metadata, MinMax(*ends), casts)

    @contextmanager
    def _opened(self, file: str, metadata: Any = None) -> Iterator[Any]:
        far = self._store.is_remote  # from there, adjacent columns are fetched at once
        try:
            where = self._store.filesystem.open(file.removeprefix("s3://")) if far else file
            with parquet.ParquetFile(where, metadata=metadata, memory_map=not far, pre_buffer=far) as opened:
                yield opened
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"{file}: {error}") from error


def _without_views(kind: Any) -> Any:
    """Return a type without Arrow's views, which delta-rs' DELETE writes and few functions take."""
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_views(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(_without_views(one.type)) for one in kind])
    return {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(kind, kind)


def _between(values: Any, low: Any, high: Any) -> Any:
    """Return which of *values* lie from *low* to *high*."""
    if low == high:
        return pc.equal(values, low)
    return pc.and_(pc.less_equal(values, high), pc.greater_equal(values, low))
