"""Starts and ends the other processes of a run, `_reader` and `_sender`, and talks to them."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nightwire.benchmarks.environment.processes import Child, python
from nightwire.benchmarks.model.scenario import Context

READER = "nightwire.benchmarks.workers.alerts.reader"
SENDER = "nightwire.benchmarks.workers.alerts.sender"
LATEST_OFFSET = "nightwire.benchmarks.workers.alerts.latest_offset"


class WorkerClient:
    """A process that was given an order: it says when it is in place, and at the end what it found."""

    def __init__(self, child: Child) -> None:
        self._child = child

    def await_ready(self) -> None:
        """Wait until it is in place.

        Raises:
            ChildError: It ended in an error.
        """
        self._line()

    def go(self) -> None:
        """Let a sender begin; tell a reader that notes arrivals that all was sent."""
        if self._child.process.stdin is not None:
            self._child.process.stdin.close()

    def ask(self) -> dict[str, Any]:
        """Send it an empty line; return what it says to that.

        Raises:
            ChildError: It ended in an error.
        """
        if self._child.process.stdin is not None:
            self._child.process.stdin.write(b"\n")
            self._child.process.stdin.flush()
        return self._line()

    def findings(self) -> dict[str, Any]:
        """Wait until it is through (where it notes arrivals: with all there is); return what it says.

        Raises:
            ChildError: It ended in an error.
        """
        self.go()
        return self._line()

    def _line(self) -> dict[str, Any]:
        out = self._child.process.stdout
        if out is None or not (line := out.readline()):
            raise self._child.failure()
        said: dict[str, Any] = json.loads(line)
        return said


@contextmanager
def worker_process(
    context: Context, module: str, order: Mapping[str, Any], log: Path, *, role: str
) -> Iterator[WorkerClient]:
    """Yield a process of *module* that was given *order*; it may not be in place yet."""
    with Child(python(module, json.dumps(order)), log, talks=True) as child:
        context.role(child.process.pid, role)
        yield WorkerClient(child)


@contextmanager
def reader_process(context: Context, order: Mapping[str, Any], log: Path) -> Iterator[WorkerClient]:
    """Yield a reader that does *order* (see `_reader.run`); what is sent from now on, it reads."""
    with worker_process(context, READER, order, log, role="consumer") as second:
        second.await_ready()
        yield second
