"""The C library, for what Python has no name for.  Found before files are closed."""

import ctypes
import os

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


def prctl(option: int, value: int) -> None:
    """Set a property of this process.

    Raises:
        OSError: The kernel refuses.
    """
    checked(libc.prctl(option, ctypes.c_ulong(value), *[ctypes.c_ulong(0)] * 3), f"prctl {option}")
