"""A process of subscribers: each answers what it gets, and notes when each event came first.

``python -m nightwire.benchmarks.workers.vtp.subscribers '{"port": …}'`` prints a line when all were
greeted or the time for that is over, goes on until every subscriber has every event of the run, and
prints a line with what it found.
"""

import re
import selectors
import socket
import time
from dataclasses import dataclass

from nightwire.benchmarks.workers.vtp.sockets import CHUNK, WriteBuffer, connecting, step
from nightwire.benchmarks.workers.worker import emit, first_order
from nightwire.gateway import FrameDecoder, encode_frame

PATIENCE = 20.0
"""Longest wait for the next event. [s]"""
_EVENT = re.compile(rb"""<[^<]*VOEvent\b[^>]*?\bivorn\s*=\s*["']([^"']*)["']""")
_ROLE = re.compile(rb"""\brole=["'](\w+)["']""")
_SAY = (
    b"<?xml version='1.0' encoding='UTF-8'?>\n<trn:Transport "
    b'xmlns:trn="http://www.telescope-networks.org/xml/Transport/v1.1" version="1.0" role="%s">'
    b"<Origin>%s</Origin><Response>ivo://bench/telescope</Response>"
    b"<TimeStamp>2026-01-01T00:00:00Z</TimeStamp></trn:Transport>"
)


@dataclass(frozen=True)
class Order:
    """What subscribers do.

    Attributes:
        port: Of the broker.
        run: Name of the run, with which the events' local parts begin.
        count: Events that each is to get.
        subscribers: How many there are.
        greeting: Longest wait until all are greeted. [s]
        at_once: Most that are on their way at the same time.
    """

    port: int
    run: str
    count: int
    subscribers: int = 1
    greeting: float = 40.0
    at_once: int = 40


class Subscriber:
    """One subscriber."""

    def __init__(self, group: "SubscriberGroup") -> None:
        self._group, self._frames = group, FrameDecoder()
        self.connection: socket.socket = connecting(group.order.port)
        group.selector.register(self.connection, selectors.EVENT_READ, self)
        self._pending = WriteBuffer(group.selector, self.connection, self)
        self.greeted: float | None = None

    def ready(self, events: int) -> None:
        """Do what the socket has room for."""
        try:
            if events & selectors.EVENT_WRITE:
                self._pending.flush()
            if events & selectors.EVENT_READ:
                self._read()
        except OSError:
            self._lost()

    def _read(self) -> None:
        chunk = self.connection.recv(CHUNK)
        if not chunk:
            self._lost()
            return
        now = time.monotonic()
        self._frames.receive(chunk)
        answers = b"".join(self._answer(message, now) for message in self._frames)
        if answers:
            self._pending.write(answers)

    def _answer(self, message: bytes, now: float) -> bytes:
        found = _EVENT.search(message, 0, 2000)
        if found is None:
            role = _ROLE.search(message)
            if self.greeted is None:
                self.greeted = now
                self._group.greeted += 1
            return (
                encode_frame(_SAY % (b"iamalive", b"ivo://bench")) if role and role[1] == b"iamalive" else b""
            )
        self._group.note(self, found[1], now)
        return encode_frame(_SAY % (b"ack", found[1]))

    def _lost(self) -> None:
        self._group.selector.unregister(self.connection)
        self.connection.close()
        self._group.lost += 1


class SubscriberGroup:
    """All subscribers of one process."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.selector = selectors.DefaultSelector()
        self.first: dict[int, float] = {}
        self.last: dict[int, float] = {}
        self.got = self.lost = self.extra = 0
        self._seen: dict[Subscriber, set[int]] = {}
        self._mark = f"#{order.run}-".encode()
        self.began = time.monotonic()
        self.greeted = 0
        self.listeners: list[Subscriber] = []

    def greet(self) -> list[float]:
        """Wait until all are greeted, or time is over; return how long each took. [s]"""
        deadline = self.began + self.order.greeting
        while time.monotonic() < deadline and self.greeted < self.order.subscribers:
            while len(self.listeners) < min(self.greeted + self.order.at_once, self.order.subscribers):
                self.listeners.append(Subscriber(self))
            step(self.selector, 0.1)
        return sorted(one.greeted - self.began for one in self.listeners if one.greeted is not None)

    def listen(self) -> None:
        """Wait until every subscriber that is there has every event, or nothing comes any more."""
        last, wanted = time.monotonic(), self.order.count * self.order.subscribers
        known = 0
        while known < wanted and time.monotonic() - last < PATIENCE:
            step(self.selector, 0.5)
            if self.got > known:
                last, known = time.monotonic(), self.got

    def note(self, listener: Subscriber, ivorn: bytes, now: float) -> None:
        """Note that an event came."""
        _, mark, number = ivorn.rpartition(self._mark)
        if not mark or not number.isdigit():
            return
        seen = self._seen.setdefault(listener, set())
        event = int(number)
        if event in seen:
            self.extra += 1
            return
        seen.add(event)
        self.got += 1
        self.first.setdefault(event, now)
        self.last[event] = now


def main() -> None:
    """Follow the order, and print what came of it."""
    group = SubscriberGroup(Order(**first_order()))
    emit({"greeted": group.greet()})
    cpu = time.process_time()
    group.listen()
    emit(
        {
            "cpu": time.process_time() - cpu,
            "first": group.first,
            "last": group.last,
            "missing": group.order.count * group.order.subscribers - group.got,
            "extra": group.extra,
            "lost": group.lost,
        }
    )


if __name__ == "__main__":
    main()
