"""The registry's log in Kafka: one partition of one topic, written by many, followed by each.

The only file of this room that talks to Kafka.
"""

import logging
import threading
from collections.abc import Callable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from nightwire.schemas.kafka_environment import properties
from nightwire.schemas.registry.store import UnavailableError
from nightwire.schemas.topics import MAX_MESSAGE, SCHEMAS, settings

log = logging.getLogger(__name__)

DELIVERY_TIMEOUT_MS = 5_000
POLL = 0.5  # [s]
LOST = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


class KafkaLog:
    """Append to the log, and follow it in a thread.

    Args:
        bootstrap: Kafka's address.
        on_record: Called in the follower's thread with the value of each record.
        on_restart: Called there before the log is read from its beginning.
        on_ready: Called there each time the end of the log is reached.

    Attributes:
        cluster_id: Kafka's id; None before it answered.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        on_record: Callable[[bytes], None],
        on_restart: Callable[[], None],
        on_ready: Callable[[], None],
    ) -> None:
        self._bootstrap = bootstrap
        self.cluster_id: str | None = None
        self._on_record, self._on_restart, self._on_ready = on_record, on_restart, on_ready
        self._stop, self._renew = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="schemas-follower", daemon=True)
        self._producer = Producer(
            _client(bootstrap)
            | {
                "acks": "all",
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "linger.ms": 0,
                "message.max.bytes": MAX_MESSAGE,
                "delivery.timeout.ms": DELIVERY_TIMEOUT_MS,
            }
        )

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following, and give up what is not acknowledged yet."""
        self._stop.set()
        self._thread.join(10)
        self._producer.flush(1)

    def alive(self) -> bool:
        """Whether the follower runs."""
        return self._thread.is_alive()

    def append(self, key: str, value: bytes) -> None:
        """Write a record and wait until Kafka has it.  One caller at a time.

        Raises:
            UnavailableError: It was not acknowledged; it may still turn up in the log.
        """
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: object) -> None:
            if error is not None:
                errors.append(error)

        try:
            self._producer.produce(SCHEMAS, value, key, partition=0, on_delivery=delivered)
        except (BufferError, KafkaException) as error:
            raise UnavailableError(f"Kafka at {self._bootstrap} does not take the record: {error}") from error
        waiting = self._producer.flush(DELIVERY_TIMEOUT_MS / 1000 + 1)
        if errors or waiting:
            why = errors[0].str() if errors else "no answer"
            raise UnavailableError(f"Kafka at {self._bootstrap} does not take the record: {why}")

    def renew(self) -> None:
        """Read from the beginning again, by a new client.

        A client of librdkafka that lived through a broker's restart was once seen to get nothing
        more.
        """
        log.warning("Kafka at %s gives us no records; reading the log anew", self._bootstrap)
        self._renew.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except KafkaException as error:
                log.warning("Kafka at %s: %s; trying again", self._bootstrap, error.args[0])
                self._stop.wait(1)

    def _follow(self) -> None:
        """Read the log from its beginning until told to stop or it is lost."""
        self.cluster_id = create_topic(self._bootstrap)
        self._renew.clear()
        with Consumer(
            _client(self._bootstrap)
            | {
                "group.id": "nightwire-schemas",  # librdkafka wants one; nothing is ever committed
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,  # says when all has been read
                "fetch.queue.backoff.ms": 5,
                "fetch.wait.max.ms": 100,
            }
        ) as consumer:
            self._on_restart()
            consumer.assign([TopicPartition(SCHEMAS, 0, OFFSET_BEGINNING)])
            self._read(consumer)

    def _read(self, consumer: Any) -> None:
        """Hand on record after record, until told to stop, or to begin anew."""
        while not (self._stop.is_set() or self._renew.is_set()):
            message = consumer.poll(POLL)
            if message is None:
                continue
            if error := message.error():
                self._heed(error)
            elif message.value() is not None:
                self._on_record(message.value())

    def _heed(self, error: Any) -> None:
        """Begin anew where the log is lost; other errors librdkafka gets over by itself.

        Raises:
            KafkaException: The log is not what it was.
        """
        if error.code() == KafkaError._PARTITION_EOF:
            self._on_ready()
        elif error.fatal() or error.code() in LOST:
            raise KafkaException(error)
        else:
            log.debug("Kafka: %s", error.str())


def _client(bootstrap: str) -> dict[str, Any]:
    """Return the settings of every client: Kafka's address and credentials (``KAFKA_*``)."""
    return {**properties(), "bootstrap.servers": bootstrap}


def create_topic(bootstrap: str) -> str | None:
    """Make the log's topic where it is missing; return Kafka's id.

    Raises:
        KafkaException: Kafka cannot be reached, or refuses.
    """
    admin = AdminClient(_client(bootstrap))
    cluster = admin.list_topics(timeout=5)
    found = None if cluster.cluster_id is None else str(cluster.cluster_id)
    if SCHEMAS in cluster.topics:
        return found
    wanted = settings(SCHEMAS)
    new = NewTopic(SCHEMAS, wanted.partitions, min(3, len(cluster.brokers)), config=dict(wanted.config))
    try:
        admin.create_topics([new], request_timeout=5)[SCHEMAS].result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    return found
