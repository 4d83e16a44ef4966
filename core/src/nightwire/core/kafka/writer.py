"""The writer that loses nothing in silence: a failed delivery is an error of every later call."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from nightwire.core.kafka.clients import error_text
from nightwire.schemas import MendableError

Headers = Sequence[tuple[str, bytes]]
Delivered = Callable[[Message], None]
Refused = Callable[[KafkaError], None]
Failed = Callable[[KafkaError], bool]


class DeliveryError(MendableError):
    """Kafka did not take a record.  Stop, and start again from the last position."""


@dataclass(frozen=True)
class Record:
    """A record to be written, and its callbacks.

    Attributes:
        topic: Where to.
        value: Its value; None is a tombstone.
        key: Its key.
        headers: Its headers.
        options: ``timestamp`` [ms], ``partition``.
        on_delivered: Is called with the acknowledged message.
        on_refused: Is called when Kafka refuses this record, alone in its batch, for its size.
        on_failed: Is asked first when a delivery fails; True means that it is seen to.
    """

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    options: tuple[tuple[str, int], ...] = ()
    on_delivered: Delivered | None = None
    on_refused: Refused | None = None
    on_failed: Failed | None = None


def produce(
    producer: Producer,
    topic: str,
    value: bytes | None,
    key: bytes | None = None,
    *,
    on_delivery: Callable[..., None],
    on_full: Callable[[], None] | None = None,
    **options: Any,
) -> None:
    """Hand one record to librdkafka; wait for acknowledgements while its queue is full.

    Args:
        producer: A ``confluent_kafka.Producer``.
        topic: Where to.
        value: Its value; None is a tombstone.
        key: Its key.
        on_delivery: Is called with the error, or None, and the message.
        on_full: Is called while the queue is full, in place of a wait for acknowledgements; raises
            where an earlier failure makes this record vain.
        options: ``headers``, ``timestamp`` [ms], ``partition``.

    Raises:
        KafkaException: librdkafka refuses the record at once.
    """
    while True:
        try:
            producer.produce(topic, value, key, on_delivery=on_delivery, **options)
        except BufferError:
            producer.poll(0.1) if on_full is None else on_full()
        else:
            return


class Writer:
    """Write records, at least once, in order per key.

    `write` queues and returns; `flush` waits for the broker.  A failed delivery is kept and raised
    by every later call, so whoever reaches the end of `flush` knows that every record was
    acknowledged.

    One record above the topic's ``max.message.bytes`` makes Kafka refuse all records of its batch.
    Those are sent again, each in a batch of its own, so that only the culprit is refused; they come
    behind what was sent meanwhile.

    Args:
        producer: A ``confluent_kafka.Producer``.
        flush_timeout: Longest wait for acknowledgements. [s]
        clock: Gives the time. [s, any steady clock]
    """

    def __init__(
        self,
        producer: Producer,
        *,
        flush_timeout: float = 150.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._producer = producer
        self._flush_timeout = flush_timeout
        self._clock = clock
        self._failure: str | None = None
        self._again: deque[Record] = deque()
        self._waiting = 0
        self._heard = clock()
        self.acknowledged = 0

    def write(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
        partition: int | None = None,
        on_delivered: Delivered | None = None,
        on_refused: Refused | None = None,
    ) -> None:
        """Queue one record; wait while librdkafka's queue is full.

        Args:
            topic: Where to.
            value: Its value; None is a tombstone.
            key: Its key.
            headers: Its headers.
            timestamp_ms: Its time; else now.
            partition: Its partition; else by its key.
            on_delivered: Is called with the acknowledged message.
            on_refused: Is called when Kafka finds this record too large; else that is a failed
                delivery.

        Raises:
            DeliveryError: An earlier record was lost, or this one is larger than any may be.
        """
        options = (("timestamp", timestamp_ms), ("partition", partition))
        given = tuple((name, number) for name, number in options if number is not None)
        self._queue(Record(topic, value, key, headers, given, on_delivered, on_refused))
        self.serve(0)
        self._send_again()

    def flush(self) -> None:
        """Wait until every queued record is acknowledged.

        Raises:
            DeliveryError: One was refused, or the wait took too long.
        """
        self._await_all()
        self._send_again()

    def serve(self, timeout: float) -> None:
        """Take in acknowledgements, for at most *timeout* [s]; returns with the first."""
        self._producer.poll(timeout)

    @property
    def silence(self) -> float:
        """Time since the last acknowledgement while records wait; 0 where none waits. [s]"""
        return self._clock() - self._heard if self._waiting else 0.0

    def _queue(self, record: Record, *, alone: bool = False) -> None:
        """Hand *record* to librdkafka.

        The closure keeps no value: what is in librdkafka's queue is not held twice.
        """
        topic, headers, options = record.topic, record.headers, record.options
        then, refused, failed = record.on_delivered, record.on_refused, record.on_failed

        def delivered(error: KafkaError | None, message: Message) -> None:
            self._waiting -= 1
            if error is not None:
                value, key = message.value(), message.key()
                again = Record(topic, value, key, headers, options, then, refused, failed)
                self._undelivered(error, again, alone=alone)
                return
            self._heard = self._clock()
            self.acknowledged += 1
            if then is not None:
                then(message)

        if self._waiting == 0:
            self._heard = self._clock()
        self._waiting += 1
        try:
            self._produce(record, delivered)
        except Exception:
            self._waiting -= 1
            raise

    def _undelivered(self, error: KafkaError, record: Record, *, alone: bool) -> None:
        if record.on_failed is not None and record.on_failed(error):
            return
        if error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
            self._fail(f"{record.topic}: {error.str()} ({error.name()})")
        elif not alone:
            self._again.append(record)
        elif record.on_refused is not None:
            record.on_refused(error)
        else:
            self._fail(f"{record.topic}: {error.str()} ({error.name()})")

    def _produce(self, record: Record, on_delivery: Callable[..., None]) -> None:
        self._raise_failure()
        options: dict[str, Any] = {"headers": list(record.headers), **dict(record.options)}
        try:
            produce(
                self._producer,
                record.topic,
                record.value,
                record.key,
                on_delivery=on_delivery,
                on_full=self._full,
                **options,
            )
        except KafkaException as error:
            raise DeliveryError(f"{record.topic}: {error_text(error)}") from error

    def _full(self) -> None:
        """Wait for acknowledgements, because librdkafka's queue is full."""
        self._producer.poll(0.1)
        self._raise_failure()

    def _send_again(self) -> None:
        """Send records of a refused batch again, one record a batch."""
        while self._again:
            self._await_all()  # nothing else is on its way, so a batch holds this record alone
            if self._again:
                self._queue(self._again.popleft(), alone=True)
                self._await_all()

    def _await_all(self) -> None:
        waiting = self._producer.flush(self._flush_timeout)
        self._raise_failure()
        if waiting:
            raise DeliveryError(f"{waiting} records unacknowledged after {self._flush_timeout:g} s")

    def _fail(self, reason: str) -> None:
        self._failure = self._failure or reason

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise DeliveryError(self._failure)
