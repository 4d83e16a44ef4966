"""Producers of many small records, of copies for many topics, and of control records."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from nightwire.core import kafka
from nightwire.core.kafka import DeliveryError, Record, Writer, ensure_topics
from nightwire.schemas.topics import settings

RECORDS_PER_BATCH = 1000
"""Records after which acknowledgements are taken in."""

FLUSH_TIMEOUT = 150.0
"""Longest wait for acknowledgements. [s]"""


class BulkProducer:
    """Writes many small records, topic by topic, at least once; `flush` raises the first failure.

    By `produce` each record is a walk along all topics that librdkafka has met, which are twice as
    many as filters: among 3,000 of them 35 µs, where one of a batch takes 2.

    Args:
        producer: A ``confluent_kafka.Producer``.
    """

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._failure: str | None = None

    def write(self, topic: str, records: Iterable[tuple[bytes, bytes]]) -> None:
        """Queue *records*, each a key and a value; wait while librdkafka's queue is full."""
        unwritten = ({"key": key, "value": value} for key, value in records)
        while left := list(islice(unwritten, RECORDS_PER_BATCH)):
            while left := self._refused(topic, left):
                self._producer.poll(0.1)
            self._producer.poll(0)

    def _refused(self, topic: str, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Queue *records*; return those for which the queue had no room."""
        self._producer.produce_batch(topic, records, on_delivery=self._delivered)
        refused = [(one, error) for one in records if (error := one.pop("_error", None)) is not None]
        for _, error in refused:
            if error.code() != KafkaError._QUEUE_FULL:
                self._fail(topic, error)
        return [one for one, error in refused if error.code() == KafkaError._QUEUE_FULL]

    def flush(self) -> None:
        """Wait until every record is acknowledged.

        Raises:
            DeliveryError: One was not.
        """
        unacknowledged = self._producer.flush(FLUSH_TIMEOUT)
        if self._failure is not None:
            raise DeliveryError(self._failure)
        if unacknowledged:
            raise DeliveryError(f"{unacknowledged} records unacknowledged after {FLUSH_TIMEOUT:g} s")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._fail(str(message.topic()), error)

    def _fail(self, topic: str, error: KafkaError) -> None:
        self._failure = self._failure or f"{topic}: {error.str()} ({error.name()})"


GATHERED = 128 << 20
"""Alerts of which copies are gathered. [byte]"""


@dataclass
class GatheredCopies:
    """Writes the copies for a topic one after the other, so that Kafka takes them in one batch.

    Sent as their alerts come, those for a thousand topics are a batch each, which is half as quick.

    Args:
        writer: Takes them.
        most: Alerts of which copies are gathered; one that many filters want counts once. [byte]
    """

    writer: Writer
    most: int = GATHERED
    _copies: list[Record] = field(default_factory=list)
    _size: int = 0

    def write(self, one: Record) -> None:
        """Take a copy; write all where they are many."""
        if not self._copies or self._copies[-1].value is not one.value:
            self._size += len(one.value or b"")
        self._copies.append(one)
        if self._size > self.most:
            self.write_all()

    def write_all(self) -> None:
        """Queue what was gathered, by topic, in order within each.

        Raises:
            DeliveryError: An earlier record was lost.
        """
        copies, self._copies, self._size = self._copies, [], 0
        for one in sorted(copies, key=lambda one: one.topic):
            self.writer.write(
                one.topic, one.value, key=one.key, headers=one.headers, on_delivered=one.on_delivered
            )


class ControlProducer:
    """Writes control records to Kafka, for one thread; after a failure with a new client.

    The client is kept, and made before it is needed: it takes half a second until it can write.

    Args:
        bootstrap: Kafka's address.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producer: Producer | None = self._new_producer()
        self._known: set[str] = set()

    @contextmanager
    def writer(self, *topics: str) -> Iterator[Writer]:
        """Yield a writer; on leaving, its records are acknowledged.

        Args:
            topics: Those that are made where they are missing.

        Raises:
            DeliveryError: Kafka did not take something.
            KafkaException: Kafka does not answer.
        """
        try:
            self.ensure(*topics)
            self._producer = self._producer or self._new_producer()
            writer = Writer(self._producer)
            yield writer
            writer.flush()
        except BaseException:
            self._producer = None
            self._known.clear()
            raise

    def ensure(self, *topics: str) -> None:
        """Make those of *topics* that are missing; they are looked for once.

        Raises:
            KafkaException: Kafka refused one, or does not answer.
        """
        if missing := [topic for topic in topics if topic not in self._known]:
            ensure_topics(self._bootstrap, [settings(topic) for topic in missing])
            self._known.update(missing)

    def _new_producer(self) -> Producer:
        return kafka.producer(self._bootstrap, linger_ms=0)
