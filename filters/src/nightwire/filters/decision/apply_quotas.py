"""Selection: passes are sent, held until their visit is over, or go to overflow.  Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nightwire.core.kafka import TopicPartition
from nightwire.filters.decision.quota import (
    ADMITTED,
    DUPLICATE,
    HELD,
    NO_IDS,
    OVERFLOWED,
    Candidate,
    QuotaChanges,
    Quotas,
    VisitQuota,
    admit,
    changes_between,
    end_level,
    held_candidates,
    is_visit_judged,
    is_visit_over,
    keep_best,
    newest_visits,
)
from nightwire.filters.model.chains import chain_depths
from nightwire.filters.model.live_filter import FilterVersion, LiveFilter
from nightwire.filters.model.messages import JudgedBatch, Pass, PassedAlert
from nightwire.filters.model.offsets import Visit, VisitEnds

DEADLINE = 300_000
"""Longest that a `best` filter holds a visit's alerts when nobody says that the visit is closed.
[ms]"""


@dataclass(frozen=True)
class BatchContext:
    """The circumstances of a batch, all from Spark's offset, so a re-run has the same.

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
    closed: Mapping[Visit, VisitEnds] = field(default_factory=dict)
    deadline: int = DEADLINE
    drained: bool = False


@dataclass(frozen=True)
class Overflow:
    """Passes beyond their filters' quotas.

    Attributes:
        alerts: What they may be passes of, and
        filters: by which filters; then for each pass:
        alert_index: its alert, an index into *alerts*,
        filter_index: its filter, an index into *filters*,
        rank: its rank.
    """

    alerts: Sequence[PassedAlert] = ()
    filters: Sequence[FilterVersion] = ()
    alert_index: Sequence[int] = ()
    filter_index: Sequence[int] = ()
    rank: Sequence[float | None] = ()


@dataclass(frozen=True)
class Selection:
    """The fate of a batch's passes, and of held candidates.

    Attributes:
        sent: Passes of this batch that are sent.
        released: Passes of earlier batches that are sent.
        overflow: Those beyond their quotas.
        changes: What this changes in the quotas.
    """

    sent: Sequence[tuple[PassedAlert, Pass]]
    released: Sequence[Candidate]
    overflow: Overflow
    changes: QuotaChanges


def select(
    quotas: Quotas, judged: JudgedBatch, filters: Sequence[LiveFilter], context: BatchContext
) -> Selection:
    """Return the fate of the passes of a batch.

    Args:
        quotas: Those after the batch before.
        judged: What passed, by numbers of *filters*.
        filters: The filter set by which it was judged.
        context: What else there is to know.
    """
    selector = _Selector(quotas, judged, filters, context)
    for group in selector.groups():
        selector.admit(group)
    selector.end_visits()
    return selector.selection()


