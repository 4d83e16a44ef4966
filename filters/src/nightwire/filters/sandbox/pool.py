"""Who has which process: one for each owner, kept from batch to batch."""

import json
import logging
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nightwire.filters.sandbox.confinement import LAYERS, LIFE_CPU_S, layers, memory_sizes, required_layers
from nightwire.filters.sandbox.protocol import MARK, READY, RELEASE, encode_request
from nightwire.filters.sandbox.types import Limits, RowFilter, SandboxError, Strength, Usage

SEND_S = 2
"""Longest that a child may leave a request lying; its buffer is larger than any. [s]"""
START_S = 20.0
"""Longest wait for a new child's walls, on a busy machine. [s]"""
MIB = 1 << 20


class ProcessLostError(Exception):
    """The child is gone, or does not do what children do."""


@dataclass
class FilterProcess:
    """One owner's process.

    Attributes:
        pid: Its id.
        channel: Socket to it.
        page: Where it shows the row that it judges.
        groups: Heavy modules that it was born with.
        missing: Layers that are not around it.
    """

    pid: int
    channel: socket.socket
    page: mmap.mmap
    groups: frozenset[str]
    missing: list[str] = field(default_factory=list)
    used_at: float = field(default_factory=time.monotonic)
    _born_with: dict[str, int] = field(default_factory=dict)
    _judged_by: dict[str, str] = field(default_factory=dict)

    def await_walls(self) -> None:
        """Wait until the walls are up; note which are not.

        Raises:
            LostError: It did not get as far.
        """
        self.channel.settimeout(START_S)
        try:
            said = self.channel.recv(READY.size, socket.MSG_WAITALL)
        except OSError as error:
            raise ProcessLostError(f"a new process said nothing for {START_S:g} s") from error
        if len(said) < READY.size or not said.startswith(MARK):
            raise ProcessLostError("a new process ended before its walls were up")
        self.missing = [layer for layer, lacks in zip(LAYERS, said[len(MARK) :], strict=False) if lacks]
        self.channel.settimeout(None)
        self.channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_S, 0))
        self._born_with = memory_sizes(self.pid)

    def close(self) -> None:
        """Give back what belongs to it here; it ends by itself then, unless it is at something."""
        self.channel.close()
        self.page.close()

    def tell(
        self, kind: int, body: dict[str, Any], nonce: bytes = bytes(16), descriptor: int | None = None
    ) -> None:
        """Send a request.

        Raises:
            LostError: It does not take it.
        """
        message = encode_request(kind, body, nonce)
        try:
            sent = socket.send_fds(self.channel, [message], [] if descriptor is None else [descriptor])
            self.channel.sendall(message[sent:])
        except OSError as error:
            raise ProcessLostError("it does not listen") from error

    def hear(self, most: int) -> bytes:
        """Return up to *most* bytes of what it said, which there must be.

        Raises:
            LostError: It is gone.
        """
        try:
            said = self.channel.recv(most)
        except OSError as error:
            raise ProcessLostError("it is gone") from error
        if not said:
            raise ProcessLostError("it is gone")
        return said

    def is_quiet(self) -> bool:
        """Whether it lives and waits to be asked, as it should between batches."""
        try:
            self.channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def knows(self, one: RowFilter) -> bool:
        """Whether it has judged a batch by filter *one*, so that what is done once is done."""
        return self._judged_by.get(one.key) == one.source

    def learn(self, one: RowFilter) -> None:
        """Note that it has judged a batch by filter *one*."""
        self._judged_by[one.key] = one.source

    def row(self) -> int:
        """Return the row that it says it is at; nothing that it says is to be relied on."""
        (row,) = struct.unpack_from("<Q", self.page)
        return int(row)

    def knock(self, how: signal.Signals) -> None:
        """Tell the filter that is judging to stop, or to stop unless a column is being made."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, how)

    def usage(self) -> Usage:
        """Return what it used so far; only differences mean something."""
        return Usage(self._cpu_s(), time.monotonic(), self._starved_s())

    def grown_mb(self) -> float:
        """Return by how much it had grown at its largest, the batch included. [MiB]"""
        return self._growth("VmHWM", "VmRSS")

    def held_mb(self) -> float:
        """Return by how much more memory it holds than at its birth. [MiB]"""
        return self._growth("VmData", "VmData")

    def is_old(self) -> bool:
        """Whether it has used up half of its CPU time for life."""
        return self._cpu_s() > LIFE_CPU_S / 2

    def _growth(self, now: str, then: str) -> float:
        try:
            return max(0.0, (memory_sizes(self.pid)[now] - self._born_with[then]) / MIB)
        except (OSError, KeyError):
            return 0.0

    def _cpu_s(self) -> float:
        try:
            return time.clock_gettime((~self.pid << 3) | 2)  # as clock_getcpuclockid makes it
        except OSError:
            return 0.0

    def _starved_s(self) -> float | None:
        try:
            return int(Path(f"/proc/{self.pid}/schedstat").read_bytes().split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            return None


IDLE_S = 600.0
"""How long a process that is not asked anything is kept. [s]"""

START_ATTEMPTS = 3
"""Of starting a process."""


class ProcessPool:
    """The processes of all owners.

    Args:
        strength: ``strong``: one that lacks a wall is not used.
        limits: Of each.

    Raises:
        SandboxError: None can be had.
    """

    def __init__(self, strength: Strength, limits: Limits) -> None:
        self._strength = strength
        self._limits = limits
        self._parent = ZygoteClient(limits)
        self._of: dict[str, FilterProcess] = {}

    def close(self) -> None:
        """End them all."""
        while self._of:
            self._of.popitem()[1].close()
        self._parent.close()

    def try_walls(self) -> list[str]:
        """Start a process for nobody, and return which layers it lacks.

        Raises:
            SandboxError: It lacks one, and the sandbox is to be strong.
        """
        child = self._new(frozenset())
        self._parent.end(child)
        return child.missing

    def warm(self, groups: frozenset[str]) -> None:
        """Import heavy modules beforehand.

        Raises:
            SandboxError: The parent is lost, and another does not come up.
        """
        try:
            self._parent.warm(groups)
        except ZygoteLostError:
            self._parent.restart()

    def of(self, owner: str, groups: frozenset[str]) -> FilterProcess:
        """Return *owner*'s process, which has the modules of *groups*: the one there is, or a new one.

        Raises:
            SandboxError: None can be had.
        """
        child = self._of.get(owner)
        if child and (not child.is_quiet() or child.is_old() or not groups <= child.groups):
            self.discard(owner)
            child = None
        if child is None:
            child = self._of[owner] = self._new(groups)
        child.used_at = time.monotonic()
        return child

    def end(self, owner: str) -> int:
        """End *owner*'s process; return the status with which it ended."""
        return self._parent.end(self._of.pop(owner))

    def discard(self, owner: str) -> None:
        """End *owner*'s process, and do not wait until it has: the larger it is, the longer that takes."""
        self._parent.discard(self._of.pop(owner))

    def end_all(self) -> None:
        """End everybody's process."""
        for owner in list(self._of):
            self.discard(owner)

    def rest(self, owner: str) -> None:
        """Have *owner*'s process forget its batch."""
        child = self._of.get(owner)
        if child is None:
            return
        try:
            child.tell(RELEASE, {})
        except ProcessLostError:
            self.discard(owner)

    def end_idle(self) -> None:
        """End those that have had nothing to do for long."""
        oldest = time.monotonic() - IDLE_S
        for owner in [owner for owner, child in self._of.items() if child.used_at < oldest]:
            self.discard(owner)

    def _new(self, groups: frozenset[str]) -> FilterProcess:
        for _ in range(START_ATTEMPTS):
            try:
                self._parent.warm(groups)
                child = self._parent.fork()
            except ZygoteLostError:
                self._parent.restart()
            except ProcessLostError:
                continue
            else:
                self._check(child)
                return child
        raise SandboxError(f"no process for a filter could be started in {START_ATTEMPTS} tries")

    def _check(self, child: FilterProcess) -> None:
        lacks = required_layers(child.missing)
        if self._strength == "weak" or not lacks:
            return
        self._parent.end(child)
        found = layers()
        said = "; ".join(f"{layer} ({LAYERS[layer]}): {found.get(layer) or 'refused'}" for layer in lacks)
        raise SandboxError(
            f"a filter's process cannot be contained here: there is no {said}. Filters that cannot be"
            " compiled are refused; if you trust their owners, say `--sandbox weak`"
        )


