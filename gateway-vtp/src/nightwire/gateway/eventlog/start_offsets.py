"""Where a gateway begins to read, so that no record is skipped and none accounted for twice."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from confluent_kafka import TopicCollection

from nightwire.core.accounting import Account, read_accounts
from nightwire.core.kafka import TopicPartition, admin, consumer, ensure_topics, watermarks
from nightwire.gateway.eventlog.accounts import STAGE
from nightwire.gateway.eventlog.event import Positions
from nightwire.gateway.eventlog.event_index import EventIndex
from nightwire.gateway.eventlog.settings import EventLogSettings
from nightwire.schemas.topics import ACCOUNTS, DEAD_LETTERS, VOEVENTS, VTP_POSITIONS
from nightwire.schemas.topics import settings as topic_settings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StartOffsets:
    """Where to begin.

    Attributes:
        start: The first record to read, per topic and partition.
        live: The first record to deliver: what comes after this start.
        accounted: The first record to account for, per partition of `voevents`.
        oldest: The first record that Kafka still has.
        log: Identifies this log among others.
        written: Accounts that are in Kafka, where they are asked for.
    """

    start: Positions
    live: Positions
    accounted: dict[int, int]
    oldest: Positions
    log: str = ""
    written: Sequence[Account] = ()


def open_event_index(settings: EventLogSettings) -> EventIndex:
    """Return the index of hashes."""
    return EventIndex(settings.state / "events", settings.remembered_days)


def open_indexes(settings: EventLogSettings) -> tuple[EventIndex, EventIndex, EventIndex]:
    """Return the indexes of hashes, of IVORNs, and of alerts that met a feed's condition."""
    names, alerts = (
        EventIndex(settings.state / one, settings.remembered_days) for one in ("names", "alerts")
    )
    return open_event_index(settings), names, alerts


def find_start_offsets(settings: EventLogSettings, *, with_accounts: bool) -> StartOffsets:
    """Make the topics that are missing, and return where to begin.

    Args:
        settings: The log.
        with_accounts: Read the accounts in Kafka in any case.

    Raises:
        KafkaException: Kafka does not answer.
    """
    wanted = [topic_settings(name) for name in (*settings.topics, ACCOUNTS, DEAD_LETTERS, VTP_POSITIONS)]
    ensure_topics(settings.bootstrap, wanted)
    identity = log_identity(settings.bootstrap, VOEVENTS)
    indexed, named, _ = (_indexed(index, identity) for index in open_indexes(settings))
    both = {part: min(indexed[part], named[part]) for part in indexed.keys() & named.keys()}
    written = read_accounts(settings.bootstrap) if settings.accounts or with_accounts else []
    known = accounted(written) if settings.accounts else None
    with consumer(settings.bootstrap) as reader:
        parts = reader.list_topics(timeout=10).topics
        held = {
            (one, part): watermarks(reader, one, part)
            for one in settings.topics
            for part in parts[one].partitions
        }
    return replace(start_offsets(held, both, known), log=identity, written=written)


def start_offsets(
    held: Mapping[TopicPartition, tuple[int, int]],
    indexed: Mapping[int, int],
    known: Mapping[int, int] | None,
) -> StartOffsets:
    """Decide where to begin.  Pure.

    Args:
        held: The first offset that the log holds, and the one after the last.
        indexed: The next offset to index, per partition of `voevents`.
        known: The next one to account for; None where this gateway keeps no accounts.
    """
    live = {topic_partition: high for topic_partition, (_, high) in held.items()}
    start, first = dict(live), {}
    for (topic, partition), (low, high) in held.items():
        if topic != VOEVENTS:
            continue
        index_next = _within(indexed.get(partition, low), low, high)
        account_next = index_next if known is None else _within(known.get(partition, low), low, high)
        start[topic, partition] = min(index_next, account_next)
        first[partition] = account_next
    return StartOffsets(
        start, live, first, {topic_partition: low for topic_partition, (low, _) in held.items()}
    )


def accounted(accounts: Iterable[Account]) -> dict[int, int]:
    """Return the next offset of `voevents` to account for, per partition."""
    ends: dict[int, int] = {}
    for one in accounts:
        if (one.stage, one.source) == (STAGE, VOEVENTS):
            ends[one.partition] = max(ends.get(one.partition, 0), one.last + 1)
    return ends


def log_identity(bootstrap: str, topic: str) -> str:
    """Return an identity of *topic* that changes where it is made anew, or is on another cluster.

    Raises:
        KafkaException: Kafka cannot be reached, or has no such topic.
    """
    client = admin(bootstrap)
    described = client.describe_topics(TopicCollection([topic]), request_timeout=10)[topic].result(15)
    cluster = client.list_topics(topic, timeout=10).cluster_id
    return f"{cluster}/{described.topic_id}"


def _within(offset: int, low: int, high: int) -> int:
    """Return *offset*, or *low* where it is outside of the log: expired, or of another log."""
    return offset if low <= offset <= high else low


def _indexed(index: EventIndex, identity: str) -> dict[int, int]:
    """Return the next offset of each partition to index."""
    if not index.follows(identity):
        log.warning("%s was of another log; it is made anew from this one", index.folder)
    return index.positions()
