"""The confinement of a filter's process: what it gives up, in order, and cannot take back.

Runs in the process itself, after its imports and before any filter's code.
"""

import ctypes
import json
import os
import resource
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from nightwire.filters.sandbox.syscalls import (
    CAPBSET_DROP,
    CHANNEL,
    DUMPABLE,
    NO_NEW_PRIVS,
    checked,
    die_with_parent,
    install_landlock,
    install_seccomp,
    libc,
    prctl,
)
from nightwire.filters.sandbox.types import Limits, SandboxError

LAYERS: Mapping[str, str] = {
    "limits": "limits of memory, processes, files and their size",
    "unprivileged": "an id of its own without any capability",
    "no-new-privileges": "none to be gained by starting a program",
    "landlock": "no files, no TCP, no signals (Landlock)",
    "seccomp": "system calls: memory, time, locks, the channel; no others",
}
"""The layers of confinement, in the order in which a process puts them up."""

OPTIONAL_LAYERS = frozenset({"landlock"})
"""Layers that a kernel may lack under ``strong``: seccomp refuses the same calls."""

FIRST_ID, IDS = 61184, 4336
"""Ids that belong to nobody for long: systemd's range for dynamic users, 61184 to 65519."""

LIFE_CPU_S = 3600
"""CPU time in a process's whole life; the kernel's own end of a loop that nobody else ended. [s]"""
ROOM_MB = 8192
"""Address space beyond memory: batches lie in it, and what is reserved but not used. [MiB]"""
STACK_MB = 16
CAPABILITIES = 64
CAPABILITY_VERSION = 0x20080522
"""_LINUX_CAPABILITY_VERSION_3."""


def confine(limits: Limits, parent: int) -> dict[str, str]:
    """Put up all layers around this process; return by layer why one could not be put up.

    Args:
        limits: Of the process's memory.
        parent: The process with which this one is to end.
    """
    steps: Mapping[str, Callable[[], None]] = {
        "limits": lambda: _limit_resources(limits),
        "unprivileged": lambda: _drop_privileges(parent),
        "no-new-privileges": lambda: prctl(NO_NEW_PRIVS, 1),
        "landlock": install_landlock,
        "seccomp": install_seccomp,
    }
    missing = {}
    for layer in LAYERS:
        try:
            steps[layer]()
        except (OSError, ValueError) as error:
            missing[layer] = str(error)
    return missing


def _limit_resources(limits: Limits) -> None:
    memory, sizes = limits.memory_mb << 20, memory_sizes(os.getpid())
    for what, most in (
        (resource.RLIMIT_DATA, sizes["VmData"] + memory),
        (resource.RLIMIT_AS, sizes["VmSize"] + memory + (ROOM_MB << 20)),
        (resource.RLIMIT_STACK, STACK_MB << 20),
        (resource.RLIMIT_CPU, LIFE_CPU_S),
        (resource.RLIMIT_NOFILE, 8),
        *((none, 0) for none in _NONE),
    ):
        resource.setrlimit(what, (most, most))


_NONE = (
    resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_NPROC,
    resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE,
)  # fmt: skip


def _drop_privileges(parent: int) -> None:
    """Take an id of nobody's, without capabilities or a readable memory; end with *parent*."""
    if os.geteuid() == 0:
        for capability in range(CAPABILITIES):
            libc.prctl(CAPBSET_DROP, ctypes.c_ulong(capability), *[ctypes.c_ulong(0)] * 3)
        own = FIRST_ID + os.getpid() % IDS
        os.setgroups([])
        os.setresgid(own, own, own)
        os.setresuid(own, own, own)
    header, nothing = struct.pack("<Ii", CAPABILITY_VERSION, 0), bytes(24)
    checked(libc.capset(header, nothing), "capset")
    prctl(DUMPABLE, 0)
    die_with_parent(parent)


def memory_sizes(pid: int) -> dict[str, int]:
    """Return the sizes of a process's memory as ``/proc`` names them. [byte]

    Raises:
        OSError: It is gone.
    """
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    parts = [line.split() for line in status.splitlines() if line.startswith("Vm")]
    return {part[0].rstrip(":"): int(part[1]) << 10 for part in parts}


PROBE_PROGRAM = "from nightwire.filters.sandbox.confinement import probe; probe()"
PROBE_TIMEOUT_S = 60.0


def layers() -> dict[str, str | None]:
    """Return, for each layer of containment, None where it is there, else why it is not.

    Raises:
        SandboxError: It cannot be found out.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", PROBE_PROGRAM],
            env={},
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
        missing = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise SandboxError(f"the layers of the sandbox cannot be tried: {error}") from error
    return {layer: missing.get(layer) for layer in LAYERS}


def probe() -> None:
    """Confine this process, print which layers could not be put up, and end."""
    os.dup2(1, CHANNEL)
    missing = confine(Limits(), os.getppid())
    os.write(CHANNEL, json.dumps(missing).encode())
    os._exit(0)
