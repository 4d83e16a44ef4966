"""Kafka clients with the settings that decide "nothing lost", and the writer that latches errors.

Settings and their reasons: acks=all and idempotence lose and double nothing on a retry; the
partitioner is Java's, so that Python and Java put one key in one partition; a reader whose offset is
gone is told so instead of being moved to the end.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from nightwire.core.kafka.offsets import Watermarks
from nightwire.core.kafka.writer import DeliveryError as DeliveryError
from nightwire.core.kafka.writer import Headers as Headers
from nightwire.core.kafka.writer import Record as Record
from nightwire.core.kafka.writer import Writer as Writer
from nightwire.core.runtime.credentials import stack_keys
from nightwire.schemas.kafka_environment import environment as environment
from nightwire.schemas.kafka_environment import properties as properties
from nightwire.schemas.topics import TopicSettings

log = logging.getLogger("nightwire.kafka")

Answer = TypeVar("Answer")

MAX_MESSAGE = 4 << 20
"""Largest record on alert and event topics. [byte]  Real Rubin alerts reach 300 kB."""


def _log_fatal(error: KafkaError) -> None:
    """Say that a client is lost.

    Without somebody who hears of it, confluent-kafka raises a fatal `KafkaError` out of any call: it is no
    exception, and so nothing catches it.  The call that fails for it raises `KafkaException`.
    """
    if error.fatal():
        log.error("Kafka client lost: %s", error.str())


COMMON: dict[str, Any] = {
    "error_cb": _log_fatal,
    "reconnect.backoff.max.ms": 500,  # a broker that returns is found again at once
    "socket.keepalive.enable": True,
    "message.max.bytes": MAX_MESSAGE,
    "log_level": 2,  # what fails is raised; librdkafka's own lines would only double it
}
PRODUCER: dict[str, Any] = COMMON | {
    "acks": "all",
    "enable.idempotence": True,
    "partitioner": "murmur2_random",
    "compression.type": "lz4",  # see docs/decisions/0007
    "linger.ms": 5,
    "batch.size": 1 << 20,
    "queue.buffering.max.kbytes": 64 << 10,
    "delivery.timeout.ms": 120_000,  # longer than the restart of a single broker
}
CONSUMER: dict[str, Any] = COMMON | {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "fetch.queue.backoff.ms": 5,
    "queued.max.messages.kbytes": 64 << 10,
    "fetch.wait.max.ms": 100,
}

TRANSIENT_ERRORS = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
    }
)
"""What a reader sees while Kafka is away; librdkafka goes on by itself.  (``KafkaError.retriable`` speaks of
transactions alone.)"""

STARTUP_ERRORS = TRANSIENT_ERRORS | {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION}
"""The same, where a topic was just made, or its leader was just away."""


def identity(bootstrap: str) -> dict[str, str]:
    """Return ``KAFKA_*`` as properties; where they do not say who we are, the embedded stack's keys do.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``; the keys are used for their own Kafka alone.
    """
    known = properties()
    named = any(name.startswith(("sasl.", "security.")) for name in known)
    return known if named else stack_keys(bootstrap) | known


def principal(bootstrap: str) -> str:
    """Return the user name that Kafka at *bootstrap* will know us by; empty where none is set."""
    return identity(bootstrap).get("sasl.username", "")


def producer(bootstrap: str, **overrides: Any) -> Producer:
    """Return a producer that loses nothing: acks=all, idempotent, Java's partitioner.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        overrides: librdkafka properties with ``_`` for ``.``, such as ``linger_ms=0``.
    """
    return Producer(PRODUCER | identity(bootstrap) | {"bootstrap.servers": bootstrap} | _dotted(overrides))


def consumer(bootstrap: str, *, group: str | None = None, **overrides: Any) -> Consumer:
    """Return a consumer that never commits or skips by itself.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        group: Consumer group; without one, read by assignment, under a name that our rights cover.
        overrides: librdkafka properties with ``_`` for ``.``.
    """
    return Consumer(
        CONSUMER
        | identity(bootstrap)
        | {"bootstrap.servers": bootstrap, "group.id": group or _no_group(bootstrap)}
        | _dotted(overrides)
    )


def _no_group(bootstrap: str) -> str:
    """Return the name that librdkafka wants of a reader without a group: it asks who coordinates it."""
    who = principal(bootstrap)
    return f"{who}.reader-{os.getpid()}" if who else f"nightwire-{os.getpid()}"


def admin(bootstrap: str) -> AdminClient:
    """Return an admin client for *bootstrap*."""
    return AdminClient(COMMON | identity(bootstrap) | {"bootstrap.servers": bootstrap})


def _dotted(overrides: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in overrides.items()}


def read_to_end(
    bootstrap: str, topics: Sequence[str], *, patience: float = 30.0, settled: bool = False
) -> Iterator[Message]:
    """Yield every record that is in *topics* now, partition by partition, and stop.

    What was committed behind somebody else's open transaction is not readable yet, and not yielded.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        topics: Their names; one that does not exist has no records.
        patience: Longest wait for the next record. [s]
        settled: Wait for the end of transactions that are open now, so that nothing is left out.

    Raises:
        KafkaException: Kafka cannot be reached, or stopped answering.
    """
    reader = consumer(bootstrap, enable_partition_eof=True)
    try:
        ends = end_offsets_at(bootstrap, topics, unsettled=True) if settled else end_offsets(reader, topics)
        todo = {spot: end for spot, end in ends.items() if end > 0}
        reader.assign([TopicPartition(topic, part, OFFSET_BEGINNING) for topic, part in todo])
        yield from read_until(reader, todo, patience=patience)
    finally:
        reader.close()


def end_offsets_at(
    bootstrap: str, topics: Sequence[str], *, unsettled: bool = False
) -> dict[tuple[str, int], int]:
    """Return `end_offsets` by a client of its own; *unsettled*: what lies in open transactions too.

    Raises:
        KafkaException: Kafka cannot be reached.
    """
    reader = consumer(bootstrap, isolation_level="read_uncommitted" if unsettled else "read_committed")
    try:
        return end_offsets(reader, topics)
    finally:
        reader.close()


def headers_of(message: Message) -> dict[str, bytes]:
    """Return a record's headers, of equal names the last; one without a value is empty."""
    pairs: Any = message.headers() or ()
    return {name: value.encode() if isinstance(value, str) else value or b"" for name, value in pairs}


