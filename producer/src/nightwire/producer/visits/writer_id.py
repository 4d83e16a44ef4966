"""The process that writes a visit: tells whether a visit that is open has a live writer."""

import os
import socket
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from nightwire.core.runtime import process_started

WRITER_HEADER = "writer"
"""Header of a record in `visits` that names the process that opened the visit."""
MAX_OPEN = timedelta(minutes=15)
"""How long a visit of another machine may be open before its writer counts as dead."""


@dataclass(frozen=True)
class WriterId:
    """A process: its machine, its pid, and when it started (pids are used again)."""

    host: str
    pid: int
    started: int

    @classmethod
    def own(cls) -> Self:
        """Return this process."""
        return cls(socket.gethostname(), os.getpid(), process_started(os.getpid()) or 0)

    @classmethod
    def parse(cls, text: bytes) -> Self | None:
        """Return the process that *text* names; None where that is malformed."""
        parts = text.decode(errors="replace").split()
        if len(parts) != 3 or not (parts[1] + parts[2]).isdigit():
            return None
        return cls(parts[0], int(parts[1]), int(parts[2]))

    def __bytes__(self) -> bytes:
        return f"{self.host} {self.pid} {self.started}".encode()

    def is_dead(self, open_for: timedelta) -> bool:
        """Return whether the process is dead: known on this machine, guessed on others."""
        if self.host == socket.gethostname():
            return process_started(self.pid) != self.started
        return open_for > MAX_OPEN
