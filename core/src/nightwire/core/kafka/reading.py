"""Reading topics to their present ends."""

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.kafka.clients import TRANSIENT_ERRORS, consumer
from nightwire.core.kafka.offsets import TopicPartition, end_offsets, end_offsets_at


def read_to_end(
    bootstrap: str,
    topics: Sequence[str],
    *,
    patience: float = 30.0,
    settled: bool = False,
    since: datetime | None = None,
) -> Iterator[Message]:
    """Yield every record that is in *topics* now, partition by partition, and stop.

    Records behind an open transaction are not readable yet, and not yielded.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        topics: Their names; one that does not exist has no records.
        patience: Longest wait for the next record. [s]
        settled: Wait for the end of transactions that are open now, so that no record is left out.
        since: Leave out what lies before the first record of that time, or later; None: nothing.

    Raises:
        KafkaException: Kafka cannot be reached, or stopped answering.
    """
    with consumer(bootstrap, enable_partition_eof=True) as reader:
        ends = end_offsets_at(bootstrap, topics, unsettled=True) if settled else end_offsets(reader, topics)
        starts = [TopicPartitionOffset(*partition, OFFSET_BEGINNING) for partition in ends]
        if since is not None and starts:
            asked = [TopicPartitionOffset(*partition, round(since.timestamp() * 1000)) for partition in ends]
            starts = reader.offsets_for_times(asked, timeout=patience)
        reader.assign(starts)
        yield from read_until(reader, ends, patience=patience)


def read_until(
    reader: Consumer, ends: Mapping[TopicPartition, int], *, patience: float = 30.0
) -> Iterator[Message]:
    """Yield the records of an assigned *reader* that lie before *ends*, and stop.

    Args:
        reader: Its partitions are assigned; it has ``enable.partition.eof``.
        ends: The offset after the last record that is wanted, by partition.
        patience: Longest wait for the next record. [s]

    Raises:
        KafkaException: Kafka stopped answering.
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
        partition = (str(message.topic()), message.partition() or 0)
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            if error.code() not in TRANSIENT_ERRORS:
                raise KafkaException(error)
            continue
        end, offset = todo.get(partition), message.offset() or 0
        if error is None and end is not None and offset < end:
            yield message
        if end is not None and offset >= (end if error is not None else end - 1):
            del todo[partition]


def headers_of(message: Message) -> dict[str, bytes]:
    """Return a record's headers; of equal names the last counts, a null value is empty."""
    pairs: Any = message.headers() or ()
    return {name: value.encode() if isinstance(value, str) else value or b"" for name, value in pairs}
