"""The tasks of the Spark source `nightwire`, and its questions to Kafka and the registry."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice
from typing import Any, NamedTuple

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from nightwire.core import kafka
from nightwire.core.kafka import TopicPartition, list_offsets, watermarks
from nightwire.core.runtime import find_endpoints
from nightwire.filters.model.offsets import OffsetRange
from nightwire.filters.reading.fetch import TIMEOUT, fetch, partition_bounds
from nightwire.filters.spark.options import AlertOptions, WantedColumns
from nightwire.schemas import AlertDecoder, DecodeError, SchemaError, SchemaRegistry, sim_alert_schema

RECORDS_PER_BATCH = 500
"""Records in one Arrow batch, at most."""
LOOK_BACK = 16
"""Offsets at the end of a partition among which an alert is looked for."""


@dataclass(frozen=True)
class AlertTask:
    """The ranges that one Spark task reads.

    Attributes:
        options: Of the source.
        schema: As which all alerts are read.
        work: The ranges.
    """

    options: AlertOptions
    schema: Mapping[str, Any]
    work: tuple[OffsetRange, ...]


def run_task(task: AlertTask) -> Iterator[pa.RecordBatch]:
    """Yield the alerts of *task* as columns.

    Raises:
        SchemaError: A record cannot be read, and should not be left out; names topic, partition and
            offset.
        KafkaException: Records are missing, or Kafka is away for long.
    """
    wanted = WantedColumns(task.options.fields, task.options.survey, task.schema)
    consumer, _, registry = clients(task.options.bootstrap, task.options.registry)
    decoder = AlertDecoder(registry, reader=task.schema, survey=task.options.survey)
    for one in task.work:
        messages = chain.from_iterable(fetch(consumer, one))
        while some := list(islice(messages, RECORDS_PER_BATCH)):
            found = decoder.columns([message.value() or b"" for message in some], wanted.paths)
            if found.faults and not task.options.drop:
                raise SchemaError(_error_text(some, found.faults))
            yield pa.RecordBatch.from_arrays(wanted.columns(found.batch), schema=wanted.arrow)


def _error_text(messages: Sequence[Message], faults: Mapping[int, Exception]) -> str:
    at, error = next(iter(faults.items()))
    one = messages[at]
    return (
        f"{one.topic()}[{one.partition()}] offset {one.offset()} cannot be read: {error}; "
        "option('mode', 'DROPMALFORMED') leaves such records out"
    )


class Clients(NamedTuple):
    """The clients of Kafka and of the registry that a process keeps."""

    consumer: Consumer
    admin: AdminClient
    registry: SchemaRegistry


@lru_cache(maxsize=4)
def clients(bootstrap: str | None, registry: str | None) -> Clients:
    """Return the clients; None is the address of the environment, else of the embedded stack."""
    ends = find_endpoints(bootstrap, registry)
    consumer = kafka.consumer(ends.kafka, enable_partition_eof=True)
    schemas = SchemaRegistry(ends.schema_registry, cluster_id=partial(kafka.cluster_id, ends.kafka))
    return Clients(consumer, kafka.admin(ends.kafka), schemas)


def topic_partitions(options: AlertOptions) -> list[TopicPartition]:
    """Return the partitions of the topic.

    Raises:
        KafkaException: There is no such topic, or Kafka does not answer.
    """
    consumer = clients(options.bootstrap, options.registry).consumer
    found = consumer.list_topics(options.topic, timeout=TIMEOUT).topics[options.topic]
    if found.error is not None or not found.partitions:
        message = f"there is no topic {options.topic}"
        raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, message))
    return [(options.topic, partition) for partition in sorted(found.partitions)]


def positions_at(options: AlertOptions, where: str | int) -> dict[TopicPartition, int]:
    """Return the offsets of ``earliest``, ``latest`` or a time. [ms since 1970, UTC]"""
    client = clients(options.bootstrap, options.registry).admin
    partitions = topic_partitions(options)
    if isinstance(where, str):
        return partition_bounds(client, partitions, earliest=where == "earliest")
    spec = OffsetSpec.for_timestamp(where)
    found = list_offsets(client, partitions, spec, committed=True, timeout=TIMEOUT)
    ends = partition_bounds(client, partitions)
    return {one: ends[one] if info.offset < 0 else info.offset for one, info in found.items()}


def newest_schema(options: AlertOptions) -> Mapping[str, Any]:
    """Return the schema of the newest alert in the topic; of an empty topic, that which nightwire
    knows.

    Raises:
        SchemaError: There is no readable alert, and nightwire has no schema of that survey.
    """
    consumer, _, registry = clients(options.bootstrap, options.registry)
    decoder = AlertDecoder(registry)
    newest = sorted(
        _last_records(consumer, topic_partitions(options)), key=lambda one: one.timestamp()[1], reverse=True
    )
    for message in newest:
        with suppress(DecodeError):
            return decoder.decode(message.value() or b"").schema
    if options.survey == "sim":
        return sim_alert_schema()
    raise SchemaError(f"topic {options.topic} holds no alerts: columns are known when the first is there")


def _last_records(consumer: Consumer, partitions: Sequence[TopicPartition]) -> Iterator[Message]:
    """Yield each partition's last records, and its first: the last may be transactions' markers."""
    for topic, partition in partitions:
        low, high = watermarks(consumer, topic, partition)
        for first, end in ((low, min(high, low + 1)), (max(low, high - LOOK_BACK), high)):
            if first < end:
                yield from chain.from_iterable(fetch(consumer, OffsetRange(topic, partition, first, end)))
