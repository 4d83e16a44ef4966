"""The accounts of a decision.  Pure.

For each range, read = delivered + rejected + capped + dead-lettered; in it for each filter,
evaluated = passed + rejected + capped + faulted.

An alert of which a transform makes nothing, for it is malformed where no filter looked, is a fault
of that filter; it counts as dead-lettered where nobody else got it.

What a `best` filter holds counts as capped: it passed and is not sent.  When it is sent, the
account of the range in which it was read is written once more, under the same key, with what was
sent since; so an account adds up at any time, and no range is counted twice.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nightwire.core.accounting import Account, FilterClasses
from nightwire.core.kafka import TopicPartition
from nightwire.filters.decision.decision import Decision, DeliveryItem
from nightwire.filters.model.live_filter import FilterVersion
from nightwire.filters.model.messages import RangeCounts
from nightwire.filters.model.offsets import RecordPosition

STAGE = "filters"
REJECTED = "no-filter-passed"
EXPIRED = "expired"
UNJUDGED = "too-old-for-the-slow-lane"
"""Reasons for which a record went nowhere: nobody wanted it; retention deleted it before we read
it; a slow lane was too far behind to judge it."""

SLOW_STAGE = "filters-slow"
"""The stage of slow lanes, whose sources name the lane: ``filters-slow/<lane>/<topic>``."""


@dataclass(frozen=True)
class Unsent:
    """Alerts and copies that were decided to be sent, and could not be.

    Attributes:
        lost: Positions of alerts that expired between the decision and their sending.
        malformed: Copies that a transform could not make, for their alert is malformed where no
            filter looked: its position, and the transform, ``owner/name``.  They are dead-lettered.
    """

    lost: Collection[RecordPosition] = frozenset()
    malformed: Collection[tuple[RecordPosition, str]] = frozenset()

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.lost or self.malformed)

    def of(self, positions: Collection[RecordPosition]) -> "Unsent":
        """Return the part of it at *positions*."""
        return Unsent(
            frozenset(one for one in self.lost if one in positions),
            frozenset(one for one in self.malformed if one[0] in positions),
        )

    def __or__(self, other: "Unsent") -> "Unsent":
        """Return the union of both."""
        return Unsent({*self.lost, *other.lost}, {*self.malformed, *other.malformed})


ALL_SENT = Unsent()


def accounts(
    decision: Decision, later: Iterable[DeliveryItem] = (), unsent: Unsent = ALL_SENT
) -> list[Account]:
    """Return the account of each range of one batch.

    Args:
        decision: What was done.
        later: What later batches sent of what this one held.
        unsent: What could not be sent.
    """
    sent: dict[TopicPartition, dict[RecordPosition, list[str]]] = {}
    for item in [*decision.items, *later]:
        position = item.alert.position
        keys = sent.setdefault(position[:2], {}).setdefault(position, [])
        keys += [one.key for one in item.passes]
    return [
        _account(
            one, _within(one, sent.get((one.range.topic, one.range.partition), {})), unsent, decision.versions
        )
        for one in decision.counts
    ]


def slow_account(account: Account, lane: str) -> Account:
    """Return an account as one of a slow lane."""
    return replace(account, stage=SLOW_STAGE, source=f"{SLOW_STAGE}/{lane}/{account.source}")


def _within(one: RangeCounts, sent: Mapping[RecordPosition, list[str]]) -> Mapping[RecordPosition, list[str]]:
    return {at: keys for at, keys in sent.items() if one.range.first <= at[2] < one.range.end}


def _account(
    one: RangeCounts,
    wanted: Mapping[RecordPosition, Sequence[str]],
    unsent: Unsent,
    versions: Sequence[FilterVersion],
) -> Account:
    there = {at: keys for at, keys in wanted.items() if at not in unsent.lost}
    bad = [(at, key) for at, key in unsent.malformed if key in there.get(at, ())]
    malformed = Counter(key for _, key in bad)
    sent = Counter(key for keys in there.values() for key in keys) - malformed
    nobodys = sum(len(there[at]) == number for at, number in Counter(at for at, _ in bad).items())
    lost = len(wanted) - len(there)
    rejected = {
        REJECTED: one.read - one.undecodable - one.passed_alerts,
        EXPIRED: one.expired + lost,
        UNJUDGED: one.unjudged,
    }
    return Account(
        stage=STAGE,
        source=one.range.topic,
        partition=one.range.partition,
        first=one.range.first,
        last=one.range.end - 1,
        read=one.read + one.expired + one.unjudged,
        delivered=len(there) - nobodys,
        rejected={reason: count for reason, count in rejected.items() if count},
        capped=one.passed_alerts - len(wanted),
        dead_lettered=one.undecodable + nobodys,
        filters=dict(_classes(one, sent, malformed, versions)),
    )


def _classes(
    one: RangeCounts, sent: Mapping[str, int], malformed: Mapping[str, int], versions: Sequence[FilterVersion]
) -> Iterable[tuple[str, FilterClasses]]:
    for number, evaluated, passed, faulted in zip(
        one.filters, one.evaluated, one.passed, one.faulted, strict=True
    ):
        key, _ = versions[number]
        copies, bad = sent.get(key, 0), malformed.get(key, 0)
        rejected, capped = evaluated - passed - faulted, passed - copies - bad
        yield key, FilterClasses(evaluated, copies, rejected, capped, faulted + bad)
