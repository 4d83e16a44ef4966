"""Which of a batch's passes are sent, held and cut off.  Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nightwire.core.kafka import TopicPartition
from nightwire.filters.decision.quota import (
    DUPLICATE,
    NO_IDS,
    OVERFLOWED,
    SENT,
    Candidate,
    QuotaChanges,
    Quotas,
    VisitQuota,
    admit,
    changes_between,
    end_visit,
    held_candidates,
    is_visit_judged,
    is_visit_over,
    keep_best,
    newest_visits,
)
from nightwire.filters.model.chains import chain_depths
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import JudgedBatch, Pass, PassedAlert
from nightwire.filters.model.offsets import Ends, Visit

HELD = 3
"""A pass of a `best` filter: whether it stays is the visit's business."""

DEADLINE = 300_000
"""Longest that a `best` filter holds a visit's alerts when nobody says that the visit is closed. [ms]"""


@dataclass(frozen=True)
class BatchContext:
    """What a batch knows beside its alerts; all of it is in Spark's offset, so a re-run knows the same.

    Attributes:
        batch: Its number.
        filters: Version of the filter set.
        at: When it was planned. [ms since 1970, UTC]
        position: How far the topic `visits` was read.
        reached: The offsets up to which alerts are judged, this batch included.
        closed: Visits that were closed since the batch before, with their last offsets.
        deadline: Longest that a visit is held. [ms]
        drained: Whether the batch reads all that passed filters before it.
    """

    batch: int
    filters: int = 0
    at: int = 0
    position: int = 0
    reached: Mapping[TopicPartition, int] = field(default_factory=dict)
    closed: Mapping[Visit, Ends] = field(default_factory=dict)
    deadline: int = DEADLINE
    drained: bool = False


@dataclass(frozen=True)
class Overflow:
    """Passes that were cut off: for each the number of its alert, of its filter, and its rank."""

    hits: Sequence[PassedAlert] = ()
    judges: Sequence[tuple[str, int]] = ()
    hit: Sequence[int] = ()
    judge: Sequence[int] = ()
    rank: Sequence[float | None] = ()

    def passes(self) -> Iterator[tuple[PassedAlert, Pass]]:
        """Yield what was cut off."""
        for hit, judge, rank in zip(self.hit, self.judge, self.rank, strict=True):
            yield self.hits[hit], Pass(*self.judges[judge], rank)


@dataclass(frozen=True)
class Selection:
    """What becomes of a batch's passes, and of what was held.

    Attributes:
        sent: Alerts of this batch that are sent.
        released: Alerts of earlier batches that are sent.
        cut: What goes to overflow.
        changes: What this makes of the places.
    """

    sent: Sequence[tuple[PassedAlert, Pass]]
    released: Sequence[Candidate]
    cut: Overflow
    changes: QuotaChanges


def select(
    caps: Quotas, judged: JudgedBatch, filters: Sequence[LiveFilter], moment: BatchContext
) -> Selection:
    """Return what becomes of what passed.

    Args:
        caps: The places after the batch before.
        judged: What passed, by numbers of *filters*.
        filters: The filter set by which it was judged.
        moment: What else there is to know.
    """
    usher = _Selector(caps, judged, filters, moment)
    for group in usher.groups():
        usher.seat(group)
    usher.end_visits()
    return usher.choice()


