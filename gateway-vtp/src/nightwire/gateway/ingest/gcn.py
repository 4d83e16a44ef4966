"""What of GCN's Kafka is wanted, and how far it was read.  Pure: no Kafka, no clock.

Accounts are the marks: one record per range of GCN's offsets says what became of it, and the next start goes
on behind the last one.  They lie in our Kafka, beside the events.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from nightwire.core.accounting import Account
from nightwire.core.kafka import TopicPartition

STAGE = "gcn"
"""The stage of these accounts."""
DELIVERED, DEAD, DUPLICATE, EXPIRED = "delivered", "dead", "duplicate", "expired"
"""What becomes of a record: an event in `voevents`, no event, a known one, deleted too early."""
RANGE = 10_000
"""Records after which an account is closed and the next range begins."""


def source_name(cluster: str, topic: str) -> str:
    """Return the name of *topic* in accounts: a cluster that was made anew has offsets of its own."""
    return f"{STAGE}/{cluster}/{topic}"


def wanted(topics: Iterable[str], patterns: Sequence[str]) -> set[str]:
    """Return those of *topics* that one of *patterns* matches."""
    return {topic for topic in topics if any(fnmatchcase(topic, pattern) for pattern in patterns)}


class GcnOffsets:
    """How far each partition was read, and what became of its records.

    Args:
        accounts: What earlier runs wrote.
    """

    def __init__(self, accounts: Iterable[Account] = ()) -> None:
        self._next: dict[TopicPartition, int] = {}
        self._open: dict[TopicPartition, Account] = {}
        self._changed: set[TopicPartition] = set()
        for one in accounts:
            if one.stage == STAGE:
                spot = (one.source, one.partition)
                self._next[spot] = max(self._next.get(spot, 0), one.last + 1)

    def position(self, spot: TopicPartition) -> int | None:
        """Return the next offset to read of *spot*; None where it was never read."""
        return self._next.get(spot)

    def follows(self, topic: str, patterns: Sequence[str]) -> bool:
        """Say whether a pattern that wants *topic* was in use before, so that the topic is new at GCN."""
        seen = {source.split("/", 2)[2] for source, _ in self._next}
        return any(fnmatchcase(topic, one) and wanted(seen, [one]) for one in patterns)

    def begin(self, spot: TopicPartition, offset: int) -> None:
        """Note that *spot* is read from *offset* on, whatever was before."""
        self._next[spot] = offset
        self._open[spot] = Account(STAGE, *spot, offset, offset - 1, 0)
        self._changed.add(spot)

    def note(self, spot: TopicPartition, last: int, outcome: str, count: int = 1) -> None:
        """Note what became of *count* records of *spot*, up to the offset *last*."""
        found = self._open.get(spot)
        if found is None or found.read >= RANGE:
            found = Account(STAGE, *spot, self._next[spot], last, 0)
        self._open[spot] = _counted(replace(found, last=last, read=found.read + count), outcome, count)
        self._next[spot] = last + 1
        self._changed.add(spot)

    def changed(self) -> list[Account]:
        """Return the accounts that changed since the last call."""
        changed = [self._open[spot] for spot in sorted(self._changed)]
        self._changed.clear()
        return changed


def _counted(account: Account, outcome: str, count: int) -> Account:
    if outcome == DELIVERED:
        return replace(account, delivered=account.delivered + count)
    if outcome == DEAD:
        return replace(account, dead_lettered=account.dead_lettered + count)
    before = account.rejected.get(outcome, 0)
    return replace(account, rejected={**account.rejected, outcome: before + count})
