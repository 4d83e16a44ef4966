"""A process of authors: it sends packets, and notes when each left and when it was answered.

``python -m nightwire.benchmarks.workers.vtp.authors '{"port": …}'`` prints a line when its packets
are made, begins when its standard input is closed, and prints a line with what it found.
"""

import resource
import selectors
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from threading import Event

from nightwire.benchmarks.workers.vtp.packets import listing_5, real_packets
from nightwire.benchmarks.workers.vtp.sockets import CHUNK, WriteBuffer, connecting, step
from nightwire.benchmarks.workers.worker import emit, first_order
from nightwire.gateway import FrameDecoder, encode_frame

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
        window: Most packets of a connection that are not answered; 0: one packet a connection, as
            VTP has it.
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

    def __init__(self, group: "AuthorGroup") -> None:
        self._group = group
        self._connection: socket.socket | None = None
        self._asked: deque[int] = deque()

    def begin(self) -> None:
        """Connect, where there is something left to send."""
        if not self._group.left:
            return
        self._frames = FrameDecoder()
        self._connection = connecting(self._group.order.port)
        writable = selectors.EVENT_READ | selectors.EVENT_WRITE
        self._group.selector.register(self._connection, writable, self)
        self._pending: WriteBuffer | None = None

    def ready(self, events: int) -> None:
        """Do what the socket has room for."""
        connection = self._connection
        try:
            if self._pending is None and connection is not None and events & selectors.EVENT_WRITE:
                self._group.selector.modify(connection, selectors.EVENT_READ, self)
                self._pending = WriteBuffer(self._group.selector, connection, self)
                self._fill()
            elif events & selectors.EVENT_WRITE and self._pending is not None:
                self._pending.flush()
            if connection is not None and events & selectors.EVENT_READ:
                self._read(connection)
        except OSError:
            self._lost()

    def _fill(self) -> None:
        window = self._group.order.window or 1
        while self._pending is not None and len(self._asked) < window and self._group.left:
            number = self._group.left.popleft()
            self._asked.append(number)
            self._group.stats.sent[number] = time.monotonic()  # before: an interruption counts
            self._pending.write(self._group.frames[number])

    def _read(self, connection: socket.socket) -> None:
        chunk = connection.recv(CHUNK)
        if not chunk:
            self._lost()
            return
        self._frames.receive(chunk)
        for message in self._frames:
            self._group.note(self._asked.popleft(), message)
        if self._group.order.window:
            self._fill()
            if not self._asked:
                self._close()
        elif not self._asked:
            self._close()
            self.begin()

    def _lost(self) -> None:
        self._group.stats.broken += 1
        self._group.left.extend(self._asked)
        self._asked.clear()
        self._close()
        self._retry()

    def _retry(self) -> None:
        self.begin()

    def _close(self) -> None:
        if self._connection is not None:
            self._group.selector.unregister(self._connection)
            self._connection.close()
            self._connection = None


class AuthorGroup:
    """All authors of one process."""

    def __init__(self, order: Order) -> None:
        self.order = order
        packets = real_packets() if order.real else listing_5()
        self.frames = [encode_frame(document) for document in packets.fresh(order.count, order.run)]
        self.left: deque[int] = deque(range(order.count))
        self.selector = selectors.DefaultSelector()
        self.stats = AuthorStats()
        self.due: dict[int, float] = {}

    def run(self, stop: Event | None = None) -> AuthorStats:
        """Send all packets, or until *stop*; wait until all are answered, or no answer comes."""
        if self.order.interval:
            self._send_when_due(stop or Event())
            self._await_answers(len(self.due))
        else:
            for _ in range(self.order.connections):
                self.new_author().begin()
            self._await_answers(self.order.count)
        return self.stats

    def new_author(self) -> Author:
        """Return one more author."""
        return Author(self)

    def serve(self, seconds: float) -> None:
        """Serve sockets for at most so long."""
        step(self.selector, seconds)

    def note(self, number: int, answer: bytes) -> None:
        """Note the answer to a packet."""
        self.stats.answered[number] = time.monotonic()
        self.stats.naked += b'role="nak"' in answer

    def _send_when_due(self, stop: Event) -> None:
        """Send a packet when it is due, each on a connection of its own."""
        numbers, self.left = self.left, deque()
        began = time.monotonic()
        for number in numbers:
            due = began + number * self.order.interval
            while not stop.is_set() and (left := due - time.monotonic()) > 0:
                self.serve(left)
            if stop.is_set():
                break
            self.due[number] = due
            self.left.append(number)
            self.new_author().begin()

    def _await_answers(self, wanted: int) -> None:
        last, known = time.monotonic(), 0
        while known < wanted and time.monotonic() - last < PATIENCE:
            self.serve(0.5)
            if len(self.stats.answered) > known:
                last, known = time.monotonic(), len(self.stats.answered)


def main() -> None:
    """Follow the order, and print what came of it."""
    group = AuthorGroup(Order(**first_order()))
    emit({"ready": True, "bytes": sum(map(len, group.frames))})
    sys.stdin.read()
    began, cpu = time.monotonic(), time.process_time()
    stats = group.run()
    emit(
        {
            "began": began,
            "cpu": time.process_time() - cpu,
            "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            "sent": stats.sent,
            "unanswered": group.order.count - len(stats.answered),
            "naked": stats.naked,
            "broken": stats.broken,
        }
    )


if __name__ == "__main__":
    main()
