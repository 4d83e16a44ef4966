"""Who gets the places: at most so many alerts per visit and filter.  Pure.

`first`: places go in the order of Kafka's timestamp, partition, offset, batch by batch.  `best`: the alerts
of highest rank are held until the visit is over.  Places are counted by alert ids: the same alert sent twice
takes one.  A late alert takes one if one is free.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from nightwire.core.kafka import TopicPartition
from nightwire.filters.model.messages import PassedAlert
from nightwire.filters.model.offsets import Ends, Visit

VISITS_REMEMBERED = 32
"""Visits of a survey whose places are remembered; an alert later than that begins a new count."""

Ids = frozenset[str]
NO_IDS: Ids = frozenset()


@dataclass(frozen=True)
class Candidate:
    """An alert that passed a `best` filter in batch number *batch*."""

    hit: PassedAlert
    key: str
    version: int
    rank: float | None
    batch: int

    @property
    def merit(self) -> tuple[float, tuple[int, str, int, int]]:
        """Sorts candidates, the best first: by rank, those without a rank last; then by time."""
        unranked = self.rank is None or math.isnan(self.rank)
        return (math.inf if unranked or self.rank is None else -self.rank, self.hit.turn)


@dataclass(frozen=True)
class VisitQuota:
    """One visit's places.

    Attributes:
        since: When its first alert passed. [ms since 1970, UTC]
        seen: When its latest did.
        over: How many links of chains it is over for: 1 for filters that read alerts, 2 for those that
            read what passed these, and so on.  What these held is sent, and `best` takes what comes as
            `first` does.
        taken: The ids that have a place, by filter.
        held: The candidates that `best` filters hold, by filter.
    """

    since: int
    seen: int
    over: int = 0
    taken: Mapping[str, Ids] = field(default_factory=dict)
    held: Mapping[str, Sequence[Candidate]] = field(default_factory=dict)


@dataclass(frozen=True)
class Quotas:
    """All that the next batch must know of those before it.

    Attributes:
        visits: The places of the visits that are remembered.
        closing: Visits that `visits` says are closed, but whose last alerts are not judged yet.
        released: For each batch of which something is still held: what of it was sent later.
        position: How far the topic `visits` was read.
    """

    visits: Mapping[Visit, VisitQuota] = field(default_factory=dict)
    closing: Mapping[Visit, Ends] = field(default_factory=dict)
    released: Mapping[int, Sequence[Candidate]] = field(default_factory=dict)
    position: int = 0

    def due(self, deadline: int) -> int | None:
        """Return when the first of the visits that hold something is over, whatever happens; None = never.

        A visit that is over for a chain's first filters is so for the next ones at once.

        Args:
            deadline: Longest that a visit is held. [ms]
        """
        times = (
            0 if one.over else one.since + deadline
            for one in self.visits.values()
            if any(held_candidates(one))
        )
        return min(times, default=None)

    def waiting(self) -> list[Candidate]:
        """Return all that is held."""
        return [one for places in self.visits.values() for one in held_candidates(places)]

    def batches(self) -> set[int]:
        """Return the batches of which something is held."""
        return {one.batch for one in self.waiting()}


@dataclass(frozen=True)
class QuotaChanges:
    """What a batch made of the `Quotas` before it: places of visits, visits forgotten, and all the rest."""

    visits: Mapping[Visit, VisitQuota] = field(default_factory=dict)
    forgotten: Sequence[Visit] = ()
    closing: Mapping[Visit, Ends] = field(default_factory=dict)
    released: Mapping[int, Sequence[Candidate]] = field(default_factory=dict)
    position: int = 0


def apply_changes(caps: Quotas, changes: QuotaChanges) -> Quotas:
    """Return the state after a batch."""
    visits = {**caps.visits, **changes.visits}
    kept = {visit: places for visit, places in visits.items() if visit not in set(changes.forgotten)}
    return Quotas(kept, changes.closing, changes.released, changes.position)


def changes_between(before: Quotas, after: Quotas) -> QuotaChanges:
    """Return what leads from one state to another."""
    fresh = {
        visit: places for visit, places in after.visits.items() if before.visits.get(visit) is not places
    }
    forgotten = [visit for visit in before.visits if visit not in after.visits]
    return QuotaChanges(fresh, forgotten, after.closing, after.released, after.position)


def held_candidates(places: VisitQuota) -> Iterable[Candidate]:
    """Return all candidates of a visit."""
    return (one for some in places.held.values() for one in some)


SENT, DUPLICATE, OVERFLOWED = 0, 1, 2
"""What becomes of a pass: it has a place; it shares one with an earlier copy; it has none."""


def admit(ids: Iterable[str], taken: Ids, free: int) -> tuple[list[int], Ids]:
    """Give *free* places to *ids*, in their order; return what became of each, and who has a place now."""
    fates, fresh = list[int](), set[str]()
    for one in ids:
        if one in taken or one in fresh:
            fates.append(DUPLICATE)
        elif len(fresh) < free:
            fresh.add(one)
            fates.append(SENT)
        else:
            fates.append(OVERFLOWED)
    return fates, taken | fresh


def keep_best(candidates: Iterable[Candidate], free: int) -> tuple[list[Candidate], list[Candidate]]:
    """Return the candidates that hold the *free* best places, and the others; copies share a place."""
    places: dict[str, list[Candidate]] = {}
    for one in sorted(candidates, key=lambda one: one.merit):
        places.setdefault(one.hit.alert, []).append(one)
    ordered, best = list(places.values()), max(0, free)
    return (
        [one for place in ordered[:best] for one in place],
        [one for place in ordered[best:] for one in place],
    )


def is_visit_over(
    places: VisitQuota,
    ends: Ends | None,
    survey: str,
    at: int,
    reached: Mapping[TopicPartition, int],
    deadline: int,
) -> bool:
    """Return whether a visit is over: it is closed and judged to its *ends*, or its deadline has come."""
    if ends is not None and is_visit_judged(ends, survey, reached):
        return True
    return bool(places.held) and at >= places.since + deadline


def is_visit_judged(ends: Ends, survey: str, reached: Mapping[TopicPartition, int]) -> bool:
    """Return whether all alerts of a visit lie before the offsets *reached*."""
    return all(reached.get((f"alerts.{survey}", partition), 0) > last for partition, last in ends.items())


def end_visit(places: VisitQuota, ending: Collection[str]) -> VisitQuota:
    """Return the visit's places one link of chains on: what the filters *ending* held is sent."""
    taken = dict(places.taken)
    for key, some in places.held.items():
        if key in ending:
            taken[key] = taken.get(key, NO_IDS) | {one.hit.alert for one in some}
    waiting = {key: some for key, some in places.held.items() if key not in ending}
    return replace(places, over=places.over + 1, taken=taken, held=waiting)


def newest_visits(visits: Mapping[Visit, VisitQuota]) -> dict[Visit, VisitQuota]:
    """Return the newest `VISITS_REMEMBERED` of each survey's *visits*, and those that hold something."""
    kept: dict[Visit, VisitQuota] = {}
    for _, some in groupby(sorted(visits), key=lambda visit: visit[0]):
        newest = sorted(some, key=lambda visit: visits[visit].seen, reverse=True)
        kept |= {
            visit: visits[visit]
            for n, visit in enumerate(newest)
            if n < VISITS_REMEMBERED or visits[visit].held
        }
    return kept
