"""What the kernel refuses a filter's process: system calls by seccomp, files and TCP by Landlock.

Seccomp: all calls that are not in `RULES` fail with EPERM; a call by another architecture's numbers
ends the process.  Landlock: a ruleset that handles everything its kernel knows of, and allows
nothing (linux/landlock.h).  What is installed cannot be undone.
"""

import ctypes
import errno
import os
import platform
import signal
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

CHANNEL = 3
"""The one file descriptor that a filter's process reads and writes: to and from the sandbox."""

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip
libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)

MAP_FAILED = ctypes.c_void_p(-1).value

PDEATHSIG, DUMPABLE, CAPBSET_DROP, NO_NEW_PRIVS = 1, 4, 24, 38
"""Options of prctl  (linux/prctl.h)."""


def checked(result: int, what: str) -> int:
    """Return *result*.

    Raises:
        OSError: It is negative: the C library's error, said of *what*.
    """
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def die_with_parent(parent: int) -> None:
    """End this process with its *parent*, even where that is killed."""
    prctl(PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit


def prctl(option: int, value: int) -> None:
    """Set a property of this process.

    Raises:
        OSError: The kernel refuses.
    """
    checked(libc.prctl(option, ctypes.c_ulong(value), *[ctypes.c_ulong(0)] * 3), f"prctl {option}")


PROT_EXEC, MAP_SHARED = 4, 1

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
KILL, REFUSE, ALLOW = 0x80000000, 0x00050000 | errno.EPERM, 0x7FFF0000
"""SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ERRNO with EPERM, SECCOMP_RET_ALLOW  (linux/seccomp.h)."""

NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
"""Offsets in ``struct seccomp_data``. [byte]"""

X32 = 0x40000000
"""Numbers from here on are the x32 ABI's, under the same architecture."""

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, constant  (``struct sock_filter``)."""


@dataclass(frozen=True)
class Is:
    """The argument at *index* must be *value*."""

    index: int
    value: int


@dataclass(frozen=True)
class IsNot:
    """The argument at *index* must not be *value*."""

    index: int
    value: int


@dataclass(frozen=True)
class Without:
    """The argument at *index* must have none of *bits*."""

    index: int
    bits: int


Check = Is | IsNot | Without

RULES: Mapping[str, Sequence[Check]] = {
    "read": (Is(0, CHANNEL),),
    "write": (Is(0, CHANNEL),),
    "recvmsg": (Is(0, CHANNEL),),
    "mmap": (Without(2, PROT_EXEC), Without(3, MAP_SHARED)),
    "mprotect": (Without(2, PROT_EXEC),),
    "munmap": (),
    "mremap": (),
    "madvise": (),
    "brk": (),
    "futex": (),
    "sched_yield": (),
    "clock_gettime": (),
    "clock_getres": (),
    "gettimeofday": (),
    "time": (),
    "getrandom": (),
    "close": (IsNot(0, CHANNEL),),
    "rt_sigreturn": (),
    "restart_syscall": (),
    "exit": (),
    "exit_group": (),
}
"""Calls that are allowed, and their arguments: memory that is neither shared nor executable, time,
random numbers, locks, and the channel."""


@dataclass(frozen=True)
class Architecture:
    """How a machine's kernel names itself and its calls  (linux/audit.h, asm/unistd.h)."""

    audit: int
    numbers: Mapping[str, int]
    x32: bool = False


X86_64: Mapping[str, int] = {
    "read": 0, "write": 1, "close": 3, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigreturn": 15,
    "sched_yield": 24, "mremap": 25, "madvise": 28, "recvmsg": 47, "exit": 60, "gettimeofday": 96,
    "time": 201, "futex": 202, "restart_syscall": 219, "clock_gettime": 228, "clock_getres": 229,
    "exit_group": 231, "getrandom": 318,
}  # fmt: skip
AARCH64: Mapping[str, int] = {
    "close": 57, "read": 63, "write": 64, "exit": 93, "exit_group": 94, "futex": 98, "clock_gettime": 113,
    "clock_getres": 114, "sched_yield": 124, "restart_syscall": 128, "rt_sigreturn": 139, "gettimeofday": 169,
    "recvmsg": 212, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222, "mprotect": 226, "madvise": 233,
    "getrandom": 278,
}  # fmt: skip
"""Numbers of the calls.  aarch64 has no ``time``."""

ARCHITECTURES: Mapping[str, Architecture] = {
    "x86_64": Architecture(0xC000003E, X86_64, x32=True),
    "aarch64": Architecture(0xC00000B7, AARCH64),
}
"""By the machine's name, as ``uname`` gives it."""

SECCOMP: Mapping[str, int] = {"x86_64": 317, "aarch64": 277}
"""Number of the call that installs a program."""


def seccomp_program(architecture: Architecture) -> list[Instruction]:
    """Return the packet filter program for *architecture*."""
    return [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, architecture.audit),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        *([(AT_LEAST, 0, 1, X32), (RETURN, 0, 0, KILL)] if architecture.x32 else []),
        *(step for name, number in architecture.numbers.items() for step in _rule(number, RULES[name])),
        (RETURN, 0, 0, REFUSE),
    ]


