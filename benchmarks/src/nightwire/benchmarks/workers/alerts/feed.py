"""Sending from this process: our writer with a clock on its codec, and raw librdkafka beside it."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from nightwire.benchmarks.environment.alert_pool import ReadyMessage
from nightwire.core.kafka import PRODUCER, DeliveryError, producer
from nightwire.producer import AlertWriter
from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema, survey

OnDelivered = Callable[[Message], None]

COMPRESSION = str(PRODUCER["compression.type"])
"""The compression of our writers."""


class TimedCodec(Codec):
    """A codec that adds up the time it takes to encode. [s]"""

    seconds = 0.0

    def encode(self, alert: Mapping[str, Any]) -> bytes:
        """Return the Avro body of *alert*."""
        began = time.perf_counter()
        body = super().encode(alert)
        self.seconds += time.perf_counter() - began
        return body


def alert_writer(bootstrap: str, topic: str, **overrides: Any) -> tuple[AlertWriter, TimedCodec, Producer]:
    """Return a writer of simulated alerts to *topic*, its codec, and its producer.

    *overrides* are librdkafka properties with ``_`` for ``.``, such as ``compression_type="lz4"``.
    """
    codec, client = TimedCodec(sim_alert_schema()), producer(bootstrap, **overrides)
    return AlertWriter(client, survey("sim"), codec, SIM_ALERT_ID, topic=topic), codec, client


def delivered() -> tuple[OnDelivered, dict[int, int]]:
    """Return a delivery callback, and the end of each partition that it saw acknowledged."""
    ends: dict[int, int] = {}

    def note(message: Message) -> None:
        part, offset = message.partition() or 0, message.offset() or 0
        ends[part] = max(ends.get(part, 0), offset + 1)

    return note, ends


class RawProducer:
    """librdkafka with the settings of our writer, and nothing around it.

    Args:
        bootstrap: Kafka's address.
        topic: Where to, unless a message says otherwise.
        overrides: librdkafka properties with ``_`` for ``.``.
    """

    def __init__(self, bootstrap: str, topic: str = "", **overrides: Any) -> None:
        self.client, self._topic = producer(bootstrap, **overrides), topic
        self._failure: KafkaError | None = None

    def send(self, message: ReadyMessage, then: OnDelivered | None = None, *, topic: str = "") -> None:
        """Queue *message* for *topic*; wait while the queue is full."""

        def delivered(error: KafkaError | None, sent: Message) -> None:
            if error is not None:
                self._failure = error
            elif then is not None:
                then(sent)

        while True:
            try:
                self.client.produce(topic or self._topic, message.value, message.key, on_delivery=delivered)
                break
            except BufferError:
                self.client.poll(0.1)
        self.client.poll(0)

    def send_all(self, messages: Iterable[ReadyMessage]) -> None:
        """Send all of *messages*, and wait for their acknowledgements.

        Raises:
            DeliveryError: One was refused, or did not come.
        """
        for message in messages:
            self.send(message)
        self.flush()

    def flush(self) -> None:
        """Wait for all acknowledgements.

        Raises:
            DeliveryError: One was refused, or did not come.
        """
        left = self.client.flush(120)
        if self._failure is not None or left:
            raise DeliveryError(f"{self._topic}: {left} unacknowledged, {self._failure}")


def cycled(messages: Sequence[ReadyMessage], count: int, first: int = 0) -> list[ReadyMessage]:
    """Return *count* messages, cycling through *messages* from number *first*."""
    return list(islice(cycle(messages), first % len(messages), first % len(messages) + count))
