"""Kafka for an event loop: records out, with an answer to await; and what log this is."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicCollection

from nightwire.core.kafka import DeliveryError, admin

log = logging.getLogger(__name__)

Acknowledged = asyncio.Future[tuple[int, int]]
"""Resolves to partition and offset."""


class LoopProducer:
    """A producer whose acknowledgements are awaited in an event loop.

    librdkafka reports deliveries to whoever polls; a thread does, and hands them to the loop in batches.

    Args:
        producer: A ``confluent_kafka.Producer``.
        loop: The loop that awaits.
    """

    def __init__(self, producer: Producer, loop: asyncio.AbstractEventLoop) -> None:
        self._producer, self._loop = producer, loop
        self._done: deque[tuple[Acknowledged, KafkaError | None, tuple[int, int]]] = deque()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="kafka-acks", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Say whether acknowledgements are still being collected."""
        return self._thread.is_alive()

    async def produce(
        self, topic: str, value: bytes, *, key: bytes, headers: Sequence[tuple[str, bytes]]
    ) -> tuple[int, int]:
        """Write one record; return its partition and offset once Kafka has acknowledged it.

        Raises:
            DeliveryError: Kafka did not take it, within librdkafka's ``delivery.timeout.ms``.
        """
        acknowledged: Acknowledged = self._loop.create_future()

        def delivered(error: KafkaError | None, message: Message) -> None:
            self._done.append((acknowledged, error, (message.partition() or 0, message.offset() or 0)))
            if len(self._done) == 1:
                self._loop.call_soon_threadsafe(self._resolve)

        while True:
            try:
                self._producer.produce(topic, value, key, headers=list(headers), on_delivery=delivered)
                break
            except BufferError:  # librdkafka's queue is full: the author waits
                await asyncio.sleep(0.01)
            except KafkaException as error:
                raise DeliveryError(f"{topic}: {error.args[0].str()}") from error
        return await acknowledged

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
        return int(waiting)

    def _poll(self) -> None:
        while not self._stop.is_set():
            self._producer.poll(0.1)

    def _resolve(self) -> None:
        while self._done:
            acknowledged, error, place = self._done[0]
            if not acknowledged.done():  # an author who left cancels his
                if error is None:
                    acknowledged.set_result(place)
                else:
                    acknowledged.set_exception(DeliveryError(f"{error.str()} ({error.name()})"))
            self._done.popleft()


def log_identity(bootstrap: str, topic: str) -> str:
    """Return what tells this *topic* from one of the same name that was made anew, or on another cluster.

    Raises:
        KafkaException: Kafka cannot be reached, or has no such topic.
    """
    client = admin(bootstrap)
    described = client.describe_topics(TopicCollection([topic]), request_timeout=10)[topic].result(15)
    cluster = client.list_topics(topic, timeout=10).cluster_id
    return f"{cluster}/{described.topic_id}"
