"""What a run takes of the machine: CPU and memory of our processes, and what others took."""

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from nightwire.benchmarks.model.sample import ProcessUse, TcpTraffic, Use
from nightwire.benchmarks.resources.cpu import others_share

OWN_PROCESS = "producer"
"""Name of this very process, which also sends."""
INTERVAL = 0.25
"""Time between two looks at our processes. [s]"""


@dataclass
class UsageWindow:
    """A stretch of time that is being watched; `use` is there once it is over."""

    use: Use = field(default_factory=Use)


@dataclass(frozen=True)
class Snapshot:
    """Our processes at one moment: CPU time by (pid, name) and in all [s], memory [byte]."""

    cpu: Mapping[tuple[int, str], float]
    rss: Mapping[str, int]
    total: float


class ResourceMonitor:
    """Looks at this process and all its descendants.

    A process is called by the role it was given, or else after its nearest ancestor that has one.
    """

    def __init__(self) -> None:
        self._self = psutil.Process()
        self._roles = {os.getpid(): OWN_PROCESS}
        self._traffic: dict[str, TcpTraffic] = {}

    def role(self, pid: int, name: str) -> None:
        """Call process *pid*, and its descendants after it, *name*."""
        self._roles[pid] = name

    def traffic(self, name: str, moved: TcpTraffic) -> None:
        """Note what processes called *name* moved in this run, beside what was noted before."""
        self._traffic[name] = self._traffic.get(name, TcpTraffic()) + moved

    @property
    def roles(self) -> Mapping[int, str]:
        """What processes are called, those that have ended included."""
        return dict(self._roles)

    @contextmanager
    def window(self) -> Iterator[UsageWindow]:
        """Watch while the block runs."""
        window, stop = UsageWindow(), threading.Event()
        looks = [self._look()]
        self._traffic.clear()
        machine, began = psutil.cpu_times(), time.monotonic()
        thread = threading.Thread(target=self._keep_looking, args=(looks, stop), daemon=True)
        thread.start()
        try:
            yield window
        finally:
            stop.set()
            thread.join()
            looks.append(self._look())
            processes = [_moving(one, self._traffic) for one in _by_name(looks)]
            ours = own_time(looks, processes)
            others = others_share(machine, psutil.cpu_times(), ours)
            window.use = Use(time.monotonic() - began, others, processes)

    def _keep_looking(self, looks: list[Snapshot], stop: threading.Event) -> None:
        while not stop.wait(INTERVAL):
            looks.append(self._look())

    def _look(self) -> Snapshot:
        cpu: dict[tuple[int, str], float] = {}
        rss: dict[str, int] = {}
        total = 0.0
        names: dict[int, str] = {}
        for process in (self._self, *self._self.children(recursive=True)):
            with suppress(psutil.Error), process.oneshot():
                name = names[process.pid] = self._name(process, names)
                times = process.cpu_times()
                cpu[process.pid, name] = times.user + times.system
                # what its ended children took is in here, so nothing is missed between two looks
                total += times.user + times.system + times.children_user + times.children_system
                rss[name] = rss.get(name, 0) + process.memory_info().rss
        return Snapshot(cpu, rss, total)

    def _name(self, process: psutil.Process, names: Mapping[int, str]) -> str:
        if (role := self._roles.get(process.pid)) is not None:
            return role
        above = names.get(process.ppid(), OWN_PROCESS).split(": ")[0]
        return f"{above}: {program(process.exe())}"


def own_time(looks: Sequence[Snapshot], processes: Sequence[ProcessUse]) -> float:
    """Return what our processes took between the first look and the last. [s]

    One that is killed together with its parent leaves its time to nobody: then what was seen of it
    is nearer.
    """
    return max(looks[-1].total - looks[0].total, sum(one.cpu_seconds for one in processes))


def program(path: str) -> str:
    """Return a program's name without version: ``python`` for ``/usr/bin/python3.11``."""
    return Path(path).name.rstrip("0123456789.") or "unknown"


def _moving(one: ProcessUse, moved: Mapping[str, TcpTraffic]) -> ProcessUse:
    """Return *one* with what it moved, where that was noted."""
    if (traffic := moved.get(one.name)) is None:
        return one
    return replace(one, sent_bytes=traffic.sent, received_bytes=traffic.received)


def _by_name(looks: Sequence[Snapshot]) -> list[ProcessUse]:
    first, last, peaks = {}, {}, {}  # type: ignore[var-annotated]
    for look in looks:
        for key, seconds in look.cpu.items():
            first.setdefault(key, seconds if look is looks[0] else 0.0)
            last[key] = seconds
        for name, size in look.rss.items():
            peaks[name] = max(peaks.get(name, 0), size)
    cpu: dict[str, float] = {}
    for key, seconds in last.items():
        cpu[key[1]] = cpu.get(key[1], 0.0) + seconds - first[key]
    return [ProcessUse(name, round(cpu.get(name, 0.0), 2), peaks[name]) for name in sorted(peaks)]
