"""Starts and ends the second process, and talks to it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nightwire.benchmarks._children import Child, python
from nightwire.benchmarks._scenario import Context


class Second:
    """A running `_reader`, in place: what is sent from now on, it reads."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._line()

    def findings(self) -> dict[str, Any]:
        """Wait until it has read all it expects (or, where it notes arrivals, all there is), and return what.

        Raises:
            ChildError: It ended in an error.
        """
        if self._child.process.stdin is not None:
            self._child.process.stdin.close()
        return self._line()

    def _line(self) -> dict[str, Any]:
        out = self._child.process.stdout
        if out is None or not (line := out.readline()):
            raise self._child.failure()
        said: dict[str, Any] = json.loads(line)
        return said


@contextmanager
def second_process(context: Context, order: dict[str, Any], log: Path) -> Iterator[Second]:
    """Yield a reader that does *order* (see `_reader.run`)."""
    command = python("nightwire.benchmarks._reader", json.dumps(order))
    with Child(command, log, talks=True) as child:
        context.role(child.process.pid, "consumer")
        yield Second(child)