log = logging.getLogger(__name__)

ENVIRONMENT = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "HOME": "/nonexistent",
}
"""All that the parent knows: that a process which is going to fork has one thread, and reserves nothing."""

ZYGOTE_PROGRAM = "from nightwire.filters.sandbox.zygote import main; main()"
ANSWER_S = 60.0
"""Longest wait for the parent: it imports astropy in 2 s on a quiet machine. [s]"""
MAX_ANSWER = 1 << 16
"""Longest answer. [byte]"""


class ZygoteLostError(Exception):
    """The warmed parent is gone."""


class ZygoteClient:
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
                [sys.executable, "-I", "-c", ZYGOTE_PROGRAM],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env=ENVIRONMENT,
            )
        try:
            self._answer()
        except ZygoteLostError as error:
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

    def fork(self) -> FilterProcess:
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
        except ZygoteLostError:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(page)
        child = FilterProcess(pid, ours, shown, self.warmed)
        try:
            child.await_walls()
        except ProcessLostError:
            self.end(child)
            raise
        return child

    def end(self, child: FilterProcess) -> int:
        """Kill and reap *child*; return its status, which is its own where it had ended before."""
        child.close()
        try:
            return int(self._ask({"end": child.pid})["status"])
        except ZygoteLostError:
            return -signal.SIGKILL  # children end with it

    def discard(self, child: FilterProcess) -> None:
        """Have *child* killed and reaped, without waiting for that."""
        child.close()
        with suppress(ZygoteLostError):  # children end with it
            self._tell({"discard": child.pid})

    def _ask(self, request: dict[str, Any], descriptors: list[int] | None = None) -> dict[str, Any]:
        self._tell(request, descriptors)
        return self._answer()

    def _tell(self, request: dict[str, Any], descriptors: list[int] | None = None) -> None:
        try:
            socket.send_fds(self._control, [json.dumps(request).encode()], descriptors or [])
        except OSError as error:
            raise ZygoteLostError("the sandbox's parent process is gone") from error

    def _answer(self) -> dict[str, Any]:
        try:
            body = self._control.recv(MAX_ANSWER)
        except OSError as error:
            raise ZygoteLostError("the sandbox's parent process does not answer") from error
        if not body:
            raise ZygoteLostError("the sandbox's parent process is gone")
        answer: dict[str, Any] = json.loads(body)
        return answer
