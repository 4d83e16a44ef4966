"""What of GCN's Kafka is wanted, and what became of its records.  Pure: no Kafka, no clock.

Accounts say how far GCN's topics were read: one record per range of its offsets, in our Kafka,
beside the events; the next start goes on behind the last one.
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from nightwire.core.accounting import OffsetAccounts
from nightwire.core.kafka import TopicPartition

STAGE = "gcn"
"""The stage of these accounts."""
DELIVERED, DEAD_LETTERED = "delivered", "dead-lettered"
DUPLICATE, EXPIRED = "duplicate", "expired"
"""What becomes of a record: an event in `voevents`, none, a known one, deleted unread."""


def source_name(cluster: str, topic: str) -> str:
    """Return the name of *topic* in accounts: a cluster that was made anew has its own offsets."""
    return f"{STAGE}/{cluster}/{topic}"


def wanted(topics: Iterable[str], patterns: Sequence[str]) -> set[str]:
    """Return those of *topics* that one of *patterns* matches."""
    return {topic for topic in topics if any(fnmatchcase(topic, pattern) for pattern in patterns)}


def is_new_topic(topic: str, patterns: Sequence[str], sources: Iterable[TopicPartition]) -> bool:
    """Say whether *topic* is new at GCN: a pattern that matches it was in use before.

    Args:
        topic: A topic of GCN that was never read.
        patterns: Those in use now.
        sources: What was read before, by its names in accounts.
    """
    seen = {source.split("/", 2)[2] for source, _ in sources}
    return any(fnmatchcase(topic, one) and wanted(seen, [one]) for one in patterns)


def count_outcome(
    accounts: OffsetAccounts, source: TopicPartition, last: int, outcome: str, records: int = 1
) -> None:
    """Account for the next *records* of *source*, up to the offset *last*."""
    if outcome == DELIVERED:
        accounts.count(source, last, records, delivered=records)
    elif outcome == DEAD_LETTERED:
        accounts.count(source, last, records, dead_lettered=records)
    else:
        accounts.count(source, last, records, rejected={outcome: records})
