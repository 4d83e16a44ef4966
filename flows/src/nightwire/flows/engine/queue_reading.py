"""What readers of queues share: offsets, accounts, and transactional producers."""

import logging
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.accounting import OffsetAccounts, read_accounts
from nightwire.core.kafka import TRANSIENT_ERRORS, GroupOffsets, TopicPartition, fenced_producer

log = logging.getLogger("nightwire.flows")

BATCH = 500
"""Most records of a transaction."""
POLL = 0.05
"""Longest wait for records, and so until a new plan is seen. [s]"""
TRANSACTION_TIMEOUT = 10_000
"""Time after which Kafka aborts the transaction of a crashed worker. [ms]"""


def first_retained(one: TopicPartitionOffset, low: int) -> int:
    """Return the first offset from *one* on that Kafka has, whose oldest is *low*; log a gap."""
    if 0 <= one.offset < low:
        here = f"{one.topic}/{one.partition}"
        log.warning("%s: Kafka has forgotten offsets %d to %d, unread", here, one.offset, low - 1)
    return int(max(low, one.offset))


def transactional_producer(bootstrap: str, name: str, client: Mapping[str, Any] | None = None) -> Producer:
    """Return a producer of the transactional id *name*, which fences off its predecessor."""
    more = {"client": client, "linger_ms": 1}
    return fenced_producer(bootstrap, name, longest_ms=TRANSACTION_TIMEOUT, patience=30, **more)


def without_errors(messages: list[Message]) -> list[Message]:
    """Return those of *messages* that are records, no transient errors.

    Raises:
        KafkaException: One is an error that is not transient.
    """
    for one in messages:
        error = one.error()
        if error is not None and error.code() not in {*TRANSIENT_ERRORS, KafkaError.UNKNOWN_TOPIC_OR_PART}:
            raise KafkaException(error)
    return [one for one in messages if one.error() is None]


def partition_of(message: Message) -> TopicPartition:
    """Return topic and partition of *message*."""
    return str(message.topic()), message.partition() or 0


def queue_accounts(bootstrap: str, queue: str, position: int, end: int) -> OffsetAccounts:
    """Return the accounts of the reader of *queue*, who goes on at *position*.

    Offsets that they hold are not counted again, unless some lie behind *end*, the queue's: then
    they are of a deleted queue of that name.
    """
    counted = [one for one in read_accounts(bootstrap) if one.stage == queue]
    known = [] if any(one.last >= end for one in counted) else counted
    return OffsetAccounts(queue, known, positions={(queue, 0): position})


def resume_queues(group_offsets: GroupOffsets, known: list[TopicPartitionOffset]) -> None:
    """Move offsets of queues in *known* to the greatest that any reader has committed.

    The flow's group reads a stone's queue, a group of its own a terminal's: one that becomes the
    other goes on.
    """
    for one in known:
        kind, _, names = one.topic.partition(".")
        if kind != "flow":
            continue
        for group in (f"flow.{names.partition('.')[0]}", one.topic):
            found = group_offsets.committed(group, [(one.topic, one.partition)])
            one.offset = max(one.offset, *found.values(), -1)
