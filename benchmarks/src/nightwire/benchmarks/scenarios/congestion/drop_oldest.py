"""What others do for a slow consumer: a queue of some length, which drops its oldest."""

import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from confluent_kafka import Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.kafka import consumer

LENGTH = 100
"""Of the queue. [alert]"""
HEAD = struct.Struct(">qqi")
"""Offset, time [ms since 1970] and size of an alert."""


@contextmanager
def queue(bootstrap: str, topic: str) -> Iterator[int]:
    """Yield the port at which one client gets what is in the queue of *topic*."""
    held, over = deque[Message](maxlen=LENGTH), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as door:
        threads = [
            threading.Thread(target=_fill, args=(bootstrap, topic, held, over)),
            threading.Thread(target=_send, args=(door, held, over), daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            yield door.getsockname()[1]
        finally:
            over.set()
            threads[0].join()


def arrivals(port: int, silence: float) -> Iterator[tuple[int, float]]:
    """Yield offset and time [s since 1970] of what comes, until nothing does for *silence* [s]."""
    with socket.create_connection(("127.0.0.1", port), silence) as link, suppress(TimeoutError):
        file = link.makefile("rb")
        while head := file.read(HEAD.size):
            offset, written, size = HEAD.unpack(head)
            file.read(size)
            yield offset, written / 1e3


def _fill(bootstrap: str, topic: str, held: deque[Message], over: threading.Event) -> None:
    reader = consumer(bootstrap)
    reader.assign([TopicPartitionOffset(topic, 0, 0)])
    while not over.is_set():
        if (message := reader.poll(0.2)) is not None and message.error() is None:
            held.append(message)
    reader.close()


def _send(door: socket.socket, held: deque[Message], over: threading.Event) -> None:
    with suppress(OSError):
        client, _ = door.accept()
        with client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 10)
            while not over.is_set():
                if not held:
                    time.sleep(0.01)
                    continue
                message = held.popleft()
                value = message.value() or b""
                client.sendall(HEAD.pack(message.offset() or 0, message.timestamp()[1], len(value)) + value)
