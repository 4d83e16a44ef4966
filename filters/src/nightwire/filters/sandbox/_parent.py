"""The sandbox's side of the warmed parent: start it, have it warm modules, fork and end children."""

import json
import logging
import mmap
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from nightwire.filters.sandbox._contract import Limits, SandboxError
from nightwire.filters.sandbox._process import Child, LostError

log = logging.getLogger(__name__)

ENVIRONMENT = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "HOME": "/nonexistent",
}
"""All that the parent knows: that a process which is going to fork has one thread, and reserves nothing."""

START = "from nightwire.filters.sandbox._zygote import main; main()"
ANSWER_S = 60.0
"""Longest wait for the parent: it imports astropy in 2 s on a quiet machine. [s]"""
MOST = 1 << 16
"""Longest answer. [byte]"""


class ParentLostError(Exception):
    """The warmed parent is gone."""


class Parent:
    """The warmed parent's process, started without the environment and without the user's paths.

    Args:
        limits: Of the children.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.warmed: frozenset[str] = frozenset()
        self._start()

    def _start(self) -> None:
        """Start it.

        Raises:
            SandboxError: It does not come up.
        """
        self.warmed = frozenset()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(ANSWER_S)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", START],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env=ENVIRONMENT,
            )
        try:
            self._answer()
        except ParentLostError as error:
            self.close()
            raise SandboxError("the sandbox's parent process did not start; its error is above") from error

    def close(self) -> None:
        """End it, and with it all children."""
        self._control.close()
        try:
            self._process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def restart(self) -> None:
        """Put a new one in its place.

        Raises:
            SandboxError: It does not come up.
        """
        log.warning("the sandbox's parent process was lost: starting another")
        with suppress(ProcessLookupError):
            self._process.kill()
        self.close()
        self._start()

    def warm(self, groups: frozenset[str]) -> None:
        """Have it import what of *groups* it has not; what cannot be is logged, and missing in the children.

        Raises:
            ParentLostError: It is gone.
        """
        for group in sorted(groups - self.warmed):
            if error := self._ask({"warm": group}).get("error"):
                log.warning("%s", error)
            self.warmed |= {group}

    def fork(self) -> Child:
        """Return a new child, its walls up.

        Raises:
            ParentLostError: It is gone.
            LostError: The child did not come up.
        """
        ours, theirs = socket.socketpair()
        page = os.memfd_create("progress", os.MFD_CLOEXEC)
        try:
            os.ftruncate(page, mmap.PAGESIZE)
            shown = mmap.mmap(page, mmap.PAGESIZE)
            pid = self._ask({"fork": asdict(self._limits)}, [theirs.fileno(), page])["pid"]
        except ParentLostError:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(page)
        child = Child(pid, ours, shown, self.warmed)
        try:
            child.await_walls()
        except LostError:
            self.end(child)
            raise
        return child

    def end(self, child: Child) -> int:
        """Kill and reap *child*; return its status, which is its own where it had ended before."""
        child.close()
        try:
            return int(self._ask({"end": child.pid})["status"])
        except ParentLostError:
            return -signal.SIGKILL  # children end with it

    def discard(self, child: Child) -> None:
        """Have *child* killed and reaped, without waiting for that."""
        child.close()
        with suppress(ParentLostError):  # children end with it
            self._tell({"discard": child.pid})

    def _ask(self, request: dict[str, Any], descriptors: list[int] | None = None) -> dict[str, Any]:
        self._tell(request, descriptors)
        return self._answer()

    def _tell(self, request: dict[str, Any], descriptors: list[int] | None = None) -> None:
        try:
            socket.send_fds(self._control, [json.dumps(request).encode()], descriptors or [])
        except OSError as error:
            raise ParentLostError("the sandbox's parent process is gone") from error

    def _answer(self) -> dict[str, Any]:
        try:
            body = self._control.recv(MOST)
        except OSError as error:
            raise ParentLostError("the sandbox's parent process does not answer") from error
        if not body:
            raise ParentLostError("the sandbox's parent process is gone")
        answer: dict[str, Any] = json.loads(body)
        return answer