class _Selector:
    """Admits alerts by the quotas; holds the changing state while one batch is decided."""

    def __init__(
        self, quotas: Quotas, judged: JudgedBatch, filters: Sequence[LiveFilter], context: BatchContext
    ) -> None:
        self._before, self._judged, self._filters, self._context = quotas, judged, filters, context
        self._depths = dict(zip((one.key for one in filters), chain_depths(filters), strict=True))
        self._visits = dict(quotas.visits)
        self._closing = {**quotas.closing, **context.closed}
        self._fates = np.full(len(judged.alert_index), ADMITTED, np.int8)
        self._displaced: list[Candidate] = []
        self._released: list[Candidate] = []

    def groups(self) -> list[Any]:
        """Return the passes that count, by filter and visit, each group in the order of time."""
        alerts, alert, number = self._judged.alerts, self._judged.alert_index, self._judged.filter_index
        order = np.argsort(sorted(range(len(alerts)), key=lambda at: alerts[at].order_key))
        numbers = {visit: n for n, visit in enumerate(sorted({_visit(one) for one in alerts}))}
        visit = np.array([numbers[_visit(one)] for one in alerts], np.int64)
        counts = np.array([one.cap > 0 for one in self._filters], bool)[number]
        counts &= np.array([one.visit is not None and not one.backfilled for one in alerts], bool)[alert]
        at = np.flatnonzero(counts)
        at = at[np.lexsort((order[alert[at]], visit[alert[at]], number[at]))]
        joints = np.flatnonzero((np.diff(visit[alert[at]]) != 0) | (np.diff(number[at]) != 0)) + 1
        return [some for some in np.split(at, joints) if len(some)]

    def admit(self, group: Any) -> None:
        """Admit the passes *group* of one filter and visit, as far as its quota goes."""
        live = self._filters[self._judged.filter_index[group[0]]]
        alerts = [self._judged.alerts[at] for at in self._judged.alert_index[group].tolist()]
        visit, now = _visit(alerts[0]), self._context.at
        quota = replace(self._visits.get(visit, VisitQuota(now, now)), latest=now)
        admitted, held = quota.admitted.get(live.key, NO_IDS), quota.held.get(live.key, ())
        if live.choice == "best" and quota.levels_ended <= self._depths[live.key]:
            self._visits[visit] = self._hold(quota, live, group, alerts)
            return
        free = live.cap - len(admitted) - len({one.alert.alert for one in held})
        self._fates[group], admitted = admit((one.alert for one in alerts), admitted, free)
        self._visits[visit] = replace(quota, admitted={**quota.admitted, live.key: admitted})

    def _hold(
        self, quota: VisitQuota, live: LiveFilter, group: Any, alerts: Sequence[PassedAlert]
    ) -> VisitQuota:
        """Return the quota with the best of *alerts* and of the candidates held before."""
        admitted = quota.admitted.get(live.key, NO_IDS)
        ranks, batch = self._judged.rank[group].tolist(), self._context.batch
        self._fates[group] = [DUPLICATE if one.alert in admitted else HELD for one in alerts]
        fresh = [
            Candidate(one, live.key, live.version, rank_or_none(rank), batch)
            for one, rank in zip(alerts, ranks, strict=True)
            if one.alert not in admitted
        ]
        kept, displaced = keep_best([*quota.held.get(live.key, ()), *fresh], live.cap - len(admitted))
        self._displaced += displaced
        return replace(quota, held={**quota.held, live.key: kept})

    def end_visits(self) -> None:
        """Release the candidates of visits that are over, and forget old visits."""
        longest = max(self._depths.values(), default=0)
        if longest:
            self._note_closed()
        for visit, quota in self._visits.items():
            if self._is_level_over(visit, quota, longest):
                ending = {key for key in quota.held if self._depths.get(key, 0) <= quota.levels_ended}
                self._released += (one for one in held_candidates(quota) if one.key in ending)
                self._visits[visit] = end_level(quota, ending)
        self._closing = {
            visit: ends for visit, ends in self._closing.items() if not self._is_judged(visit, ends)
        }

    def _is_level_over(self, visit: Visit, quota: VisitQuota, longest: int) -> bool:
        """Return whether a visit is over for one more level of chains; they have *longest* levels.

        For filters that read alerts that is when it is closed and judged; for those that read what
        passed them, in a later batch that reads all that passed until then.
        """
        context, ends = self._context, self._closing.get(visit)
        if quota.levels_ended:
            return context.drained and (quota.levels_ended <= longest or any(held_candidates(quota)))
        judged = ends is not None and self._is_judged(visit, ends)
        return is_visit_over(quota, judged, context.at, context.deadline)

    def _is_judged(self, visit: Visit, ends: VisitEnds) -> bool:
        return is_visit_judged(ends, visit[0], self._context.reached)

    def _note_closed(self) -> None:
        """Remember closed visits of which nothing passed yet: it may still come along a chain."""
        now = self._context.at
        for visit, ends in self._closing.items():
            if self._is_judged(visit, ends):
                self._visits.setdefault(visit, VisitQuota(now, now))

    def selection(self) -> Selection:
        """Return all that was decided."""
        batch, position = self._context.batch, self._context.position
        own = [(one.alert, pass_of(one)) for one in self._released if one.batch == batch]
        earlier = [one for one in self._released if one.batch != batch]
        after = Quotas(newest_visits(self._visits), self._closing, self._all_released(earlier), position)
        changes = changes_between(self._before, after)
        return Selection([*self._sent(), *own], earlier, self._overflow(), changes)

    def _all_released(self, fresh: Sequence[Candidate]) -> dict[int, Sequence[Candidate]]:
        """Return the released candidates of batches with candidates held until now."""
        held = Quotas(self._visits).batches() | {one.batch for one in fresh}
        released = [one for some in self._before.released.values() for one in some] + [*fresh]
        return {
            batch: [one for one in released if one.batch == batch]
            for batch in sorted(held & {one.batch for one in released})
        }

    def _sent(self) -> Iterator[tuple[PassedAlert, Pass]]:
        judged = self._judged
        for at in np.flatnonzero(self._fates <= DUPLICATE).tolist():
            number = int(judged.filter_index[at])
            live, alert = self._filters[number], judged.alerts[judged.alert_index[at]]
            text = judged.added.get((*alert[:3], number), "") if judged.added else ""
            rank, again = rank_or_none(judged.rank[at]), bool(self._fates[at] == DUPLICATE)
            yield alert, Pass(live.key, live.version, rank, again, text)

    def _overflow(self) -> Overflow:
        """Return passes that were not admitted, and candidates that better ones displaced."""
        judged, old = self._judged, self._displaced
        at = np.flatnonzero(self._fates == OVERFLOWED)
        if not (len(at) or old):
            return Overflow([], [], [], [], [])
        versions = [(one.key, one.version) for one in self._filters]
        alerts = [*judged.alerts, *(one.alert for one in old)]
        return Overflow(
            alerts,
            [*versions, *((one.key, one.version) for one in old)],
            [*judged.alert_index[at].tolist(), *range(len(judged.alerts), len(alerts))],
            [*judged.filter_index[at].tolist(), *range(len(versions), len(versions) + len(old))],
            [*map(rank_or_none, judged.rank[at].tolist()), *(one.rank for one in old)],
        )


def rank_or_none(rank: float) -> float | None:
    """Return a rank as it is written; None where it is no number."""
    return None if math.isnan(rank) else float(rank)


def pass_of(one: Candidate) -> Pass:
    """Return the pass that made *one* a candidate."""
    return Pass(one.key, one.version, one.rank)


def _visit(alert: PassedAlert) -> Visit:
    return (alert.survey, -1 if alert.visit is None else alert.visit)
