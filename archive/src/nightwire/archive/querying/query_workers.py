"""Worker processes for untrusted SQL, which are killed at a limit of time or memory.

DuckDB looks for an interrupt between rows alone: one `repeat` can keep it busy for minutes, beyond
its memory limit.  In a worker it stops neither other queries nor the consumer.
"""

import resource
from collections.abc import Mapping
from multiprocessing import get_context
from multiprocessing.connection import Connection
from queue import Empty, LifoQueue
from typing import Any

from nightwire.archive.querying.sql_engine import QueryError, SqlEngine, timeout_error
from nightwire.archive.storage import ArchiveError, Store

WORKERS = 2
"""Worker processes, each of which answers one query at a time."""
MEMORY_LIMIT = "2GB"
"""Most memory of one query, as DuckDB counts it."""
ADDRESS_SPACE = 8 << 30
"""Most address space of a worker, mapped files among it. [byte]"""
QUEUE_TIMEOUT = 5.0
"""Longest wait for a free worker. [s]"""
KILL_GRACE = 1.0
"""Time between DuckDB's interrupt and the kill of its process. [s]"""


class BusyError(ArchiveError):
    """All workers are busy: ask again later."""


class QueryWorkers:
    """A pool of worker processes, which stay for their caches of files.

    Safe to share between threads.

    Args:
        store: The archive's.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._idle: LifoQueue[_Worker | None] = LifoQueue()
        for _ in range(WORKERS):
            self._idle.put(None)

    def answer(
        self, sql: str, views: Mapping[str, str], max_rows: int, timeout: float, max_bytes: int
    ) -> Any:
        """Return the answer to a SELECT as `SqlEngine.answer` does.

        Args:
            sql: One SELECT.
            views: A `parquet_source` for each name that it may use.
            max_rows: Most rows of the answer.
            timeout: Longest time; the worker is killed soon after. [s]
            max_bytes: Most that the rows take in memory. [byte]

        Raises:
            ArchiveError: Those of `SqlEngine.answer`.
            BusyError: No worker became free.
        """
        try:
            worker = self._idle.get(timeout=QUEUE_TIMEOUT)
        except Empty:
            raise BusyError(f"{WORKERS} questions are being answered: ask again later") from None
        try:
            if worker is None or not worker.is_alive:
                worker = _Worker(self._store)
            return worker.answer(sql, views, timeout, max_rows=max_rows, max_bytes=max_bytes)
        except (EOFError, OSError) as error:
            if worker is not None:
                worker.kill()
            raise QueryError("it took too much memory: ask for fewer rows, or shorter ones") from error
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """End the idle workers."""
        while not self._idle.empty():
            if (worker := self._idle.get()) is not None:
                worker.kill()


class _Worker:
    """A process that answers one query after the other."""

    def __init__(self, store: Store) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, store.url), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()  # it has started: that takes no query's time

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def answer(self, sql: str, views: Mapping[str, str], timeout: float, **bounds: int) -> Any:
        self._pipe.send((views, sql, {"timeout": timeout} | bounds))
        if not self._pipe.poll(timeout + KILL_GRACE):
            self.kill()
            raise timeout_error(timeout)
        if isinstance(found := self._pipe.recv(), ArchiveError):
            raise found
        return found

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _serve(pipe: Connection, url: str) -> None:
    """Answer queries until the pipe is closed."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    engine = SqlEngine(Store(url), MEMORY_LIMIT)
    pipe.send(None)
    while True:
        try:
            views, sql, bounds = pipe.recv()
        except EOFError:
            return
        try:
            for view, rows in views.items():
                if engine.views.get(view) != rows:
                    engine.define_view(view, rows)
            pipe.send(engine.answer(sql, **bounds))
        except ArchiveError as error:
            pipe.send(error)
