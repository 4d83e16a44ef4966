"""An owner's child, as the sandbox holds it: its channel, its progress page, its clocks."""

import mmap
import os
import signal
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nightwire.filters.sandbox._contract import RowFilter
from nightwire.filters.sandbox._patience import Usage
from nightwire.filters.sandbox._protocol import MARK, READY, request
from nightwire.filters.sandbox._walls import LAYERS, LIFE_CPU_S, sizes

SEND_S = 2
"""Longest that a child may leave a request lying; its buffer is larger than any. [s]"""
START_S = 20.0
"""Longest wait for a new child's walls, on a busy machine. [s]"""
MIB = 1 << 20


class LostError(Exception):
    """The child is gone, or does not do what children do."""


@dataclass
class Child:
    """One owner's process.

    Attributes:
        pid: Its id.
        channel: Socket to it.
        page: Where it shows the row that it judges.
        groups: Heavy modules that it was born with.
        missing: Layers that are not around it.
    """

    pid: int
    channel: socket.socket
    page: mmap.mmap
    groups: frozenset[str]
    missing: list[str] = field(default_factory=list)
    used_at: float = field(default_factory=time.monotonic)
    _born_with: dict[str, int] = field(default_factory=dict)
    _judged_by: dict[str, str] = field(default_factory=dict)

    def await_walls(self) -> None:
        """Wait until the walls are up; note which are not.

        Raises:
            LostError: It did not get as far.
        """
        self.channel.settimeout(START_S)
        try:
            said = self.channel.recv(READY.size, socket.MSG_WAITALL)
        except OSError as error:
            raise LostError(f"a new process said nothing for {START_S:g} s") from error
        if len(said) < READY.size or not said.startswith(MARK):
            raise LostError("a new process ended before its walls were up")
        self.missing = [layer for layer, lacks in zip(LAYERS, said[len(MARK) :], strict=False) if lacks]
        self.channel.settimeout(None)
        self.channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_S, 0))
        self._born_with = sizes(self.pid)

    def close(self) -> None:
        """Give back what belongs to it here; it ends by itself then, unless it is at something."""
        self.channel.close()
        self.page.close()

    def tell(
        self, kind: int, body: dict[str, Any], nonce: bytes = bytes(16), descriptor: int | None = None
    ) -> None:
        """Send a request.

        Raises:
            LostError: It does not take it.
        """
        message = request(kind, body, nonce)
        try:
            sent = socket.send_fds(self.channel, [message], [] if descriptor is None else [descriptor])
            self.channel.sendall(message[sent:])
        except OSError as error:
            raise LostError("it does not listen") from error

    def hear(self, most: int) -> bytes:
        """Return up to *most* bytes of what it said, which there must be.

        Raises:
            LostError: It is gone.
        """
        try:
            said = self.channel.recv(most)
        except OSError as error:
            raise LostError("it is gone") from error
        if not said:
            raise LostError("it is gone")
        return said

    def is_quiet(self) -> bool:
        """Whether it lives and waits to be asked, as it should between batches."""
        try:
            self.channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def knows(self, one: RowFilter) -> bool:
        """Whether it has judged a batch by filter *one*, so that what is done once is done."""
        return self._judged_by.get(one.key) == one.source

    def learn(self, one: RowFilter) -> None:
        """Note that it has judged a batch by filter *one*."""
        self._judged_by[one.key] = one.source

    def row(self) -> int:
        """Return the row that it says it is at; nothing that it says is to be relied on."""
        (row,) = struct.unpack_from("<Q", self.page)
        return int(row)

    def knock(self, how: signal.Signals) -> None:
        """Tell the filter that is judging to stop, or to stop unless a column is being made."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, how)

    def usage(self) -> Usage:
        """Return what it used so far; only differences mean something."""
        return Usage(self._cpu_s(), time.monotonic(), self._starved_s())

    def grown_mb(self) -> float:
        """Return by how much it had grown at its largest, the batch included. [MiB]"""
        return self._growth("VmHWM", "VmRSS")

    def held_mb(self) -> float:
        """Return by how much more memory it holds than at its birth. [MiB]"""
        return self._growth("VmData", "VmData")

    def is_old(self) -> bool:
        """Whether it has used up half of its CPU time for life."""
        return self._cpu_s() > LIFE_CPU_S / 2

    def _growth(self, now: str, then: str) -> float:
        try:
            return max(0.0, (sizes(self.pid)[now] - self._born_with[then]) / MIB)
        except (OSError, KeyError):
            return 0.0

    def _cpu_s(self) -> float:
        try:
            return time.clock_gettime((~self.pid << 3) | 2)  # as clock_getcpuclockid makes it
        except OSError:
            return 0.0

    def _starved_s(self) -> float | None:
        try:
            return int(Path(f"/proc/{self.pid}/schedstat").read_bytes().split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            return None
