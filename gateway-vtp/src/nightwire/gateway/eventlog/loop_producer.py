"""A producer for an event loop: each record's acknowledgement is a call in the loop."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from nightwire.core.channels import ChannelCopies
from nightwire.core.kafka import DeliveryError, Headers, error_text

log = logging.getLogger(__name__)

Acknowledged = Callable[[DeliveryError | None], None]
"""Takes why Kafka did not take a record, or None once it has it."""
Delivered = Callable[[Message], None]
"""Takes a record that Kafka has."""

GATHER = 0.005
"""Longest time that a record waits for others. [s]"""


class LoopProducer:
    """A producer whose acknowledgements are calls in an event loop.

    librdkafka reports deliveries to whoever polls; a thread polls, and hands them to the loop in
    batches.  A record that comes alone goes out at once.  Those that come while others are on their
    way go out together, `GATHER` after the first: a request costs Kafka as much as dozens of
    records.

    Args:
        producer: A ``confluent_kafka.Producer``.
        loop: The loop.
        channels: Copies what is written to channels.
    """

    def __init__(
        self,
        producer: Producer,
        loop: asyncio.AbstractEventLoop,
        channels: ChannelCopies | None = None,
    ) -> None:
        self._producer, self._loop, self._channels = producer, loop, channels
        self._waiting: deque[tuple[Callable[[], None], Acknowledged]] = deque()
        self._in_flight = 0
        self._delivered: deque[tuple[Acknowledged, KafkaError | None]] = deque()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="kafka-acks", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many records librdkafka does not have yet."""
        return len(self._waiting)

    def begin(
        self, topic: str, value: bytes, *, key: bytes, headers: Headers, acknowledged: Acknowledged
    ) -> None:
        """Begin to write one record; *acknowledged* is called, later, in the loop.

        It is given an error where Kafka did not take the record within ``delivery.timeout.ms``.
        """
        copied = None if self._channels is None else self._channels.after(None, headers)
        delivered = partial(self._note_delivery, acknowledged, copied)
        produce = partial(
            self._producer.produce, topic, value, key, headers=list(headers), on_delivery=delivered
        )
        self._waiting.append((produce, acknowledged))
        if len(self._waiting) == 1:
            self._loop.call_later(GATHER if self._in_flight else 0, self._send)

    def warm_up(self, topic: str) -> None:
        """Learn where *topic* lies before the first record.  Blocks."""
        try:
            self._producer.list_topics(topic, timeout=10)
        except KafkaException as error:
            log.warning("Kafka does not answer yet: %s", error_text(error))

    def close(self, timeout: float) -> int:
        """Wait at most *timeout* [s] for acknowledgements; return how many are missing.  Blocks."""
        waiting = self._producer.flush(timeout)
        self._stop.set()
        self._thread.join()
        return int(waiting) + self.waiting

    def _send(self) -> None:
        """Hand on what has gathered."""
        while self._waiting:
            produce, acknowledged = self._waiting[0]
            try:
                produce()
                self._in_flight += 1
            except BufferError:  # librdkafka's queue is full: acknowledgements make room
                self._loop.call_later(GATHER, self._send)
                return
            except KafkaException as error:
                self._loop.call_soon(acknowledged, DeliveryError(error_text(error)))
            self._waiting.popleft()

    def _poll(self) -> None:
        while not self._stop.is_set():
            self._producer.poll(0.1)

    def _note_delivery(
        self, acknowledged: Acknowledged, copied: Delivered | None, error: KafkaError | None, message: Message
    ) -> None:
        """Have the loop woken once for all that is delivered until it comes to it."""
        self._delivered.append((acknowledged, error))
        if len(self._delivered) == 1:
            self._loop.call_soon_threadsafe(self._report)
        if error is None and copied is not None:
            copied(message)

    def _report(self) -> None:
        while self._delivered:
            acknowledged, error = self._delivered[0]
            failure = None if error is None else DeliveryError(f"{error.str()} ({error.name()})")
            self._loop.call_soon(acknowledged, failure)  # which takes no other along if it fails
            self._delivered.popleft()
            self._in_flight -= 1
