"""A filter's process: puts up the walls around itself, then judges what it is given until it is ended.

One thread, one channel (descriptor 3), one owner.  What filters print goes nowhere.
"""

import io
import json
import mmap
import os
import signal
import socket
import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from nightwire.filters.sandbox._answer import encode
from nightwire.filters.sandbox._contract import Limits
from nightwire.filters.sandbox._protocol import BATCH, HEADER, JUDGE, MARK, NUDGE, READY, STOP
from nightwire.filters.sandbox._rows import Rows
from nightwire.filters.sandbox._seccomp import CHANNEL
from nightwire.filters.sandbox._verdicts import Bench, TooLate, is_own
from nightwire.filters.sandbox._walls import LAYERS, raise_walls

PAGE = mmap.PAGESIZE


class Nowhere(io.TextIOBase):
    """Where filters print to."""

    def write(self, text: str) -> int:
        """Forget *text*."""
        return len(text)


def run(limits: dict[str, Any], channel: int, progress: int, parent: int) -> None:
    """Become a filter's process; returns when the sandbox has closed the *channel*.

    Args:
        limits: As `Limits` has them.
        channel: Descriptor of the socket to the sandbox.
        progress: Descriptor of the page on which the row being judged is shown.
        parent: The process that forked this one.
    """
    page = memoryview(mmap.mmap(progress, PAGE)).cast("Q")
    bench = Bench(page)
    _furnish(channel)
    allowed = Limits(**limits)
    os.nice(allowed.nice)
    for knock in (STOP, NUDGE):
        signal.signal(knock, lambda number, frame: _knocked(bench, number, frame))
    sock = socket.socket(fileno=CHANNEL)
    missing = raise_walls(allowed, parent)
    os.write(CHANNEL, READY.pack(MARK, bytes(layer in missing for layer in LAYERS)))
    _serve(sock, bench)


def _furnish(channel: int) -> None:
    """Leave no file open but the channel and nowhere."""
    os.dup2(channel, CHANNEL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.closerange(CHANNEL + 1, os.sysconf("SC_OPEN_MAX"))
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), Nowhere(), Nowhere()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")  # the first to go if memory does


def _knocked(bench: Bench, number: int, frame: FrameType | None) -> None:
    if bench.judging and (number == STOP or is_own(frame)):
        raise TooLate


def _serve(sock: socket.socket, bench: Bench) -> None:
    rows: Rows | None = None
    while head := _exactly(sock, HEADER.size):
        header, descriptors = head
        nonce, kind, size = HEADER.unpack(header)
        body = json.loads(_body(size))
        if kind == JUDGE and rows is not None:
            answer = encode(nonce, bench.judge(rows, **body))
            _write(answer)
            continue
        rows = Rows(descriptors[0], **body) if kind == BATCH else None
        for descriptor in descriptors:
            os.close(descriptor)


def _exactly(sock: socket.socket, size: int) -> tuple[bytes, list[int]] | None:
    """Read a header, and what comes along; None where the sandbox is gone."""
    header, descriptors, _, _ = socket.recv_fds(sock, size, 1)
    while header and len(header) < size:
        header += os.read(CHANNEL, size - len(header))
    return (header, descriptors) if header else None


def _body(size: int) -> bytes:
    parts = []
    while size:
        parts.append(os.read(CHANNEL, size))
        size -= len(parts[-1])
    return b"".join(parts)


def _write(answer: bytes) -> None:
    left = memoryview(answer)
    while left:
        left = left[os.write(CHANNEL, left) :]
