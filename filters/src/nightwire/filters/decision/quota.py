"""The quota of a filter in a visit: at most so many alerts, its cap.  Pure.

A filter of choice `first` admits alerts in the order of Kafka's timestamp, partition, offset, batch
by batch.  One of choice `best` holds the alerts of highest rank until the visit is over.  Alerts
are counted by their ids: the same alert sent twice counts once.  A late alert is admitted if the
quota is not used up.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from nightwire.core.kafka import TopicPartition
from nightwire.filters.model.messages import PassedAlert
from nightwire.filters.model.offsets import Visit, VisitEnds

VISITS_REMEMBERED = 32
"""Visits of a survey whose quotas are remembered; an alert later than that begins a new count."""

Ids = frozenset[str]
NO_IDS: Ids = frozenset()

ADMITTED, DUPLICATE, OVERFLOWED, HELD = 0, 1, 2, 3
"""What becomes of a pass: it is admitted; it is a copy of an alert that was; the quota is used up;
or a `best` filter holds it until the visit is over."""


@dataclass(frozen=True)
class Candidate:
    """An alert that passed a `best` filter in batch number *batch*."""

    alert: PassedAlert
    key: str
    version: int
    rank: float | None
    batch: int

    @property
    def rank_key(self) -> tuple[float, tuple[int, str, int, int]]:
        """Sorts candidates, the best first: by rank, those without a rank last; then by time."""
        unranked = self.rank is None or math.isnan(self.rank)
        return (math.inf if unranked or self.rank is None else -self.rank, self.alert.order_key)


@dataclass(frozen=True)
class VisitQuota:
    """The alerts that filters admitted and hold of one visit.

    Attributes:
        since: When its first alert passed. [ms since 1970, UTC]
        latest: When its latest did.
        levels_ended: For how many levels of chains it is over: 1 for filters that read alerts, 2
            for those that read what passed these, and so on.  What filters of an ended level held
            is sent, and `best` admits what comes then as `first` does.
        admitted: The ids of admitted alerts, by filter.
        held: The candidates that `best` filters hold, by filter.
    """

    since: int
    latest: int
    levels_ended: int = 0
    admitted: Mapping[str, Ids] = field(default_factory=dict)
    held: Mapping[str, Sequence[Candidate]] = field(default_factory=dict)


@dataclass(frozen=True)
class Quotas:
    """All that the next batch must know of those before it.

    Attributes:
        visits: The quotas of the visits that are remembered.
        closing: Visits that `visits` says are closed, but whose last alerts are not judged yet.
        released: For each batch of which something is still held: what of it was sent later.
        position: How far the topic `visits` was read.
    """

    visits: Mapping[Visit, VisitQuota] = field(default_factory=dict)
    closing: Mapping[Visit, VisitEnds] = field(default_factory=dict)
    released: Mapping[int, Sequence[Candidate]] = field(default_factory=dict)
    position: int = 0

    def due(self, deadline: int) -> int | None:
        """Return when the first visit that holds something is over at the latest; None = never.

        A visit that is over for a chain's first level is over for the next levels at once.

        Args:
            deadline: Longest that a visit is held. [ms]
        """
        holding = (one for one in self.visits.values() if any(held_candidates(one)))
        return min((0 if one.levels_ended else one.since + deadline for one in holding), default=None)

    def held(self) -> list[Candidate]:
        """Return all that is held."""
        return [one for quota in self.visits.values() for one in held_candidates(quota)]

    def batches(self) -> set[int]:
        """Return the batches of which something is held."""
        return {one.batch for one in self.held()}


@dataclass(frozen=True)
class QuotaChanges:
    """The changes of a batch in `Quotas`."""

    visits: Mapping[Visit, VisitQuota] = field(default_factory=dict)
    forgotten: Sequence[Visit] = ()
    closing: Mapping[Visit, VisitEnds] = field(default_factory=dict)
    released: Mapping[int, Sequence[Candidate]] = field(default_factory=dict)
    position: int = 0


def apply_changes(quotas: Quotas, changes: QuotaChanges) -> Quotas:
    """Return the quotas after a batch."""
    visits, forgotten = {**quotas.visits, **changes.visits}, set(changes.forgotten)
    kept = {visit: quota for visit, quota in visits.items() if visit not in forgotten}
    return Quotas(kept, changes.closing, changes.released, changes.position)


def changes_between(before: Quotas, after: Quotas) -> QuotaChanges:
    """Return the changes that make *after* of *before*."""
    fresh = {visit: quota for visit, quota in after.visits.items() if before.visits.get(visit) is not quota}
    forgotten = [visit for visit in before.visits if visit not in after.visits]
    return QuotaChanges(fresh, forgotten, after.closing, after.released, after.position)


def admitted_of(quotas: Quotas, keys: Collection[str]) -> dict[Visit, VisitQuota]:
    """Return the part of the quotas that says what the filters *keys* have admitted."""
    found: dict[Visit, VisitQuota] = {}
    for visit, quota in quotas.visits.items():
        if some := {key: ids for key, ids in quota.admitted.items() if key in keys}:
            found[visit] = replace(quota, admitted=some, held={})
    return found


def with_admitted(quotas: Quotas, more: Mapping[Visit, VisitQuota]) -> Quotas:
    """Return *quotas* that count what filters have admitted elsewhere, too."""
    visits = dict(quotas.visits)
    for visit, other in more.items():
        mine = visits.get(visit, replace(other, admitted={}))
        admitted = {key: mine.admitted.get(key, NO_IDS) | ids for key, ids in other.admitted.items()}
        visits[visit] = replace(mine, admitted={**mine.admitted, **admitted})
    return replace(quotas, visits=visits)


def held_candidates(quota: VisitQuota) -> Iterable[Candidate]:
    """Return all candidates of a visit."""
    return (one for some in quota.held.values() for one in some)


def admit(ids: Iterable[str], admitted: Ids, free: int) -> tuple[list[int], Ids]:
    """Admit *free* alerts in the order of *ids*; return the fate of each, and all admitted ids."""
    fates, fresh = list[int](), set[str]()
    for one in ids:
        if one in admitted or one in fresh:
            fates.append(DUPLICATE)
        elif len(fresh) < free:
            fresh.add(one)
            fates.append(ADMITTED)
        else:
            fates.append(OVERFLOWED)
    return fates, admitted | fresh


def keep_best(candidates: Iterable[Candidate], free: int) -> tuple[list[Candidate], list[Candidate]]:
    """Return all candidates of the *free* best alerts, and the other candidates."""
    copies: dict[str, list[Candidate]] = {}
    for one in sorted(candidates, key=lambda one: one.rank_key):
        copies.setdefault(one.alert.alert, []).append(one)
    ordered, best = list(copies.values()), max(0, free)
    return (
        [one for alert in ordered[:best] for one in alert],
        [one for alert in ordered[best:] for one in alert],
    )


def is_visit_over(quota: VisitQuota, judged: bool, at: int, deadline: int) -> bool:
    """Return whether a visit is over: it is closed and *judged*, or its deadline has come."""
    return judged or (bool(quota.held) and at >= quota.since + deadline)


def is_visit_judged(ends: VisitEnds, survey: str, reached: Mapping[TopicPartition, int]) -> bool:
    """Return whether all alerts of a visit lie before the offsets *reached*."""
    return all(reached.get((f"alerts.{survey}", part), 0) > last for part, last in ends.items())


def end_level(quota: VisitQuota, ending: Collection[str]) -> VisitQuota:
    """Return the quota after one more level of chains; alerts held by *ending* are admitted."""
    admitted = dict(quota.admitted)
    for key, some in quota.held.items():
        if key in ending:
            admitted[key] = admitted.get(key, NO_IDS) | {one.alert.alert for one in some}
    held = {key: some for key, some in quota.held.items() if key not in ending}
    return replace(quota, levels_ended=quota.levels_ended + 1, admitted=admitted, held=held)


def newest_visits(visits: Mapping[Visit, VisitQuota]) -> dict[Visit, VisitQuota]:
    """Return the newest *visits* of each survey, and those that hold something."""
    kept: dict[Visit, VisitQuota] = {}
    for _, some in groupby(sorted(visits), key=lambda visit: visit[0]):
        newest = sorted(some, key=lambda visit: visits[visit].latest, reverse=True)
        kept |= {
            visit: visits[visit]
            for number, visit in enumerate(newest)
            if number < VISITS_REMEMBERED or visits[visit].held
        }
    return kept
