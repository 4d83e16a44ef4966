"""Rows of files that are sorted by a column: of each, the groups that can have some are read."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from nightwire.archive.asking.bounds import Bounds
from nightwire.archive.asking.engine import QuestionError
from nightwire.archive.storage import StorageError, Store

Range = tuple[Any, Any]
"""Least and greatest of a column."""
MOST_KNOWN = 512
"""Files whose groups are remembered: of ten million rows, 5 MB."""


class Groups(NamedTuple):
    """The row groups of a file: footer, minimum and maximum of a column, types to cast to."""

    metadata: Any
    bounds: Bounds
    casts: Mapping[str, Any]


class SortedFiles:
    """Reads files, and remembers where in them things lie: a file never changes.

    Args:
        store: The archive's.
        kept: How many groups of rows are kept that were asked for alone.
    """

    def __init__(self, store: Store, kept: int = 0) -> None:
        self._store = store
        self._groups = lru_cache(MOST_KNOWN)(self._looked_up)
        self._group = lru_cache(kept)(self._read_groups)

    def rows(
        self,
        files: Sequence[str],
        column: str,
        ranges: Sequence[Range],
        names: Sequence[str],
        most: int | None = None,
    ) -> Any:
        """Return the rows whose *column* lies in one of *ranges*.

        Args:
            files: Their addresses.
            column: By which they are sorted.
            ranges: Least and greatest, both within.
            names: Columns of the answer.
            most: Most rows that are read; None for any.

        Raises:
            QuestionError: It would be more.
            StorageError: A file is not there, or damaged, or the store does not answer.
        """
        wanted = list(dict.fromkeys([*names, column]))
        groups = {file: at for file in files if (at := self._within(file, column, ranges))}
        if (
            most is not None
            and (count := sum(self._counted(file, column, groups[file]) for file in groups)) > most
        ):
            raise QuestionError(
                f"up to {count:,} alerts would have to be looked at, {most:,} are: ask for a smaller radius"
            )
        found = [self._read(file, groups[file], column, ranges, wanted) for file in groups]
        return pa.concat_tables(found).select(list(names)) if found else None

    def _within(self, file: str, column: str, ranges: Sequence[Range]) -> list[int]:
        """Return the groups that can have some."""
        bounds = self._groups(file, column).bounds
        return np.logical_or.reduce([bounds.within(*one) for one in ranges]).nonzero()[0].tolist()  # type: ignore[no-any-return]

    def _counted(self, file: str, column: str, groups: Sequence[int]) -> int:
        metadata = self._groups(file, column).metadata
        return sum(metadata.row_group(at).num_rows for at in groups)

    def _read(
        self, file: str, groups: list[int], column: str, ranges: Sequence[Range], names: list[str]
    ) -> Any:
        read = self._group if len(groups) == 1 else self._read_groups
        table = read(file, tuple(groups), column, tuple(names))
        values = table.column(column)
        within = reduce(pc.or_, [_between(values, *one) for one in ranges])
        at = pc.indices_nonzero(within)
        if len(at) and (first := at[0].as_py()) + len(at) - 1 == at[-1].as_py():
            return table.slice(first, len(at))  # nothing is copied
        return table.filter(within)

    def _read_groups(self, file: str, groups: tuple[int, ...], column: str, names: tuple[str, ...]) -> Any:
        footer = self._groups(file, column)
        with self._opened(file, footer.metadata) as opened:
            table = opened.read_row_groups(groups, list(names), use_threads=False)
        for name in footer.casts.keys() & {*names}:
            at = table.schema.get_field_index(name)
            table = table.set_column(at, name, table.column(at).cast(footer.casts[name]))
        return table

    def _looked_up(self, file: str, column: str) -> Groups:
        with self._opened(file) as opened:
            metadata, types = opened.metadata, {one.name: one.type for one in opened.schema_arrow}
        casts = {name: plain for name, kind in types.items() if (plain := _without_views(kind)) != kind}
        at = metadata.schema.names.index(column)
        found = [metadata.row_group(one).column(at).statistics for one in range(metadata.num_row_groups)]
        kind = _without_views(types[column])
        # of long texts there are none
        ends = (pa.array([getattr(one, end, None) for one in found], kind) for end in ("min", "max"))
        return Groups(metadata, Bounds(*ends), casts)

    @contextmanager
    def _opened(self, file: str, metadata: Any = None) -> Iterator[Any]:
        far = self._store.is_remote  # from there, what lies together is fetched at once
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
