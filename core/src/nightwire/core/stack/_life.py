"""The life of child processes."""

import ctypes
import os
import signal
from contextlib import suppress

PR_SET_PDEATHSIG = 1  # prctl(2)


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent dies; called in the child, before exec."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Send *number* to *pid*, if it is there."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
