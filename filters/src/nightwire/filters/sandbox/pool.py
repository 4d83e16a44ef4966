"""The processes of filters: one an owner, forked by the zygote, kept from batch to batch."""

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

from nightwire.filters.sandbox.confinement import (
    LAYERS,
    LIFE_CPU_S,
    OPTIONAL_LAYERS,
    layers,
    memory_sizes,
)
from nightwire.filters.sandbox.preload import survey_group
from nightwire.filters.sandbox.protocol import MARK, READY, RELEASE, encode_request
from nightwire.filters.sandbox.types import (
    Limits,
    NoSandboxError,
    RowFilter,
    SandboxError,
    Strength,
    Usage,
)
from nightwire.schemas import surveys

log = logging.getLogger(__name__)

SEND_S = 2
"""Longest that a process may leave a request lying; its buffer is larger than any. [s]"""
START_S = 20.0
"""Longest wait until a new process is confined, less what that waited for a core. [s]"""
ZYGOTE_S = 60.0
"""Longest wait for the zygote, less what it waited for a core: it imports astropy in 2 s. [s]"""
TOTAL = 20
"""How often as long they are waited for in any case."""
LOOK_S = 1.0
"""Pause between two looks at how long a process has waited for a core. [s]"""
IDLE_S = 600.0
"""How long a process without work is kept. [s]"""

START_ATTEMPTS = 3
MIB = 1 << 20
MAX_ANSWER = 1 << 16
"""Longest answer of the zygote. [byte]"""

ZYGOTE_PROGRAM = "from nightwire.filters.sandbox.zygote import main; main()"
ZYGOTE_ENVIRONMENT = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "HOME": "/nonexistent",
}
"""The environment of the zygote: it forks, so it has one thread and reserves no memory."""
KEPT = ("NIGHTWIRE_SURVEYS",)
"""What it has of its parent's."""


class ProcessLostError(Exception):
    """A filter's process is gone, or breaks the protocol."""


class ZygoteLostError(Exception):
    """The zygote is gone."""


@dataclass
class FilterProcess:
    """One owner's process, as the sandbox holds it: its channel, its progress page, its clocks.

    Attributes:
        pid: Its id.
        channel: Socket to it.
        page: Where it shows the row that it judges.
        groups: Heavy modules that it was born with.
        missing: Layers of confinement that it lacks.
        used_at: When it was asked for last. [s, monotonic]
    """

    pid: int
    channel: socket.socket
    page: mmap.mmap
    groups: frozenset[str]
    missing: list[str] = field(default_factory=list)
    used_at: float = field(default_factory=time.monotonic)
    _data_at_start: int = 0
    _sources_run: dict[str, str] = field(default_factory=dict)

    def await_confinement(self) -> None:
        """Wait until it is confined; note which layers are missing.

        Raises:
            ProcessLostError: It ended before, or took too long.
        """
        try:
            ready = await_answer(self.channel, self.pid, START_S, READY.size)
        except OSError as error:
            raise ProcessLostError(f"a new process said nothing for {START_S:g} s") from error
        if len(ready) < READY.size or not ready.startswith(MARK):
            raise ProcessLostError("a new process ended before it was confined")
        self.missing = [layer for layer, lacks in zip(LAYERS, ready[len(MARK) :], strict=False) if lacks]
        self.channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_S, 0))
        self._data_at_start = memory_sizes(self.pid)["VmData"]

    def close(self) -> None:
        """Close its channel and page here; the process ends by itself then, unless it is busy."""
        self.channel.close()
        self.page.close()

    def send(
        self, kind: int, body: dict[str, Any], nonce: bytes = bytes(16), descriptor: int | None = None
    ) -> None:
        """Send a request.

        Raises:
            ProcessLostError: It does not take it.
        """
        message = encode_request(kind, body, nonce)
        try:
            sent = socket.send_fds(self.channel, [message], [] if descriptor is None else [descriptor])
            self.channel.sendall(message[sent:])
        except OSError as error:
            raise ProcessLostError("it does not listen") from error

    def receive(self, most: int) -> bytes:
        """Return up to *most* bytes of its answer; some have to be there.

        Raises:
            ProcessLostError: It is gone.
        """
        try:
            received = self.channel.recv(most)
        except OSError as error:
            raise ProcessLostError("it is gone") from error
        if not received:
            raise ProcessLostError("it is gone")
        return received

    def is_idle(self) -> bool:
        """Whether it lives and waits for a request, as it should between batches."""
        try:
            self.channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def has_run(self, row_filter: RowFilter) -> bool:
        """Whether it judged a batch by *row_filter* before, so that what is done once is done."""
        return self._sources_run.get(row_filter.key) == row_filter.source

    def note_run(self, row_filter: RowFilter) -> None:
        """Note that it has judged a batch by *row_filter*."""
        self._sources_run[row_filter.key] = row_filter.source

    def current_row(self) -> int:
        """Return the row that it claims to be at; filters can change that claim."""
        (row,) = struct.unpack_from("<Q", self.page)
        return int(row)

    def interrupt(self, how: signal.Signals) -> None:
        """Send the signal ``STOP`` or ``INTERRUPT``."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, how)

    def usage(self) -> Usage:
        """Return what it used so far; only differences mean something."""
        return usage_of(self.pid)

    def held_growth_mb(self) -> float:
        """Return by how much more memory it holds than at its start. [MiB]"""
        try:
            return max(0, memory_sizes(self.pid)["VmData"] - self._data_at_start) / MIB
        except (OSError, KeyError):
            return 0.0

    def is_old(self) -> bool:
        """Whether it has used up half of its CPU time for life."""
        return cpu_s(self.pid) > LIFE_CPU_S / 2


def usage_of(pid: int) -> Usage:
    """Return what a process used so far; only differences mean something."""
    return Usage(cpu_s(pid), time.monotonic(), starved_s(pid))


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process; 0 where it is gone. [s]"""
    try:
        return time.clock_gettime((~pid << 3) | 2)  # as clock_getcpuclockid makes it
    except OSError:
        return 0.0