def end_offsets(reader: Consumer, topics: Sequence[str]) -> dict[tuple[str, int], int]:
    """Return the offset after the last record of each (topic, partition); empty ones are left out."""
    known = reader.list_topics(timeout=10).topics
    spots = [(topic, part) for topic in topics if topic in known for part in known[topic].partitions]
    found = {spot: watermarks(reader, *spot) for spot in spots}
    return {spot: end for spot, (low, end) in found.items() if end > low}


def watermarks(reader: Consumer, topic: str, partition: int, *, patience: float = 10.0) -> Watermarks:
    """Return a partition's first offset, and the one after its last; wait while Kafka is away.

    A partition that was just made has a leader in the metadata a moment before the leader knows it.  Where a
    leader has died, librdkafka asks again by what it remembers of the topic, for up to a quarter of an hour:
    so after each failure the topic is looked up anew.

    Raises:
        KafkaException: Kafka does not answer for *patience* [s], or there is no such partition.
    """

    def ask() -> tuple[int, int]:
        try:
            return reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=10, cached=False)
        except KafkaException as error:
            if error.args[0].code() in STARTUP_ERRORS:
                with suppress(KafkaException):
                    reader.list_topics(topic, timeout=10)
            raise

    return Watermarks(*retry_while_unavailable(ask, patience=patience))


def retry_while_unavailable(ask: Callable[[], Answer], *, patience: float = 10.0) -> Answer:
    """Return what *ask* does; ask again while Kafka is away, or does not know yet what was just made.

    Raises:
        KafkaException: Kafka refuses, or does not answer for *patience* [s].
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in STARTUP_ERRORS or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def read_until(
    reader: Consumer, ends: Mapping[tuple[str, int], int], *, patience: float = 30.0
) -> Iterator[Message]:
    """Yield what *reader*, assigned and with ``enable.partition.eof``, has before *ends*, and stop.

    Raises:
        KafkaException: Kafka stopped answering for *patience* [s].
    """
    todo = dict(ends)
    deadline = time.monotonic() + patience
    while todo:
        message = reader.poll(0.5)
        if message is None:
            if time.monotonic() > deadline:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer for {patience:g} s"))
            continue
        deadline = time.monotonic() + patience
        spot = (str(message.topic()), message.partition() or 0)
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            if error.code() not in TRANSIENT_ERRORS:
                raise KafkaException(error)
            continue
        end, offset = todo.get(spot), message.offset() or 0
        if error is None and end is not None and offset < end:
            yield message
        if end is not None and offset >= (end if error is not None else end - 1):
            del todo[spot]


TOPICS_A_REQUEST = 500
"""Topics made by one request: Kafka's controller writes them as one batch, of at most 10,000 records."""


def ensure_topics(bootstrap: str, topics: Sequence[TopicSettings], *, timeout: float = 30.0) -> None:
    """Create those of *topics* that are missing, and wait until they have leaders.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]`` of a real Kafka.
        topics: Name, partitions and configuration of each.
        timeout: Longest wait. [s]

    Raises:
        KafkaException: Kafka refused one, or could not be reached.
    """
    client = admin(bootstrap)
    existing = client.list_topics(timeout=timeout).topics
    missing = [item for item in topics if item.name not in existing]
    for first in range(0, len(missing), TOPICS_A_REQUEST):
        _create(client, missing[first : first + TOPICS_A_REQUEST], timeout)
    _await_leaders(client, [item.name for item in missing], timeout)


def _create(client: AdminClient, topics: Sequence[TopicSettings], timeout: float) -> None:
    """Create *topics*; one that is there by now is none too many."""
    wanted = [
        NewTopic(
            item.name,
            num_partitions=item.partitions,
            replication_factor=item.replication or -1,
            config=dict(item.config),
        )
        for item in topics
    ]
    for future in client.create_topics(wanted, operation_timeout=timeout).values():
        try:
            future.result(timeout)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def _await_leaders(client: AdminClient, names: Sequence[str], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    pending = set(names)
    while pending and time.monotonic() < deadline:
        known = client.list_topics(timeout=timeout).topics
        pending = {
            name
            for name in pending
            if name not in known or any(part.leader < 0 for part in known[name].partitions.values())
        }
        if pending:
            client.poll(0.05)
