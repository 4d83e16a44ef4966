"""The harness's side of the conversation with its workers: start, order, hear, end."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from nightwire.benchmarks import Context
from nightwire.benchmarks.environment.processes import Child, child_process, python

ALERT_WORKERS = "nightwire.benchmarks.workers.alerts"
READER, SENDER, LATEST_OFFSET, OWNER = (
    f"{ALERT_WORKERS}.{name}" for name in ("reader", "sender", "latest_offset", "owner")
)


class WorkerClient:
    """A worker process."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self.pid = child.process.pid

    def await_ready(self) -> None:
        """Wait until it is in place.

        Raises:
            ChildError: It ended in an error.
        """
        self.receive()

    def send(self, order: Mapping[str, Any]) -> None:
        """Give it an order."""
        self._write(json.dumps(order))

    def kill(self) -> None:
        """Kill it with -9."""
        self._child.kill()

    def signal(self) -> None:
        """Send an empty line: it begins; one that has begun may end."""
        self._write("")

    def close_input(self) -> None:
        """Let a sender begin; tell a reader that notes arrivals that all was sent."""
        if self._child.process.stdin is not None:
            self._child.process.stdin.close()

    def receive(self) -> Any:
        """Return the value of its next line.

        Raises:
            ChildError: It ended in an error.
        """
        out = self._child.process.stdout
        if out is None or not (line := out.readline()):
            raise self._child.failure()
        return json.loads(line)

    def findings(self) -> dict[str, Any]:
        """Close its input, wait until it is through, and return what it found.

        Raises:
            ChildError: It ended in an error.
        """
        self.close_input()
        found: dict[str, Any] = self.receive()
        return found

    def _write(self, line: str) -> None:
        if self._child.process.stdin is not None:
            self._child.process.stdin.write(f"{line}\n".encode())
            self._child.process.stdin.flush()


@contextmanager
def worker_process(
    context: Context,
    module: str,
    order: Mapping[str, Any],
    *,
    role: str,
    log: str = "",
    inside: Sequence[str] = (),
) -> Iterator[WorkerClient]:
    """Yield a process of *module* that was given *order*; it may not be in place yet.

    The words *inside* run its command elsewhere, such as in a network namespace.
    """
    command = [*inside, *python(module, json.dumps(order))]
    with child_process(context, command, role, log=log, talks=True) as child:
        yield WorkerClient(child)


@contextmanager
def reader_process(
    context: Context, bootstrap: str, topics: Sequence[str], work: str, **order: Any
) -> Iterator[WorkerClient]:
    """Yield a reader of *topics*, in place; see `reader.run` for *work* and *order*."""
    whole = {"bootstrap": bootstrap, "topics": list(topics), "work": work, **order}
    with worker_process(context, READER, whole, role="consumer") as reader:
        reader.await_ready()
        yield reader
