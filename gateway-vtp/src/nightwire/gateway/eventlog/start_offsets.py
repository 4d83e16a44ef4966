"""Where a gateway begins to read, so that nothing is passed over and nothing accounted for twice."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.accounting import Account, read_accounts
from nightwire.core.kafka import TopicPartition, consumer, ensure_topics
from nightwire.gateway.eventlog.event import Positions
from nightwire.gateway.eventlog.event_index import EventIndex
from nightwire.gateway.eventlog.follower import accounted
from nightwire.gateway.eventlog.loop_producer import log_identity
from nightwire.gateway.settings.feed import feed_topics
from nightwire.gateway.settings.gateway import Settings
from nightwire.schemas.topics import ACCOUNTS, DEAD_LETTERS, VOEVENTS, VTP_POSITIONS
from nightwire.schemas.topics import settings as topic_settings

log = logging.getLogger(__name__)

Watermarks = Mapping[TopicPartition, tuple[int, int]]
"""First offset and the one after the last, per topic and partition."""


@dataclass(frozen=True)
class StartOffsets:
    """Where to begin.

    Attributes:
        start: What to read first, per topic and partition.
        live: What is delivered first: what comes after this start.
        accounted: What to account for first, per partition of `voevents`.
        oldest: The first record that Kafka still has.
        log: What tells this log from another one.
        written: Accounts that are in Kafka, where they are asked for.
    """

    start: Positions
    live: Positions
    accounted: dict[int, int]
    oldest: Positions
    log: str = ""
    written: Sequence[Account] = ()


def open_event_index(settings: Settings) -> EventIndex:
    """Return the index of hashes."""
    return EventIndex(settings.state / "events", settings.remembered_days)


def open_name_index(settings: Settings) -> EventIndex:
    """Return the index of IVORNs."""
    return EventIndex(settings.state / "names", settings.remembered_days)


def find_start_offsets(settings: Settings) -> StartOffsets:
    """Make the topics that are missing, and return where to begin.

    Raises:
        KafkaException: Kafka does not answer.
    """
    topics = feed_topics(settings.feeds)
    wanted = [topic_settings(name) for name in (*topics, ACCOUNTS, DEAD_LETTERS, VTP_POSITIONS)]
    ensure_topics(settings.bootstrap, wanted)
    identity = log_identity(settings.bootstrap, VOEVENTS)
    indexed, named = (_indexed(index(settings), identity) for index in (open_event_index, open_name_index))
    both = {part: min(indexed[part], named[part]) for part in indexed.keys() & named.keys()}
    written = read_accounts(settings.bootstrap) if settings.accounts or settings.gcn else []
    known = accounted(written) if settings.accounts else None
    reader = consumer(settings.bootstrap)
    try:
        marks = _watermarks(reader, topics)
    finally:
        reader.close()
    return replace(start_offsets(marks, both, known), log=identity, written=written)


def start_offsets(
    marks: Watermarks, indexed: Mapping[int, int], known: Mapping[int, int] | None
) -> StartOffsets:
    """Decide where to begin.  Pure.

    Args:
        marks: What the log holds.
        indexed: The next offset to index, per partition of `voevents`.
        known: The next one to account for; None where this gateway keeps no accounts.
    """
    live = {spot: high for spot, (_, high) in marks.items()}
    start, first = dict(live), {}
    for (topic, partition), (low, high) in marks.items():
        if topic != VOEVENTS:
            continue
        index_next = _within(indexed.get(partition, low), low, high)
        account_next = index_next if known is None else _within(known.get(partition, low), low, high)
        start[topic, partition] = min(index_next, account_next)
        first[partition] = account_next
    return StartOffsets(start, live, first, {spot: low for spot, (low, _) in marks.items()})


def _within(offset: int, low: int, high: int) -> int:
    """Return *offset*, or the log's first one where *offset* is not in it: expired, or of another log."""
    return offset if low <= offset <= high else low


def _indexed(index: EventIndex, identity: str) -> dict[int, int]:
    """Return the next offset of each partition to index."""
    if not index.follows(identity):
        log.warning("%s was of another log; it is made anew from this one", index.folder)
    return index.positions()


def _watermarks(reader: Consumer, topics: Sequence[str]) -> dict[TopicPartition, tuple[int, int]]:
    known = reader.list_topics(timeout=10).topics
    spots = [(topic, partition) for topic in topics for partition in known[topic].partitions]
    marks = {}
    for spot in spots:
        low, high = reader.get_watermark_offsets(TopicPartitionOffset(*spot), timeout=10, cached=False)
        marks[spot] = (int(low), int(high))
    return marks
