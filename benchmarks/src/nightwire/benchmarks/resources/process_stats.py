"""What all our processes have taken so far, read once a second: CPU, memory, disk, network."""

import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path

import psutil

PAGE = "--metrics-port"
"""The option by which each of our processes says where its metrics page is."""
LOOPBACK, LOOPBACK_PID = "loopback", 0
"""What the loopback device counts: all that processes of this machine send each other."""
DEVICES = Path("/proc/net/dev")
SOCKETS = ("ss", "-tinHpO")
"""iproute2's list of TCP sockets: numbers, details, processes, a line each."""
SOCKET = re.compile(r"^\S+\s+\d+\s+\d+\s+(\S+)\s+(\S+)\s")
PID, SENT, RECEIVED = (
    re.compile(r"pid=(\d+)"),
    re.compile(r"bytes_sent:(\d+)"),
    re.compile(r"bytes_received:(\d+)"),
)


@dataclass(frozen=True)
class ProcessReading:
    """What one process has taken since it began.

    Attributes:
        pid: Its number; and
        parent: that of its parent.
        program: What it runs.
        cpu: CPU time. [s]
        rss: Resident memory. [byte]
        read: From disks. [byte]
        written: To disks, once the kernel gets to it. [byte]
        sent: Over TCP, on connections that were seen open. [byte]
        received: The same, inwards. [byte]
    """

    pid: int
    parent: int
    program: str
    cpu: float
    rss: int
    read: int
    written: int
    sent: int = 0
    received: int = 0


@dataclass(frozen=True)
class Reading:
    """All our processes at one moment (Unix time)."""

    time: float
    processes: Sequence[ProcessReading]


@dataclass
class SocketCounters:
    """TCP traffic by process; what a connection moves after the last look is not seen."""

    _last: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    _total: dict[int, list[int]] = field(default_factory=dict)

    def take(self, lines: Iterable[str], ours: Mapping[int, object]) -> None:
        """Add what went over the sockets of *ours* since the last look."""
        seen: dict[tuple[str, str], tuple[int, int]] = {}
        for line in lines:
            ends, pids = SOCKET.match(line), [int(pid) for pid in PID.findall(line)]
            owner = next((pid for pid in pids if pid in ours), None)
            if ends is None or owner is None:
                continue
            key = (ends[1], ends[2])
            seen[key] = _number(SENT, line), _number(RECEIVED, line)
            before = self._last.get(key, (0, 0))
            total = self._total.setdefault(owner, [0, 0])
            for way in (0, 1):
                # fewer than before: another connection between the same ports
                total[way] += seen[key][way] - (before[way] if seen[key][way] >= before[way] else 0)
        self._last = seen

    def of(self, pid: int) -> tuple[int, int]:
        """Return what process *pid* sent and received. [byte]"""
        sent, received = self._total.get(pid, (0, 0))
        return sent, received


@dataclass
class ProcessReader:
    """Reads a process and its descendants.

    Args:
        root: The process.
        network: Whether to ask for sockets, too.
    """

    root: psutil.Process
    network: bool = True
    pages: dict[int, str] = field(default_factory=dict)
    """Process and metrics page of those that have one, by port."""
    _traffic: SocketCounters = field(default_factory=SocketCounters)
    _known: set[int] = field(default_factory=set)

    def read(self) -> Reading:
        """Return what they have taken by now."""
        now = time.time()
        found = {one.pid: one for one in (self.root, *self.root.children(recursive=True))}
        if self.network:
            self._traffic.take(sockets(), found)
        read = []
        for process in found.values():
            with suppress(psutil.Error), process.oneshot():
                read.append(self._of(process))
                self._note_page(process)
        return Reading(now, [*read, loopback(DEVICES.read_text())])

    def _of(self, process: psutil.Process) -> ProcessReading:
        cpu, disk = process.cpu_times(), process.io_counters()
        return ProcessReading(
            process.pid,
            process.ppid(),
            process.name(),
            round(cpu.user + cpu.system, 2),
            process.memory_info().rss,
            disk.read_bytes,
            disk.write_bytes,
            *self._traffic.of(process.pid),
        )

    def _note_page(self, process: psutil.Process) -> None:
        if process.pid not in self._known:
            self._known.add(process.pid)
            self.pages.update(page_of(process.cmdline()))


def loopback(devices: str) -> ProcessReading:
    """Return what crossed the loopback device so far, given the text of `DEVICES`."""
    line = next((one for one in devices.splitlines() if one.strip().startswith("lo:")), "lo:" + 16 * " 0")
    fields = line.partition(":")[2].split()
    return ProcessReading(LOOPBACK_PID, -1, LOOPBACK, 0.0, 0, 0, 0, int(fields[8]), int(fields[0]))


def page_of(words: Sequence[str]) -> dict[int, str]:
    """Return name by port of the metrics page that *words* name; port 0: one of its choice."""
    if PAGE not in words[:-1] or not words[words.index(PAGE) + 1].isdigit():
        return {}
    port = int(words[words.index(PAGE) + 1])
    verb = words[words.index("nightwire.core.cli") + 1 :] if "nightwire.core.cli" in words else words[-1:]
    plain = takewhile(lambda word: not word.startswith("-"), verb)
    return {port: "-".join(islice(plain, 2)) or "unnamed"}


def _number(pattern: re.Pattern[str], line: str) -> int:
    found = pattern.search(line)
    return int(found[1]) if found else 0


def sockets() -> list[str]:
    """Return the lines of ``ss``; none where it does not answer."""
    try:
        done = subprocess.run(SOCKETS, capture_output=True, text=True, check=False, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines()


def has_sockets() -> bool:
    """Return whether ``ss`` is installed."""
    return shutil.which(SOCKETS[0]) is not None