def starved_s(pid: int) -> float | None:
    """Return how long a process has waited for a core; None: the kernel does not say. [s]"""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_bytes().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return None


def await_answer(channel: socket.socket, pid: int, patience_s: float, most: int) -> bytes:
    """Return up to *most* bytes that a process says; it has *patience_s* of its own time. [s]

    Raises:
        OSError: It says nothing for so long.
    """
    began, before = usage_of(pid), channel.gettimeout()
    channel.settimeout(LOOK_S)
    try:
        while True:
            try:
                return channel.recv(most)
            except TimeoutError:
                used = usage_of(pid).since(began)
                if used.own_s > patience_s or used.elapsed_s > TOTAL * patience_s:
                    raise
    finally:
        channel.settimeout(before)


class ZygoteClient:
    """The zygote's process, which has no environment of the user's: it imports modules and forks.

    Args:
        limits: Of the processes that it forks.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.preloaded: frozenset[str] = frozenset()
        self._start()

    def _start(self) -> None:
        """Start it.

        Raises:
            NoSandboxError: It ends at once.
            SandboxError: It does not come up.
        """
        self.preloaded = frozenset(map(survey_group, surveys()))  # those are read at its start
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(ZYGOTE_S)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", ZYGOTE_PROGRAM],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env=ZYGOTE_ENVIRONMENT | {name: os.environ[name] for name in KEPT if name in os.environ},
            )
        try:
            self._receive()
        except ZygoteLostError as error:
            self.close()
            if self._process.returncode > 0:
                raise NoSandboxError(f"{error} as it started; why is said above") from error
            raise SandboxError(f"{error} as it started") from error

    def close(self) -> None:
        """End it, and with it all processes that it forked."""
        self._control.close()
        try:
            self._process.wait(ZYGOTE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def restart(self) -> None:
        """Put a new one in its place.

        Raises:
            SandboxError: It does not come up.
        """
        log.warning("the sandbox's zygote process was lost: starting another")
        with suppress(ProcessLookupError):
            self._process.kill()
        self.close()
        self._start()

    def preload(self, groups: frozenset[str]) -> None:
        """Have it import the modules of *groups* that it lacks; what cannot be imported is logged.

        Raises:
            ZygoteLostError: It is gone.
        """
        for group in sorted(groups - self.preloaded):
            if error := self._ask({"preload": group}).get("error"):
                log.warning("%s", error)
            self.preloaded |= {group}

    def fork(self) -> FilterProcess:
        """Return a new process, confined.

        Raises:
            ZygoteLostError: The zygote is gone.
            ProcessLostError: The new process did not come up.
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
        process = FilterProcess(pid, ours, shown, self.preloaded)
        try:
            process.await_confinement()
        except ProcessLostError:
            self.end(process)
            raise
        return process

    def end(self, process: FilterProcess) -> int:
        """Kill and reap *process*; return its exit status, its own where it had ended before."""
        process.close()
        try:
            return int(self._ask({"end": process.pid})["status"])
        except ZygoteLostError:
            return -signal.SIGKILL  # what it forked ends with it

    def discard(self, process: FilterProcess) -> None:
        """Have *process* killed and reaped, without waiting for that."""
        process.close()
        with suppress(ZygoteLostError):  # what it forked ends with it
            self._send({"discard": process.pid})

    def _ask(self, request: dict[str, Any], descriptors: list[int] | None = None) -> dict[str, Any]:
        self._send(request, descriptors)
        return self._receive()

    def _send(self, request: dict[str, Any], descriptors: list[int] | None = None) -> None:
        try:
            socket.send_fds(self._control, [json.dumps(request).encode()], descriptors or [])
        except OSError as error:
            raise ZygoteLostError("the sandbox's zygote process is gone") from error

    def _receive(self) -> dict[str, Any]:
        try:
            body = await_answer(self._control, self._process.pid, ZYGOTE_S, MAX_ANSWER)
        except OSError as error:
            raise ZygoteLostError("the sandbox's zygote process does not answer") from error
        if not body:
            raise ZygoteLostError("the sandbox's zygote process is gone")
        answer: dict[str, Any] = json.loads(body)
        return answer


