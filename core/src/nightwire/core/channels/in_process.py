"""Local delivery: acknowledged records of this process's writers, to its own readers."""

import threading
from collections import deque
from collections.abc import Sequence

from confluent_kafka import Message

from nightwire.core.kafka import Headers

MAX_WAITING = 64 << 20
"""Most that waits for a reader; the rest comes from Kafka. [byte]"""

RECORD, HEADER = 400, 200
"""Memory of a record, and of a header, beside its content. [byte]"""

TopicKey = tuple[str, str]
"""A Kafka's address, and a topic."""


def size_of(message: Message, headers: Headers) -> int:
    """Return the memory of a record; confluent-kafka leaves *headers* out of it. [byte]"""
    size = RECORD + len(message) + len(message.key() or b"")
    return size + sum(HEADER + len(name) + len(value or b"") for name, value in headers) if headers else size


class RecordQueue:
    """A queue of acknowledged records for one reader; filled by any threads, emptied by one."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Message, int]] = deque()
        self._put, self._out = 0, 0  # [byte]
        self._filled, self._signalled = threading.Event(), False

    def put(self, message: Message, size: int) -> None:
        """Add *message*, if there is room for its *size*. [byte]"""
        if self._put - self._out + size <= MAX_WAITING:
            self._put += size
            self._waiting.append((message, size))
            if not self._signalled:
                self._signalled = True
                self._filled.set()

    def take(self, most: int, timeout: float) -> list[Message]:
        """Return at most *most* records that are there, or that come first within *timeout*. [s]"""
        if not self._waiting and not self._filled.wait(timeout):
            return []
        self._filled.clear()
        self._signalled = False  # only now: a later `put` signals again
        taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        self._out += sum(size for _, size in taken)
        return [message for message, _ in taken]


class LocalDelivery:
    """The topics that this process writes, and its readers' queues."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writers: dict[TopicKey, int] = {}
        self._queues: dict[TopicKey, tuple[RecordQueue, ...]] = {}

    def writes(self, bootstrap: str, topic: str) -> bool:
        """Return whether this process has a writer of *topic*."""
        return self._writers.get((bootstrap, topic), 0) > 0

    def add_writer(self, bootstrap: str, topic: str) -> None:
        """Count a writer."""
        with self._lock:
            self._writers[bootstrap, topic] = self._writers.get((bootstrap, topic), 0) + 1

    def remove_writer(self, bootstrap: str, topic: str) -> None:
        """Count a writer less."""
        with self._lock:
            self._writers[bootstrap, topic] -= 1

    def attach(self, bootstrap: str, topics: Sequence[str], queue: RecordQueue) -> None:
        """Put records that are written to *topics* into *queue*, too."""
        with self._lock:
            for topic in topics:
                self._queues[bootstrap, topic] = (*self._queues.get((bootstrap, topic), ()), queue)

    def detach(self, queue: RecordQueue) -> None:
        """Put no more records into *queue*."""
        with self._lock:
            for topic_key, known in self._queues.items():
                self._queues[topic_key] = tuple(one for one in known if one is not queue)

    def deliver(self, topic_key: TopicKey, message: Message, headers: Headers) -> None:
        """Put *message*, which is acknowledged, into the queues, with its *headers*."""
        size = size_of(message, headers)
        if headers:
            message.set_headers([*headers])
        for queue in self._queues.get(topic_key, ()):
            queue.put(message, size)

    def has_readers(self, topic_key: TopicKey) -> bool:
        """Return whether *topic_key* has a reader in this process."""
        return bool(self._queues.get(topic_key))


LOCAL_DELIVERY = LocalDelivery()
