"""Strangers' SQL, answered by processes of its own: who takes too long, or too much, is killed.

DuckDB looks for an interrupt between rows alone: one `repeat` can keep it for minutes, within no
limit of memory.  Here it keeps nobody else, and not what archives.
"""

import resource
from collections.abc import Mapping
from multiprocessing import get_context
from multiprocessing.connection import Connection
from queue import Empty, LifoQueue
from typing import Any

from nightwire.archive.asking.engine import Engine, QuestionError, too_late
from nightwire.archive.storage import ArchiveError, Store

AT_ONCE = 2
"""Questions that are answered at the same time."""
MEMORY = "2GB"
"""What one question may use, as DuckDB counts it."""
ADDRESSES = 8 << 30
"""What a process may use, mapped files among it. [byte]"""
PATIENCE = 5.0
"""Longest wait for the end of others' questions. [s]"""
GRACE = 1.0
"""So much later than DuckDB was interrupted its process is killed. [s]"""


class BusyError(ArchiveError):
    """Others' questions are being answered: ask again later."""


class Questions:
    """Answers questions in processes that stay, so that they remember the files.

    Safe to share between threads.

    Args:
        store: The archive's.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._idle: LifoQueue[_Worker | None] = LifoQueue()
        for _ in range(AT_ONCE):
            self._idle.put(None)

    def answer(self, sql: str, views: Mapping[str, str], most: int, limit: float, most_bytes: int) -> Any:
        """Return the answer to a SELECT as `Engine.answer` does.

        Args:
            sql: One SELECT.
            views: What it may ask for by name: each a `source`.
            most: As the others, a bound of `Engine.answer`.
            limit: Its process is killed soon after. [s]
            most_bytes: In memory. [byte]

        Raises:
            ArchiveError: Those of `Engine.answer`.
            BusyError: Too many ask.
        """
        try:
            worker = self._idle.get(timeout=PATIENCE)
        except Empty:
            raise BusyError(f"{AT_ONCE} questions are being answered: ask again later") from None
        try:
            if worker is None or not worker.is_alive:
                worker = _Worker(self._store)
            return worker.answer(sql, views, most, limit, most_bytes)
        except (EOFError, OSError) as error:
            if worker is not None:
                worker.kill()
            raise QuestionError("it took too much memory: ask for fewer rows, or shorter ones") from error
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """End the processes that answer nobody."""
        while not self._idle.empty():
            if (worker := self._idle.get()) is not None:
                worker.kill()


class _Worker:
    """A process that answers one question after the other."""

    def __init__(self, store: Store) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, store.url), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()  # it has begun: its start is nobody's time

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def answer(self, sql: str, views: Mapping[str, str], most: int, limit: float, most_bytes: int) -> Any:
        self._pipe.send((views, sql, {"most": most, "limit": limit, "most_bytes": most_bytes}))
        if not self._pipe.poll(limit + GRACE):
            self.kill()
            raise too_late(limit)
        if isinstance(found := self._pipe.recv(), ArchiveError):
            raise found
        return found

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _work(pipe: Connection, url: str) -> None:
    """Answer questions until nobody is there any more."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    engine = Engine(Store(url), MEMORY)
    pipe.send(None)
    while True:
        try:
            views, sql, bounds = pipe.recv()
        except EOFError:
            return
        try:
            for view, rows in views.items():
                if engine.views.get(view) != rows:
                    engine.define(view, rows)
            pipe.send(engine.answer(sql, **bounds))
        except ArchiveError as error:
            pipe.send(error)