class ProcessPool:
    """The processes of all owners.

    Args:
        strength: ``strong``: a process that lacks a layer of confinement is not used.
        limits: Of each process.

    Raises:
        SandboxError: The zygote does not start.
    """

    def __init__(self, strength: Strength, limits: Limits) -> None:
        self._strength = strength
        self._zygote = ZygoteClient(limits)
        self._by_owner: dict[str, FilterProcess] = {}

    def close(self) -> None:
        """End all processes, the zygote too."""
        while self._by_owner:
            self._by_owner.popitem()[1].close()
        self._zygote.close()

    def probe(self) -> list[str]:
        """Start a process for nobody, and return which layers of confinement it lacks.

        Raises:
            NoSandboxError: It lacks one, and the sandbox is to be strong.
        """
        process = self._start_process(frozenset())
        self._zygote.end(process)
        return process.missing

    def process_of(self, owner: str, groups: frozenset[str]) -> FilterProcess:
        """Return *owner*'s process, new where there is none that has the modules of *groups*.

        Raises:
            SandboxError: None can be had.
        """
        process = self._by_owner.get(owner)
        if process and (not process.is_idle() or process.is_old() or not groups <= process.groups):
            self.discard(owner)
            process = None
        if process is None:
            process = self._by_owner[owner] = self._start_process(groups)
        process.used_at = time.monotonic()
        return process

    def end(self, owner: str) -> int:
        """End *owner*'s process; return its exit status."""
        return self._zygote.end(self._by_owner.pop(owner))

    def discard(self, owner: str) -> None:
        """Have *owner*'s process ended without waiting: the larger it is, the longer that takes."""
        self._zygote.discard(self._by_owner.pop(owner))

    def end_all(self) -> None:
        """End everybody's process."""
        for owner in list(self._by_owner):
            self.discard(owner)

    def release_batch(self, owner: str) -> None:
        """Have *owner*'s process forget its batch."""
        process = self._by_owner.get(owner)
        if process is None:
            return
        try:
            process.send(RELEASE, {})
        except ProcessLostError:
            self.discard(owner)

    def end_idle(self) -> None:
        """End the processes that have had no work for long."""
        oldest = time.monotonic() - IDLE_S
        for owner in [owner for owner, process in self._by_owner.items() if process.used_at < oldest]:
            self.discard(owner)

    def _start_process(self, groups: frozenset[str]) -> FilterProcess:
        for _ in range(START_ATTEMPTS):
            try:
                self._zygote.preload(groups)
                process = self._zygote.fork()
            except ZygoteLostError:
                self._zygote.restart()
            except ProcessLostError:
                continue
            else:
                self._check(process)
                return process
        raise SandboxError(f"no process for a filter could be started in {START_ATTEMPTS} tries")

    def _check(self, process: FilterProcess) -> None:
        missing = [layer for layer in process.missing if layer not in OPTIONAL_LAYERS]
        if self._strength == "weak" or not missing:
            return
        self._zygote.end(process)
        reasons = layers()
        text = "; ".join(f"{one} ({LAYERS[one]}): {reasons.get(one) or 'refused'}" for one in missing)
        raise NoSandboxError(
            f"a filter's process cannot be contained here: there is no {text}. Filters that cannot be"
            " compiled are refused; if you trust their owners, say `--sandbox weak`"
        )
