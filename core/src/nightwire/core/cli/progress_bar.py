"""Progress on long work: a bar where a person watches, plain lines where nobody does."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

PLAIN_INTERVAL = 5.0
"""Time between plain lines. [s]"""


class Meter(Protocol):
    """What `progress` yields."""

    def advance(self, count: int = 1) -> None:
        """Say that *count* more are done."""


class _Bar:
    def __init__(self, bar: Progress, total: int | None, title: str) -> None:
        self._bar, self._task = bar, bar.add_task(title, total=total)

    def advance(self, count: int = 1) -> None:
        self._bar.advance(self._task, count)


class _Lines:
    def __init__(self, console: Console, total: int | None, title: str) -> None:
        self._console, self._total, self._title = console, total, title
        self._done, self._said = 0, time.monotonic()

    def advance(self, count: int = 1) -> None:
        self._done += count
        if time.monotonic() - self._said > PLAIN_INTERVAL:
            self._said = time.monotonic()
            of = "" if self._total is None else f" of {self._total:,}"
            self._console.print(f"{self._title}: {self._done:,}{of}", highlight=False)


class _Nothing:
    def advance(self, count: int = 1) -> None:
        """Say nothing."""


@contextmanager
def progress(total: int | None, title: str, *, quiet: bool = False) -> Iterator[Meter]:
    """Yield a meter to ``advance``; it writes to standard error.

    Args:
        total: How many there will be; None when nobody knows.
        title: What is being done.
        quiet: Say nothing.
    """
    console = Console(stderr=True)
    if quiet:
        yield _Nothing()
    elif not console.is_terminal:
        yield _Lines(console, total, title)
    else:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, transient=False) as bar:
            yield _Bar(bar, total, title)
