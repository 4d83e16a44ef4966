"""Who writes a visit: so that a visit whose writer died is told from one whose writer is at work."""

import os
import socket
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from nightwire.core.runtime import process_started

HEADER = "writer"
"""Header of a record in `visits` that names who opened the visit."""
LONGEST = timedelta(minutes=15)
"""How long a visit of another machine may be open before its writer is taken for dead."""


@dataclass(frozen=True)
class WriterId:
    """A process: its machine, its number there, and when it started (numbers are given again)."""

    host: str
    pid: int
    started: int

    @classmethod
    def me(cls) -> Self:
        """Return this process."""
        return cls(socket.gethostname(), os.getpid(), process_started(os.getpid()) or 0)

    @classmethod
    def parse(cls, text: bytes) -> Self | None:
        """Return the process that *text* names; None where it names none."""
        parts = text.decode(errors="replace").split()
        if len(parts) != 3 or not (parts[1] + parts[2]).isdigit():
            return None
        return cls(parts[0], int(parts[1]), int(parts[2]))

    def __bytes__(self) -> bytes:
        return f"{self.host} {self.pid} {self.started}".encode()

    def is_gone(self, silent_for: timedelta) -> bool:
        """Return whether the process is dead: known on this machine, guessed of others."""
        if self.host == socket.gethostname():
            return process_started(self.pid) != self.started
        return silent_for > LONGEST
