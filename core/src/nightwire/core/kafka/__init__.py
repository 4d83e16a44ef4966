"""Kafka clients with the settings that decide "nothing lost", offsets, the writer, topics."""

from nightwire.core.kafka.clients import (
    CONSUMER,
    MAX_MESSAGE,
    PRODUCER,
    REFUSALS,
    STARTUP_ERRORS,
    TRANSIENT_ERRORS,
    Principal,
    admin,
    asks_for_passwords,
    cluster_id,
    consumer,
    identity,
    login,
    principal,
    producer,
    retry_while_unavailable,
    speaker,
    speaking_for,
)
from nightwire.core.kafka.entry import answering, enter
from nightwire.core.kafka.fetching import MissingError, RecordFetcher
from nightwire.core.kafka.group_offsets import GroupOffsets
from nightwire.core.kafka.offset_tracker import OffsetTracker
from nightwire.core.kafka.offsets import (
    END,
    FIRST,
    NEWEST,
    TopicPartition,
    Watermarks,
    all_watermarks,
    check_rights,
    end_offsets,
    end_offsets_at,
    list_offsets,
    watermarks,
)
from nightwire.core.kafka.reading import headers_of, read_to_end, read_until
from nightwire.core.kafka.table_follower import TableFollower
from nightwire.core.kafka.topics import ensure_topics
from nightwire.core.kafka.writer import DeliveryError, Headers, Record, Writer, produce
from nightwire.schemas.kafka_environment import environment, properties

__all__ = [
    "CONSUMER",
    "END",
    "FIRST",
    "MAX_MESSAGE",
    "NEWEST",
    "PRODUCER",
    "REFUSALS",
    "STARTUP_ERRORS",
    "TRANSIENT_ERRORS",
    "DeliveryError",
    "GroupOffsets",
    "Headers",
    "MissingError",
    "OffsetTracker",
    "Principal",
    "Record",
    "RecordFetcher",
    "TableFollower",
    "TopicPartition",
    "Watermarks",
    "Writer",
    "admin",
    "all_watermarks",
    "answering",
    "asks_for_passwords",
    "check_rights",
    "cluster_id",
    "consumer",
    "end_offsets",
    "end_offsets_at",
    "ensure_topics",
    "enter",
    "environment",
    "headers_of",
    "identity",
    "list_offsets",
    "login",
    "principal",
    "produce",
    "producer",
    "properties",
    "read_to_end",
    "read_until",
    "retry_while_unavailable",
    "speaker",
    "speaking_for",
    "watermarks",
]
