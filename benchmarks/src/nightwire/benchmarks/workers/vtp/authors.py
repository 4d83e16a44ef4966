"""A process that plays authors: it sends packets, and notes when each left and when it was answered.

``python -m nightwire.benchmarks.workers.vtp.authors '{"port": …}'`` prints a JSON line when its packets are
made, begins when its standard input is closed, and prints a line with what it found.  Times are of the
machine's monotonic clock.
"""

import json
import resource
import selectors
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass, field

from nightwire.benchmarks.workers.vtp.frames import (
    CHUNK,
    FrameDecoder,
    WriteBuffer,
    connecting,
    framed,
    say,
    step,
)
from nightwire.benchmarks.workers.vtp.packets import listing_5, real_packets

PATIENCE = 30.0
"""Longest time without any answer. [s]"""


@dataclass(frozen=True)
class Order:
    """What authors do.

    Attributes:
        port: Of the broker.
        run: A name that no other run has.
        count: Packets in all.
        connections: How many at once.
        window: Most packets of a connection that are not answered; 0: one packet a connection, as VTP has it.
        real: Whether real packets are sent, not those of Listing 5.
        interval: Time between packets [s]; 0: as quickly as they are taken.
    """

    port: int
    run: str
    count: int
    connections: int = 1
    window: int = 0
    real: bool = True
    interval: float = 0.0


@dataclass
class AuthorStats:
    """What came of it; times in seconds.

    Attributes:
        sent: When each packet went to the kernel, by its number.
        answered: When each was answered.
        naked: How many were refused.
        broken: Connections that ended without an answer.
    """

    sent: dict[int, float] = field(default_factory=dict)
    answered: dict[int, float] = field(default_factory=dict)
    naked: int = 0
    broken: int = 0


class Author:
    """One connection at a time, and the packets that are on it."""

    def __init__(self, play: "AuthorGroup") -> None:
        self._play = play
        self._connection: socket.socket | None = None
        self._asked: deque[int] = deque()

    def begin(self) -> None:
        """Connect, where there is something left to send."""
        if not self._play.left:
            return
        self._frames = FrameDecoder()
        self._connection = connecting(self._play.order.port)
        writable = selectors.EVENT_READ | selectors.EVENT_WRITE
        self._play.selector.register(self._connection, writable, self)
        self._pending: WriteBuffer | None = None

    def ready(self, events: int) -> None:
        """Do what the socket has room for."""
        connection = self._connection
        try:
            if self._pending is None and connection is not None and events & selectors.EVENT_WRITE:
                self._play.selector.modify(connection, selectors.EVENT_READ, self)
                self._pending = WriteBuffer(self._play.selector, connection, self)
                self._fill()
            elif events & selectors.EVENT_WRITE and self._pending is not None:
                self._pending.flush()
            if connection is not None and events & selectors.EVENT_READ:
                self._read(connection)
        except OSError:
            self._lost()

    def _fill(self) -> None:
        window = self._play.order.window or 1
        while self._pending is not None and len(self._asked) < window and self._play.left:
            number = self._play.left.popleft()
            self._asked.append(number)
            self._play.findings.sent[number] = time.monotonic()  # before: an interruption counts
            self._pending.write(self._play.frames[number])

    def _read(self, connection: socket.socket) -> None:
        chunk = connection.recv(CHUNK)
        if not chunk:
            self._lost()
            return
        for message in self._frames.add(chunk):
            self._play.note(self._asked.popleft(), message)
        if self._play.order.window:
            self._fill()
            if not self._asked:
                self._close()
        elif not self._asked:
            self._close()
            self.begin()

    def _lost(self) -> None:
        self._play.findings.broken += 1
        self._play.left.extend(self._asked)
        self._asked.clear()
        self._close()
        self.begin()

    def _close(self) -> None:
        if self._connection is not None:
            self._play.selector.unregister(self._connection)
            self._connection.close()
            self._connection = None


class AuthorGroup:
    """All authors of one process.

    Args:
        order: What they do.
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        packets = real_packets() if order.real else listing_5()
        self.frames = [framed(document) for document in packets.fresh(order.count, order.run)]
        self.left: deque[int] = deque(range(order.count))
        self.selector = selectors.DefaultSelector()
        self.findings = AuthorStats()

    def run(self) -> AuthorStats:
        """Send everything, and wait until every packet is answered or no answer comes any more."""
        if self.order.interval:
            return self._paced()
        for _ in range(self.order.connections):
            Author(self).begin()
        self._finish()
        return self.findings

    def note(self, number: int, answer: bytes) -> None:
        """Note the answer to a packet."""
        self.findings.answered[number] = time.monotonic()
        self.findings.naked += b'role="nak"' in answer

    def _paced(self) -> AuthorStats:
        """Send a packet when it is due, each on a connection of its own."""
        numbers, self.left = self.left, deque()
        began = time.monotonic()
        for number in numbers:
            self._serve(max(0.0, began + number * self.order.interval - time.monotonic()))
            self.left.append(number)
            Author(self).begin()
        self._finish()
        return self.findings

    def _finish(self) -> None:
        heard, known = time.monotonic(), 0
        while known < self.order.count and time.monotonic() - heard < PATIENCE:
            step(self.selector, 0.5)
            if len(self.findings.answered) > known:
                heard, known = time.monotonic(), len(self.findings.answered)

    def _serve(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            step(self.selector, left)


def main() -> None:
    """Read the order, play, and tell."""
    play = AuthorGroup(Order(**json.loads(sys.argv[1])))
    say({"ready": True, "bytes": sum(map(len, play.frames))})
    sys.stdin.read()
    began, cpu = time.monotonic(), time.process_time()
    found = play.run()
    say(
        {
            "began": began,
            "cpu": time.process_time() - cpu,
            "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            "sent": found.sent,
            "unanswered": play.order.count - len(found.answered),
            "naked": found.naked,
            "broken": found.broken,
        }
    )


if __name__ == "__main__":
    main()
