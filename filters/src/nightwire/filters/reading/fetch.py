"""Reading a range of one partition's offsets from Kafka, whole or not at all.

A range may never reach its last offset (a transaction's marker lies there, or records were
deleted), so the end of the partition and any later record end it too.
"""

import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset
from confluent_kafka.admin import AdminClient

from nightwire.core import kafka
from nightwire.core.kafka import END, FIRST, STARTUP_ERRORS, TopicPartition, list_offsets, watermarks
from nightwire.core.presence import ArchiveClient
from nightwire.filters.model.offsets import OffsetRange

PATIENCE = 60.0
"""Longest wait for the next record: longer than the restart of a single broker. [s]"""

TIMEOUT = 10.0
"""Longest wait for the answer to a question. [s]"""

STRIDE = 100
"""A gap of more offsets than this is not read, but skipped."""

WAIT_MS = 10
"""How long Kafka waits at a partition's end before it answers without records. [ms]"""

RECORDS_PER_POLL = 255
"""Records taken from librdkafka's queue at once."""


@dataclass
class ExpiredCount:
    """Offsets that retention had deleted before they were read."""

    count: int = 0


def range_consumer(bootstrap: str) -> Consumer:
    """Return a consumer for `fetch`; an owner may have one as well."""
    return kafka.consumer(bootstrap, enable_partition_eof=True, fetch_wait_max_ms=WAIT_MS)


def partition_bounds(
    client: AdminClient, partitions: Iterable[TopicPartition], *, earliest: bool = False
) -> dict[TopicPartition, int]:
    """Return the next offset of each partition (or its first), all asked for at once.

    A transaction that is still open is not counted: nobody could read it yet.

    Raises:
        KafkaException: Kafka does not answer.
    """
    found = list_offsets(client, partitions, FIRST if earliest else END, committed=True, timeout=TIMEOUT)
    return {partition: info.offset for partition, info in found.items()}


def fetch(
    consumer: Consumer,
    wanted: OffsetRange,
    expired: ExpiredCount | None = None,
    *,
    past: ArchiveClient | None = None,
    patience: float = PATIENCE,
) -> Iterator[list[Message]]:
    """Yield the records of *wanted*, some at a time, in order; waits out a Kafka that is away.

    Args:
        consumer: From `range_consumer`; it is assigned to the range, and to nothing afterwards.
        wanted: What to read.
        expired: Counts offsets that have expired; without one they are an error.
        past: The archive that has what has expired; None for none.
        patience: Longest wait for the next record. [s]

    Raises:
        KafkaException: Kafka was silent too long, or records are missing.
        HTTPError: The archive does not answer.
    """
    try:
        yield from _fetched(consumer, wanted, expired, past, patience)
    finally:
        consumer.unassign()  # it would go on asking for what comes behind the range


def _fetched(
    consumer: Consumer,
    wanted: OffsetRange,
    expired: ExpiredCount | None,
    past: ArchiveClient | None,
    patience: float,
) -> Iterator[list[Message]]:
    next_ = wanted.first
    _seek(consumer, wanted, next_)
    deadline = time.monotonic() + patience
    while next_ < wanted.end:
        found, failure, ended = _take(consumer, wanted)
        if found:
            next_ = max(next_, (found[-1].offset() or 0) + 1)
            deadline = time.monotonic() + patience
            if inside := [message for message in found if (message.offset() or 0) < wanted.end]:
                yield inside
        if ended >= wanted.end:
            return
        if failure is not None and failure.code() == KafkaError._AUTO_OFFSET_RESET:
            next_ = yield from _skip_expired(consumer, wanted, next_, expired, past, failure)
            deadline = time.monotonic() + patience
        elif failure is not None and failure.code() not in STARTUP_ERRORS:
            raise KafkaException(failure)
        if time.monotonic() > deadline:
            message = failure.str() if failure else "no records"
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{wanted}: {message} for {patience:g} s"))


def fetch_at(
    consumer: Consumer, partition: TopicPartition, offsets: Iterable[int], *, patience: float = PATIENCE
) -> Iterator[Message]:
    """Yield the records at *offsets* of one partition, in order, but for those that have expired.

    Raises:
        KafkaException: Kafka was silent for *patience* [s].
    """
    wanted = set(offsets)
    for near in offset_runs(sorted(wanted)):
        for messages in fetch(
            consumer, OffsetRange(*partition, near[0], near[-1] + 1), ExpiredCount(), patience=patience
        ):
            yield from (message for message in messages if message.offset() in wanted)


def offset_runs(offsets: Iterable[int]) -> list[list[int]]:
    """Return *offsets*, which are in order, in runs without a gap of more than `STRIDE`.  Pure."""
    found: list[list[int]] = []
    for offset in offsets:
        if found and offset - found[-1][-1] <= STRIDE:
            found[-1].append(offset)
        else:
            found.append([offset])
    return found


def _take(consumer: Consumer, wanted: OffsetRange) -> tuple[list[Message], KafkaError | None, int]:
    """Return the next records, the last error, and the partition's end if it was met, else -1."""
    first = consumer.poll(1.0)
    if first is None:
        return [], None, -1
    found: list[Message] = []
    failure, ended = None, -1
    for message in [first, *consumer.consume(RECORDS_PER_POLL, 0)]:
        error = message.error()
        if error is None:
            if (message.topic(), message.partition()) == (wanted.topic, wanted.partition):
                found.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            if (message.topic(), message.partition()) == (wanted.topic, wanted.partition):
                ended = message.offset() or 0
        else:
            failure = error
    return found, failure, ended


def _seek(consumer: Consumer, wanted: OffsetRange, offset: int) -> None:
    consumer.assign([TopicPartitionOffset(wanted.topic, wanted.partition, offset)])


def _skip_expired(
    consumer: Consumer,
    wanted: OffsetRange,
    next_: int,
    expired: ExpiredCount | None,
    past: ArchiveClient | None,
    failure: KafkaError,
) -> Generator[list[Message], None, int]:
    """Yield what the archive has of expired records; go on at the first that is still there."""
    first, _ = watermarks(consumer, wanted.topic, wanted.partition)
    if expired is None or first <= next_:
        raise KafkaException(failure)
    low = min(first, wanted.end)
    after, at = next_, -1
    while past is not None and at < after < low:
        at = after
        messages, after = past.records((wanted.topic, wanted.partition), range(at, low))
        yield messages
    expired.count += low - after
    _seek(consumer, wanted, low)
    return low