class _Selector:
    """Gives places; holds what changes while one batch is decided."""

    def __init__(
        self, caps: Quotas, judged: JudgedBatch, filters: Sequence[LiveFilter], moment: BatchContext
    ) -> None:
        self._before, self._judged, self._filters, self._moment = caps, judged, filters, moment
        self._depths = dict(zip((one.key for one in filters), chain_depths(filters), strict=True))
        self._visits = dict(caps.visits)
        self._closing = {**caps.closing, **moment.closed}
        self._fates = np.full(len(judged.hit), SENT, np.int8)
        self._cut: list[Candidate] = []
        self._released: list[Candidate] = []

    def groups(self) -> list[Any]:
        """Return the passes that have to do with caps, by filter and visit, each in the order of time."""
        hits, hit, judge = self._judged.hits, self._judged.hit, self._judged.judge
        turn = np.argsort(sorted(range(len(hits)), key=lambda at: hits[at].turn))
        numbers = {visit: n for n, visit in enumerate(sorted({_visit(one) for one in hits}))}
        visit = np.array([numbers[_visit(one)] for one in hits], np.int64)
        counts = np.array([one.cap > 0 for one in self._filters], bool)[judge]
        counts &= np.array([one.visit is not None and not one.past for one in hits], bool)[hit]
        at = np.flatnonzero(counts)
        at = at[np.lexsort((turn[hit[at]], visit[hit[at]], judge[at]))]
        joints = np.flatnonzero((np.diff(visit[hit[at]]) != 0) | (np.diff(judge[at]) != 0)) + 1
        return [some for some in np.split(at, joints) if len(some)]

    def seat(self, group: Any) -> None:
        """Give places to the passes *group* of one filter and visit."""
        live = self._filters[self._judged.judge[group[0]]]
        hits = [self._judged.hits[at] for at in self._judged.hit[group].tolist()]
        visit = _visit(hits[0])
        now = self._moment.at
        places = replace(self._visits.get(visit, VisitQuota(now, now)), seen=now)
        taken, waiting = places.taken.get(live.key, NO_IDS), places.held.get(live.key, ())
        if live.choice == "best" and places.over <= self._depths[live.key]:
            self._visits[visit] = self._held(places, live, group, hits)
            return
        free = live.cap - len(taken) - len({one.hit.alert for one in waiting})
        self._fates[group], taken = admit((hit.alert for hit in hits), taken, free)
        self._visits[visit] = replace(places, taken={**places.taken, live.key: taken})

    def _held(
        self, places: VisitQuota, live: LiveFilter, group: Any, hits: Sequence[PassedAlert]
    ) -> VisitQuota:
        taken = places.taken.get(live.key, NO_IDS)
        ranks, batch = self._judged.rank[group].tolist(), self._moment.batch
        self._fates[group] = [DUPLICATE if hit.alert in taken else HELD for hit in hits]
        fresh = [
            Candidate(hit, live.key, live.version, rank_or_none(rank), batch)
            for hit, rank in zip(hits, ranks, strict=True)
            if hit.alert not in taken
        ]
        kept, cut = keep_best([*places.held.get(live.key, ()), *fresh], live.cap - len(taken))
        self._cut += cut
        return replace(places, held={**places.held, live.key: kept})

    def end_visits(self) -> None:
        """Release what visits hold that are over, and forget the old ones."""
        moment, longest = self._moment, max(self._depths.values(), default=0)
        if longest:
            self._note_closed()
        for visit, places in self._visits.items():
            if self._ends(visit, places, longest):
                ending = {key for key in places.held if self._depths.get(key, 0) <= places.over}
                self._released += (one for one in held_candidates(places) if one.key in ending)
                self._visits[visit] = end_visit(places, ending)
        self._closing = {
            visit: ends
            for visit, ends in self._closing.items()
            if not is_visit_judged(ends, visit[0], moment.reached)
        }

    def _ends(self, visit: Visit, places: VisitQuota, longest: int) -> bool:
        """Return whether a visit is over for one link more of the chains, the *longest* of which has so many.

        For filters that read alerts that is when it is closed and judged; for those that read what passed
        them, in a later batch that reads all that passed until then.
        """
        if places.over:
            return self._moment.drained and (places.over <= longest or any(held_candidates(places)))
        moment, ends = self._moment, self._closing.get(visit)
        return is_visit_over(places, ends, visit[0], moment.at, moment.reached, moment.deadline)

    def _note_closed(self) -> None:
        """Remember visits of which nothing took a place yet: what passed may still come along a chain."""
        now = self._moment.at
        for visit, ends in self._closing.items():
            if is_visit_judged(ends, visit[0], self._moment.reached):
                self._visits.setdefault(visit, VisitQuota(now, now))

    def choice(self) -> Selection:
        """Return all that was chosen."""
        batch = self._moment.batch
        own = [(one.hit, pass_of(one)) for one in self._released if one.batch == batch]
        earlier = [one for one in self._released if one.batch != batch]
        after = Quotas(
            newest_visits(self._visits), self._closing, self._all_released(earlier), self._moment.position
        )
        return Selection(
            [*self._sent(), *own], earlier, self._all_cut(), changes_between(self._before, after)
        )

    def _all_released(self, fresh: Sequence[Candidate]) -> dict[int, Sequence[Candidate]]:
        """Return what was released of each batch, as long as something of it is held or was until now."""
        waiting = Quotas(self._visits).batches() | {one.batch for one in fresh}
        together = [one for some in self._before.released.values() for one in some] + [*fresh]
        return {
            batch: [one for one in together if one.batch == batch]
            for batch in sorted(waiting & {one.batch for one in together})
        }

    def _sent(self) -> Iterator[tuple[PassedAlert, Pass]]:
        hit, judge, rank = self._judged.hit, self._judged.judge, self._judged.rank
        added = self._judged.added
        for at in np.flatnonzero(self._fates <= DUPLICATE).tolist():
            live = self._filters[judge[at]]
            again = bool(self._fates[at] == DUPLICATE)
            alert = self._judged.hits[hit[at]]
            text = added.get((*alert[:3], int(judge[at])), "") if added else ""
            yield alert, Pass(live.key, live.version, rank_or_none(rank[at]), again, text)

    def _all_cut(self) -> Overflow:
        at = np.flatnonzero(self._fates == OVERFLOWED)
        old, judges = self._cut, [(one.key, one.version) for one in self._filters]
        hits = [*self._judged.hits, *(one.hit for one in old)] if len(at) or old else []
        return Overflow(
            hits,
            [*judges, *((one.key, one.version) for one in old)] if hits else [],
            [*self._judged.hit[at].tolist(), *range(len(self._judged.hits), len(hits))],
            [*self._judged.judge[at].tolist(), *range(len(judges), len(judges) + len(old))],
            [*map(rank_or_none, self._judged.rank[at].tolist()), *(one.rank for one in old)],
        )


def rank_or_none(rank: float) -> float | None:
    """Return a rank as it is told: None for no number."""
    return None if math.isnan(rank) else float(rank)


def pass_of(one: Candidate) -> Pass:
    """Return the pass that made *one* a candidate."""
    return Pass(one.key, one.version, one.rank)


def _visit(hit: PassedAlert) -> Visit:
    return (hit.survey, -1 if hit.visit is None else hit.visit)
