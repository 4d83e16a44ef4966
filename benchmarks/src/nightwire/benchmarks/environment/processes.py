"""Child processes that end when we do, whatever ends us."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from nightwire.core.stack import die_with_parent


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

    def await_health(self, port: int, *, timeout: float = 120.0) -> None:
        """Wait until its page on *port* says that it is healthy.

        Raises:
            ChildError: It ended, or was not healthy within *timeout* [s].
        """
        deadline = time.monotonic() + timeout
        with httpx.Client(timeout=5.0) as client:
            while not _healthy(client, port):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise self.failure()
                time.sleep(0.1)

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


def _healthy(client: httpx.Client, port: int) -> bool:
    try:
        return client.get(f"http://127.0.0.1:{port}/health").status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
