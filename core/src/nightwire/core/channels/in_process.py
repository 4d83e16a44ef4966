"""What this process itself writes, handed to its own readers once Kafka has acknowledged it."""

import threading
from collections import deque
from collections.abc import Iterator, Sequence

from confluent_kafka import Message

MOST_WAITING = 64 << 20
"""Most that waits for a reader; what is beyond he reads from Kafka. [byte]"""

Place = tuple[str, str]
"""A Kafka's address, and a topic."""


class Mailbox:
    """Acknowledged records that wait for one reader; filled by any threads, emptied by one."""

    def __init__(self) -> None:
        self._waiting: deque[Message] = deque()
        self._put, self._taken = 0, 0  # [byte]
        self._some = threading.Event()

    def put(self, message: Message) -> None:
        """Add *message*, if there is room."""
        size = len(message.value() or b"")
        if self._put - self._taken + size <= MOST_WAITING:
            self._put += size
            self._waiting.append(message)
            if not self._some.is_set():
                self._some.set()

    def take(self, most: int, timeout: float) -> Iterator[Message]:
        """Yield at most *most* records that are there, or that come first within *timeout*. [s]"""
        if not self._waiting and not self._some.wait(timeout):
            return
        self._some.clear()
        for _ in range(min(most, len(self._waiting))):
            message = self._waiting.popleft()
            self._taken += len(message.value() or b"")
            yield message
        if self._waiting:
            self._some.set()


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

    def deliver(self, bootstrap: str, message: Message) -> None:
        """Hand on *message*, which Kafka has acknowledged."""
        for mailbox in self._mailboxes.get((bootstrap, str(message.topic())), ()):
            mailbox.put(message)

    def heard(self, bootstrap: str, topic: str) -> bool:
        """Return whether somebody reads *topic* here."""
        return bool(self._mailboxes.get((bootstrap, topic)))


WRITTEN_HERE = WrittenHere()
