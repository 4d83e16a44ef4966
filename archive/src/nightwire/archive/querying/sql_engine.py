"""SQL over the archive's files, by a DuckDB that can read these alone, and write nothing."""

import os
import threading
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from nightwire.archive.storage import ArchiveError, StorageError, Store

ANSWERED = frozenset({duckdb.StatementType.SELECT})
"""Statements that are answered; not EXPLAIN: with ANALYZE it runs what it explains, even a COPY."""
BATCH_ROWS = 2048
"""Rows of an answer between two looks at its size."""
HINTS = {
    "not found in FROM": "Arrays and stamps are no columns: light_curve has the histories, and whole alerts "
    "(avro) have all",
    "Table with name": "SHOW TABLES lists what is archived; alerts are there within a minute, or as "
    "`archive serve --every` says",
}
"""Advice for errors of DuckDB's, by a part of their messages."""
TIMEOUT = 60.0
"""Longest time for a query. [s]"""


class QueryError(ArchiveError):
    """A query that cannot be answered; the message names what is wrong, and where."""


class SqlEngine:
    """Answers SQL.

    Args:
        store: The archive's.
        memory: Most memory of one query, as DuckDB writes it: ``4GB``.
    """

    def __init__(self, store: Store, memory: str = "4GB") -> None:
        self._connection = duckdb.connect(
            config={"memory_limit": memory, "threads": str(os.cpu_count() or 1), "temp_directory": ""}
        )
        if store.is_remote:
            self._connection.register_filesystem(store.filesystem)
        folder = store.url.replace("'", "''")
        for setting in (
            "parquet_metadata_cache = true",
            "python_scan_all_frames = false",
            "python_enable_replacements = false",
            f"allowed_directories = ['{folder}/']",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            self._connection.execute(f"SET {setting}")
        self._lock = threading.Lock()
        self.views: dict[str, str] = {}

    def define_view(self, view: str, rows: str) -> None:
        """Define *view* as *rows*, a `parquet_source`, or redefine it.

        Raises:
            StorageError: A file is not there, or damaged, or the store does not answer.
        """
        with self._lock:
            try:
                self._connection.execute(f'CREATE OR REPLACE VIEW "{view}" AS FROM {rows}')
            except duckdb.Error as error:
                raise StorageError(f"{view}: {error}") from error
            self.views = self.views | {view: rows}

    def run(self, sql: str) -> Any:
        """Return the answer to a query of ours, an Arrow table.

        Raises:
            QueryError: A column does not exist.
            StorageError: A file is not there, or damaged, or the store does not answer.
        """
        with self._connection.cursor() as cursor:
            try:
                return cursor.sql(sql).to_arrow_table()
            except duckdb.BinderException as error:
                raise QueryError(str(error)) from error
            except duckdb.Error as error:
                raise StorageError(str(error)) from error

    def answer(
        self, sql: str, *, max_rows: int | None = None, timeout: float = TIMEOUT, max_bytes: int | None = None
    ) -> Any:
        """Return the answer to a user's query, an Arrow table.

        Args:
            sql: One SELECT.
            max_rows: Most rows; None for all.
            timeout: Longest time. [s]
            max_bytes: Most that the rows take in memory; None for any. [byte]

        Raises:
            QueryError: It is no SELECT, wrong, writes, or takes too much time or memory.
            StorageError: A file is not there, or the store does not answer.
        """
        try:
            statements = self._connection.extract_statements(sql)
        except duckdb.Error as error:
            raise QueryError(str(error)) from error
        if len(statements) != 1 or statements[0].type not in ANSWERED:
            kinds = ", ".join(one.type.name for one in statements) or "nothing"
            raise QueryError(
                f"{sql.strip()[:80]!r} is {kinds}: one SELECT is answered, nothing is written here"
            )
        with self._connection.cursor() as cursor:
            timer = threading.Timer(timeout, cursor.interrupt)
            timer.start()
            try:
                cursor.execute("BEGIN TRANSACTION READ ONLY")
                found = cursor.sql(sql)
                chosen = found if max_rows is None else found.limit(max_rows)
                return _collect(chosen.to_arrow_reader(BATCH_ROWS), max_bytes)
            except duckdb.InterruptException as error:
                raise timeout_error(timeout) from error
            except duckdb.IOException as error:
                raise StorageError(str(error)) from error
            except (duckdb.Error, pa.ArrowException) as error:
                hints = [hint for part, hint in HINTS.items() if part in str(error)]
                raise QueryError("\n".join([str(error), *hints])) from error
            finally:
                timer.cancel()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def timeout_error(timeout: float) -> QueryError:
    """Return the error for a query that takes longer than *timeout*. [s]"""
    return QueryError(
        f"no answer within {timeout:g} s: bound it by night or _healpix_29, or ask for fewer rows"
    )


def _collect(batches: Any, max_bytes: int | None) -> Any:
    """Return the rows of *batches* as a table."""
    found, size = [], 0
    for batch in batches:
        found.append(batch)
        size += batch.nbytes
        if max_bytes is not None and size > max_bytes:
            raise QueryError(
                f"the answer has more than {max_bytes >> 20} MiB: ask for fewer columns, or fewer rows "
                "(WHERE, LIMIT, limit=)"
            )
    return _without_decimals(pa.Table.from_batches(found, batches.schema))


def _without_decimals(table: Any) -> Any:
    """Return *table* with integers and floats in place of decimals: sums of integers are such."""
    for n, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            column = table.column(n)
            try:
                column = column.cast(pa.float64() if field.type.scale else pa.int64())
            except pa.ArrowInvalid:  # beyond 64 bits
                column = column.cast(pa.float64())
            table = table.set_column(n, field.name, column)
    return table


def parquet_source(files: Sequence[str], hive: str) -> str:
    """Return the SQL that reads *files*; *hive*: names and types of their partition columns."""
    names = ", ".join("'" + one.replace("'", "''") + "'" for one in files)
    return f"read_parquet([{names}], union_by_name = true, hive_partitioning = true, hive_types = {{{hive}}})"
