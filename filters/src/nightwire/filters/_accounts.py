"""The accounts of what was decided: per range, read = delivered + rejected + capped + dead-lettered, and per
filter evaluated = passed + rejected + capped + faulted.  Pure.

What a `best` filter holds counts as capped: it passed and is not sent.  When it is sent, the account of
the range in which it was read is written once more, under the same key, with what was sent since; so an
account adds up at any time, and no range is counted twice.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from nightwire.core.accounts import Account, FilterClasses
from nightwire.filters._decision import Decision, Named, Pick
from nightwire.filters._offsets import Spot
from nightwire.filters._rows import Counts

STAGE = "filters"
REJECTED = "no-filter-passed"
EXPIRED = "expired"
"""Reasons for which a record went nowhere: nobody wanted it; retention deleted it before we read it."""

Place = tuple[str, int, int]
"""Topic, partition, offset of an alert."""


def accounts(decision: Decision, later: Iterable[Pick] = (), lost: Iterable[Place] = ()) -> list[Account]:
    """Return the account of each range of one batch.

    Args:
        decision: What was done.
        later: What later batches sent of what this one held.
        lost: Picks that expired between the decision and their sending.
    """
    gone = set(lost)
    by_spot: dict[Spot, dict[Place, list[str]]] = {}
    for pick in [*decision.picks, *later]:
        place = pick.hit[:3]
        keys = by_spot.setdefault(place[:2], {}).setdefault(place, [])
        keys += [one.key for one in pick.passes]
    return [
        _account(
            one, _within(one, by_spot.get((one.range.topic, one.range.partition), {})), gone, decision.judges
        )
        for one in decision.counts
    ]


def _within(one: Counts, picked: Mapping[Place, list[str]]) -> Mapping[Place, list[str]]:
    return {place: keys for place, keys in picked.items() if one.range.first <= place[2] < one.range.end}


def _account(
    one: Counts, picked: Mapping[Place, Sequence[str]], gone: set[Place], judges: Sequence[Named]
) -> Account:
    lost = sum(place in gone for place in picked)
    sent = Counter(key for place, keys in picked.items() if place not in gone for key in keys)
    rejected = {REJECTED: one.read - one.dead - one.hits, EXPIRED: one.gone + lost}
    return Account(
        stage=STAGE,
        source=one.range.topic,
        partition=one.range.partition,
        first=one.range.first,
        last=one.range.end - 1,
        read=one.read + one.gone,
        delivered=len(picked) - lost,
        rejected={reason: count for reason, count in rejected.items() if count},
        capped=one.hits - len(picked),
        dead_lettered=one.dead,
        filters=dict(_classes(one, sent, judges)),
    )


def _classes(
    one: Counts, sent: Mapping[str, int], judges: Sequence[Named]
) -> Iterable[tuple[str, FilterClasses]]:
    for number, evaluated, passed, faulted in zip(
        one.judges, one.evaluated, one.passed, one.faulted, strict=True
    ):
        key, _ = judges[number]
        copies = sent.get(key, 0)
        yield (
            key,
            FilterClasses(evaluated, copies, evaluated - passed - faulted, passed - copies, faulted),
        )
