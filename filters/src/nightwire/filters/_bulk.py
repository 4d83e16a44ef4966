"""Writing very many small records: with less to do for each than `nightwire.core.kafka.Writer` does."""

from confluent_kafka import KafkaError, Message, Producer

from nightwire.core.kafka import DeliveryError

AT_ONCE = 1000
"""Records after which acknowledgements are taken in."""

PATIENCE = 150.0
"""Longest wait for acknowledgements. [s]"""


class Bulk:
    """Writes records, at least once; `flush` raises the first failure.

    Args:
        producer: A ``confluent_kafka.Producer``.
    """

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._failure: str | None = None
        self._queued = 0

    def write(self, topic: str, value: bytes, key: bytes) -> None:
        """Queue a record; wait while librdkafka's queue is full."""
        while True:
            try:
                self._producer.produce(topic, value, key, on_delivery=self._delivered)
                break
            except BufferError:
                self._producer.poll(0.1)
        self._queued += 1
        if self._queued % AT_ONCE == 0:
            self._producer.poll(0)

    def flush(self) -> None:
        """Wait until every record is acknowledged.

        Raises:
            DeliveryError: One was not.
        """
        waiting = self._producer.flush(PATIENCE)
        if self._failure is not None:
            raise DeliveryError(self._failure)
        if waiting:
            raise DeliveryError(f"{waiting} records unacknowledged after {PATIENCE:g} s")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._failure is None:
            self._failure = f"{message.topic()}: {error.str()} ({error.name()})"