def _rule(number: int, checks: Sequence[Check]) -> list[Instruction]:
    body = [step for check in checks for step in _check(check)]
    return [(EQUAL, 0, len(body) + 1, number), *body, (RETURN, 0, 0, ALLOW)]


def _check(check: Check) -> Iterator[Instruction]:
    """Yield what refuses a call that does not meet *check*.

    It looks at the argument's lower half: the kernel's int, and all bits of interest.
    """
    yield (LOAD, 0, 0, ARGUMENTS + 8 * check.index)
    match check:  # skips the refusal, or does not
        case Is():
            yield (EQUAL, 1, 0, check.value)
        case IsNot():
            yield (EQUAL, 0, 1, check.value)
        case Without():
            yield (ANY_BIT, 0, 1, check.bits)
    yield (RETURN, 0, 0, REFUSE)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def install_seccomp(steps: Sequence[Instruction] | None = None) -> None:
    """Restrict this process to the system calls of *steps*; None: those of `RULES`.

    Raises:
        OSError: The kernel refuses, or this machine's calls are not known.
    """
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"the system calls of {machine} are not known")
    chosen = seccomp_program(ARCHITECTURES[machine]) if steps is None else steps
    packed = b"".join(struct.pack("<HBBI", *step) for step in chosen)
    checked(libc.syscall(SECCOMP[machine], 1, 0, ctypes.byref(_Program(len(chosen), packed))), "seccomp")


LANDLOCK_CREATE, LANDLOCK_RESTRICT = 444, 446
"""Numbers of landlock_create_ruleset and landlock_restrict_self, the same on all machines."""

LANDLOCK_VERSION_FLAG = 1
"""Flag that asks for the ABI's version."""

LANDLOCK_FILES = {1: 13, 2: 14, 3: 15, 5: 16}
"""ABI version: how many kinds of access to files there are from it on."""
LANDLOCK_NETWORK, NETWORK_SINCE = 0b11, 4
"""Bind and connect TCP."""
LANDLOCK_SCOPES, SCOPES_SINCE = 0b11, 6
"""Abstract Unix sockets and signals, to processes outside."""


def landlock_version() -> int:
    """Return the version of the kernel's Landlock.

    Raises:
        OSError: It has none, or it is switched off.
    """
    return checked(libc.syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), LANDLOCK_VERSION_FLAG), "Landlock")


def landlock_ruleset(abi: int) -> bytes:
    """Return the ``struct landlock_ruleset_attr`` that handles everything *abi* knows."""
    files = max(count for since, count in LANDLOCK_FILES.items() if since <= abi)
    parts = [(1 << files) - 1]
    if abi >= NETWORK_SINCE:
        parts.append(LANDLOCK_NETWORK)
    if abi >= SCOPES_SINCE:
        parts.append(LANDLOCK_SCOPES)
    return struct.pack(f"<{len(parts)}Q", *parts)


def install_landlock() -> None:
    """Refuse this process all that Landlock knows of, after ``NO_NEW_PRIVS``.

    Raises:
        OSError: The kernel has no Landlock, or refuses.
    """
    attributes = landlock_ruleset(landlock_version())
    made = libc.syscall(LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0)
    descriptor = checked(made, "Landlock")
    try:
        checked(libc.syscall(LANDLOCK_RESTRICT, descriptor, 0), "Landlock")
    finally:
        os.close(descriptor)
