"""What this process itself writes, handed to its own readers once Kafka has acknowledged it."""

import threading
from collections import deque
from collections.abc import Sequence

from confluent_kafka import Message

from nightwire.core.kafka import Headers

MOST_WAITING = 64 << 20
"""Most that waits for a reader; what is beyond he reads from Kafka. [byte]"""

RECORD, HEADER = 400, 200
"""What a record, and one of its headers, takes beside its content. [byte]"""

Place = tuple[str, str]
"""A Kafka's address, and a topic."""


def size_of(message: Message, headers: Headers) -> int:
    """Return what a record takes while it waits; confluent-kafka leaves *headers* out. [byte]"""
    size = RECORD + len(message) + len(message.key() or b"")
    return size + sum(HEADER + len(name) + len(value or b"") for name, value in headers) if headers else size


class Mailbox:
    """Acknowledged records that wait for one reader; filled by any threads, emptied by one."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Message, int]] = deque()
        self._put, self._taken = 0, 0  # [byte]
        self._some, self._called = threading.Event(), False

    def put(self, message: Message, size: int) -> None:
        """Add *message*, if there is room for its *size*. [byte]"""
        if self._put - self._taken + size <= MOST_WAITING:
            self._put += size
            self._waiting.append((message, size))
            if not self._called:
                self._called = True
                self._some.set()

    def take(self, most: int, timeout: float) -> list[Message]:
        """Return at most *most* records that are there, or that come first within *timeout*. [s]"""
        if not self._waiting and not self._some.wait(timeout):
            return []
        self._some.clear()
        self._called = False  # only now: whoever puts something from here on calls again
        taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        self._taken += sum(size for _, size in taken)
        return [message for message, _ in taken]


class WrittenHere:
    """Which topics this process writes, and its readers of these."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writers: dict[Place, int] = {}
        self._mailboxes: dict[Place, tuple[Mailbox, ...]] = {}

    def writes(self, bootstrap: str, topic: str) -> bool:
        """Return whether there is a writer of *topic* here."""
        return self._writers.get((bootstrap, topic), 0) > 0

    def begin(self, bootstrap: str, topic: str) -> None:
        """Note a writer."""
        with self._lock:
            self._writers[bootstrap, topic] = self._writers.get((bootstrap, topic), 0) + 1

    def end(self, bootstrap: str, topic: str) -> None:
        """Note that a writer is gone."""
        with self._lock:
            self._writers[bootstrap, topic] -= 1

    def listen(self, bootstrap: str, topics: Sequence[str], mailbox: Mailbox) -> None:
        """Put what is written to *topics* into *mailbox*, too."""
        with self._lock:
            for topic in topics:
                self._mailboxes[bootstrap, topic] = (*self._mailboxes.get((bootstrap, topic), ()), mailbox)

    def leave(self, mailbox: Mailbox) -> None:
        """Put nothing into *mailbox* any more."""
        with self._lock:
            for place, known in self._mailboxes.items():
                self._mailboxes[place] = tuple(one for one in known if one is not mailbox)

    def deliver(self, place: Place, message: Message, headers: Headers) -> None:
        """Hand on *message*, which Kafka has acknowledged; confluent-kafka leaves *headers* out."""
        size = size_of(message, headers)
        if headers:
            message.set_headers([*headers])
        for mailbox in self._mailboxes.get(place, ()):
            mailbox.put(message, size)

    def heard(self, place: Place) -> bool:
        """Return whether somebody reads *place* here."""
        return bool(self._mailboxes.get(place))


WRITTEN_HERE = WrittenHere()
