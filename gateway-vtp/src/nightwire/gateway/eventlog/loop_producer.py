"""A producer for an event loop: each record has an acknowledgement to await."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from nightwire.core.kafka import DeliveryError

log = logging.getLogger(__name__)

Acknowledged = asyncio.Future[tuple[int, int]]
"""Resolves to partition and offset."""


GATHER = 0.005
"""Longest time that a record waits for others. [s]"""


class _Record(NamedTuple):
    """A record that librdkafka does not have yet."""

    topic: str
    value: bytes
    key: bytes
    headers: list[tuple[str, str | bytes | None]]
    acknowledged: Acknowledged


class LoopProducer:
    """A producer whose acknowledgements are awaited in an event loop.

    librdkafka reports deliveries to whoever polls; a thread polls, and hands them to the loop in
    batches.  A record that comes alone goes out at once.  Those that come while others are on their
    way go out together, when these have arrived, or after `GATHER`: a request costs Kafka as much
    as dozens of records.

    Args:
        producer: A ``confluent_kafka.Producer``.
        loop: The loop that awaits.
    """

    def __init__(self, producer: Producer, loop: asyncio.AbstractEventLoop) -> None:
        self._producer, self._loop = producer, loop
        self._waiting: deque[_Record] = deque()
        self._in_flight = 0
        self._timer: asyncio.TimerHandle | None = None
        self._delivered: deque[tuple[Acknowledged, KafkaError | None, tuple[int, int]]] = deque()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="kafka-acks", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Say whether acknowledgements are still being collected."""
        return self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """How many records librdkafka does not have yet."""
        return len(self._waiting)

    def begin(
        self, topic: str, value: bytes, *, key: bytes, headers: Sequence[tuple[str, bytes]]
    ) -> Acknowledged:
        """Begin to write one record; the future resolves once Kafka has acknowledged it.

        The future raises `DeliveryError` where Kafka did not take it, within
        ``delivery.timeout.ms``.
        """
        acknowledged: Acknowledged = self._loop.create_future()
        self._waiting.append(_Record(topic, value, key, list(headers), acknowledged))
        if not self._in_flight:
            self._send()
        elif self._timer is None:
            self._timer = self._loop.call_later(GATHER, self._send)
        return acknowledged

    def warm_up(self, topic: str) -> None:
        """Learn where *topic* lies before the first record.  Blocks."""
        try:
            self._producer.list_topics(topic, timeout=10)
        except KafkaException as error:
            log.warning("Kafka does not answer yet: %s", error.args[0].str())

    def close(self, timeout: float) -> int:
        """Wait at most *timeout* [s] for acknowledgements; return how many are missing.  Blocks."""
        waiting = self._producer.flush(timeout)
        self._stop.set()
        self._thread.join()
        return int(waiting) + self.waiting

    def _send(self) -> None:
        """Hand on what has gathered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            try:
                self._produce(self._waiting[0])
            except BufferError:  # librdkafka's queue is full: acknowledgements make room
                return
            self._waiting.popleft()

    def _produce(self, record: "_Record") -> None:
        def on_delivery(error: KafkaError | None, message: Message) -> None:
            position = (message.partition() or 0, message.offset() or 0)
            self._delivered.append((record.acknowledged, error, position))
            if len(self._delivered) == 1:
                self._loop.call_soon_threadsafe(self._resolve)

        try:
            self._producer.produce(
                record.topic, record.value, record.key, headers=record.headers, on_delivery=on_delivery
            )
            self._in_flight += 1
        except KafkaException as error:
            if not record.acknowledged.done():
                reason = f"{record.topic}: {error.args[0].str()}"
                record.acknowledged.set_exception(DeliveryError(reason))

    def _poll(self) -> None:
        while not self._stop.is_set():
            self._producer.poll(0.1)

    def _resolve(self) -> None:
        while self._delivered:
            acknowledged, error, position = self._delivered[0]
            if not acknowledged.done():  # cancelled by an author who left
                if error is None:
                    acknowledged.set_result(position)
                else:
                    acknowledged.set_exception(DeliveryError(f"{error.str()} ({error.name()})"))
            self._delivered.popleft()
            self._in_flight -= 1
        if self._waiting and not self._in_flight:
            self._send()
