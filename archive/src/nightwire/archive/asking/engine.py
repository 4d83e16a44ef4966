"""SQL over the archive's files: DuckDB, which may read them, nothing else, and write nothing."""

import os
import threading
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from nightwire.archive.storage import ArchiveError, StorageError, Store

READS = frozenset({duckdb.StatementType.SELECT})
"""Statements that are answered; no EXPLAIN: with ANALYZE it does what it explains, even a COPY."""
BATCH = 2048
"""Rows of an answer that are looked at together."""
LIMIT = 60.0
"""Longest time for a question. [s]"""


class QuestionError(ArchiveError):
    """SQL that cannot be answered: it names what is wrong, and where."""


class Engine:
    """Answers SQL.

    Args:
        store: The archive's.
        memory: What one question may use. (DuckDB's words, ``4GB``)
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

    def define(self, view: str, rows: str) -> None:
        """Let *view* be *rows*, a `source`.

        Raises:
            StorageError: A file is not there, or damaged, or the store does not answer.
        """
        with self._lock:
            try:
                self._connection.execute(f'CREATE OR REPLACE VIEW "{view}" AS FROM {rows}')
            except duckdb.Error as error:
                raise StorageError(f"{view}: {error}") from error
            self.views = self.views | {view: rows}

    def rows(self, sql: str) -> Any:
        """Return the answer to a question of ours, an Arrow table.

        Raises:
            QuestionError: There is no column that somebody wants.
            StorageError: A file is not there, or damaged, or the store does not answer.
        """
        with self._connection.cursor() as cursor:
            try:
                return cursor.sql(sql).to_arrow_table()
            except duckdb.BinderException as error:
                raise QuestionError(str(error)) from error
            except duckdb.Error as error:
                raise StorageError(str(error)) from error

    def answer(
        self, sql: str, *, most: int | None = None, limit: float = LIMIT, most_bytes: int | None = None
    ) -> Any:
        """Return the answer to somebody's question, an Arrow table.

        Args:
            sql: One SELECT.
            most: Most rows; None for all.
            limit: Longest time. [s]
            most_bytes: Most that the rows take in memory; None for any. [byte]

        Raises:
            QuestionError: It is another statement, wrong, writes, or takes too long or much.
            StorageError: A file is not there, or the store does not answer.
        """
        try:
            statements = self._connection.extract_statements(sql)
        except duckdb.Error as error:
            raise QuestionError(str(error)) from error
        if len(statements) != 1 or statements[0].type not in READS:
            kinds = ", ".join(one.type.name for one in statements) or "nothing"
            raise QuestionError(
                f"{sql.strip()[:80]!r} is {kinds}: one SELECT is answered, nothing is written here"
            )
        with self._connection.cursor() as cursor:
            timer = threading.Timer(limit, cursor.interrupt)
            timer.start()
            try:
                cursor.execute("BEGIN TRANSACTION READ ONLY")
                found = cursor.sql(sql)
                chosen = found if most is None else found.limit(most)
                return _gathered(chosen.to_arrow_reader(BATCH), most_bytes)
            except duckdb.InterruptException as error:
                raise too_late(limit) from error
            except duckdb.IOException as error:
                raise StorageError(str(error)) from error
            except (duckdb.Error, pa.ArrowException) as error:
                raise QuestionError(str(error)) from error
            finally:
                timer.cancel()

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()


def too_late(limit: float) -> QuestionError:
    """Return what is said of a question that takes longer than *limit*. [s]"""
    return QuestionError(
        f"no answer within {limit:g} s: bound it by night or _healpix_29, or ask for fewer rows"
    )


def _gathered(batches: Any, most_bytes: int | None) -> Any:
    """Return the rows of *batches* as a table."""
    found, size = [], 0
    for batch in batches:
        found.append(batch)
        size += batch.nbytes
        if most_bytes is not None and size > most_bytes:
            raise QuestionError(
                f"the answer has more than {most_bytes >> 20} MiB: ask for fewer columns, or fewer rows "
                "(WHERE, LIMIT, limit=)"
            )
    return pa.Table.from_batches(found, batches.schema)


def source(files: Sequence[str], hive: str) -> str:
    """Return what SQL reads *files* from; *hive*: names and types of their folders' columns."""
    names = ", ".join("'" + one.replace("'", "''") + "'" for one in files)
    return f"read_parquet([{names}], union_by_name = true, hive_partitioning = true, hive_types = {{{hive}}})"
