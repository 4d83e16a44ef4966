"""Landlock: the kernel's own refusal of files, of TCP and of signals to others, beside that of system calls.

A ruleset that handles everything its kernel knows of, and allows nothing  (linux/landlock.h).
"""

import ctypes
import os
import struct

from nightwire.filters.sandbox._libc import checked, libc

CREATE, RESTRICT = 444, 446
"""Numbers of landlock_create_ruleset and landlock_restrict_self, the same on all machines."""

VERSION = 1
"""Flag that asks for the ABI's version."""

FILES = {1: 13, 2: 14, 3: 15, 5: 16}
"""ABI version: how many kinds of access to files there are from it on."""
NETWORK, NETWORK_SINCE = 0b11, 4
"""Bind and connect TCP."""
SCOPES, SCOPES_SINCE = 0b11, 6
"""Abstract Unix sockets and signals, to processes outside."""


def version() -> int:
    """Return the version of the kernel's Landlock.

    Raises:
        OSError: It has none, or it is switched off.
    """
    return checked(libc.syscall(CREATE, None, ctypes.c_size_t(0), VERSION), "Landlock")


def ruleset(abi: int) -> bytes:
    """Return the ``struct landlock_ruleset_attr`` that handles everything *abi* knows."""
    files = max(count for since, count in FILES.items() if since <= abi)
    parts = [(1 << files) - 1]
    if abi >= NETWORK_SINCE:
        parts.append(NETWORK)
    if abi >= SCOPES_SINCE:
        parts.append(SCOPES)
    return struct.pack(f"<{len(parts)}Q", *parts)


def restrict() -> None:
    """Take all that Landlock knows from this process; it must have given up new privileges before.

    Raises:
        OSError: The kernel has no Landlock, or refuses.
    """
    attributes = ruleset(version())
    made = libc.syscall(CREATE, attributes, ctypes.c_size_t(len(attributes)), 0)
    descriptor = checked(made, "Landlock")
    try:
        checked(libc.syscall(RESTRICT, descriptor, 0), "Landlock")
    finally:
        os.close(descriptor)
