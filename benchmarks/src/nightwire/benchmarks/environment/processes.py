"""Child processes that end when we do, whatever ends us."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import httpx

from nightwire.benchmarks import Context
from nightwire.core.stack import die_with_parent, free_port


class ChildError(Exception):
    """A child process ended, or did not get ready; the message holds the end of its log."""


def python(module: str, *words: str) -> list[str]:
    """Return the command line of a module, run by this Python."""
    return [sys.executable, "-m", module, *words]


def nightwire(*words: str) -> list[str]:
    """Return the command line of one of our verbs."""
    return python("nightwire.core.cli", *words)


class Child:
    """A process in a group of its own, started at once; leaving the ``with`` block ends the group.

    Args:
        command: Its command line.
        log: Where its errors go, and its output unless it talks.
        talks: Whether its input and output are pipes to us.
        patience: Longest wait for its clean end. [s]
    """

    def __init__(
        self, command: Sequence[str], log: Path, *, talks: bool = False, patience: float = 30.0
    ) -> None:
        self._log, self._patience = log, patience
        self._what = " ".join(command[2:5])
        pipe = subprocess.PIPE
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                command,
                stdin=pipe if talks else subprocess.DEVNULL,
                stdout=pipe if talks else out,
                stderr=out,
                start_new_session=True,  # Ctrl-C is ours to pass on, in order
                preexec_fn=die_with_parent,  # noqa: PLW1509  (touches no lock)
            )

    def await_health(self, port: int) -> None:
        """Wait until its page on *port* says that it is healthy.

        Raises:
            ChildError: It ended, or was not healthy within two minutes.
        """
        with httpx.Client(timeout=5.0) as client:
            self.until(lambda: _healthy(client, port), timeout=120.0)

    def until(self, holds: Callable[[], object], *, timeout: float, pause: float = 0.1) -> None:
        """Ask each *pause* [s] until something *holds*.

        Raises:
            ChildError: It ended, or that does not hold within *timeout* [s].
        """
        deadline = time.monotonic() + timeout
        while not holds():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise self.failure()
            time.sleep(pause)

    def failure(self) -> ChildError:
        """Return an error that says how it ended."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        output = self._log.read_text(errors="replace")[-2000:]
        return ChildError(f"`{self._what}` failed (exit status {self.process.returncode}):\n{output}")

    def end(self) -> None:
        """Ask it to leave; kill its group when that takes too long."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(self._patience)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # what it left behind
        self.process.wait()

    def kill(self) -> None:
        """Kill its group with -9, as a power cut would."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.end()  # closes the pipes to it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.end()


@contextmanager
def child_process(
    context: Context, command: Sequence[str], role: str, *, log: str = "", talks: bool = False
) -> Iterator[Child]:
    """Yield a process in a *role*, which is also the name of its log unless *log* is given."""
    with Child(command, context.folder / f"{log or role}.log", talks=talks) as child:
        context.role(child.process.pid, role)
        yield child


@contextmanager
def server_process(
    context: Context, role: str, *words: str, log: str = "", page: int | None = None
) -> Iterator[Child]:
    """Yield the process of one of our verbs, whose metrics *page* says that it is healthy.

    Raises:
        ChildError: It ended, or was not healthy within two minutes.
    """
    page = page or free_port()
    command = [*nightwire(*words), "--metrics-port", str(page)]
    with child_process(context, command, role, log=log) as child:
        child.await_health(page)
        yield child


def _healthy(client: httpx.Client, port: int) -> bool:
    try:
        return client.get(f"http://127.0.0.1:{port}/health").status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
