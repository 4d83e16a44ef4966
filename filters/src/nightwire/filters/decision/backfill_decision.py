"""Backfills: a filter judges the alerts from before it was live.  Pure.

It ends where the live stream begins for the filter's version: every alert is judged by one of the
two, none by both.  It is outside the cap, but sends no more than the operator allows; the rest goes
to overflow.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nightwire.core.accounting import Account
from nightwire.core.kafka import TopicPartition
from nightwire.filters.decision.accounts import Unsent, accounts
from nightwire.filters.decision.apply_quotas import BatchContext, Overflow
from nightwire.filters.decision.decision import Decision, DeliveryItem, decide
from nightwire.filters.decision.notices import bad_filters
from nightwire.filters.decision.quota import Quotas
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import JudgedBatch, RangeCounts, without_undecodable

STAGE = "backfill"
"""Its stage in the accounts."""

BATCH = 500
"""Most records judged at once."""

STRIKES = 3
"""After so many batches in which it was too slow, or failed on everything, a filter's backfill
ends."""


@dataclass(frozen=True)
class BackfillJob:
    """The request to judge the past for one version of a filter.

    Attributes:
        owner: Whose.
        name: Which.
        version: Its version.
        since: From when on, by Kafka's time. [ms since 1970, UTC]
        until: Offsets from which the version is live; None while it is not.
    """

    owner: str
    name: str
    version: int
    since: int
    until: Mapping[TopicPartition, int] | None = None

    @property
    def key(self) -> str:
        """``owner/name``."""
        return f"{self.owner}/{self.name}"

    @property
    def id(self) -> str:
        """``owner.name.version``."""
        return f"{self.owner}.{self.name}.{self.version}"


@dataclass(frozen=True)
class BackfillProgress:
    """How far a backfill is.

    Attributes:
        at: The next offset of each partition.
        whole: Offsets in all, of which
        done: are judged, in
        batch: so many batches.
        evaluated: Alerts judged; of these
        passed: passed, and
        faulted: made the filter fail.
        sent: What was sent of what passed.
        expired: Offsets that retention deleted before they were judged.
        strikes: Batches that went badly.
    """

    at: Mapping[TopicPartition, int] = field(default_factory=dict)
    whole: int = 0
    done: int = 0
    batch: int = 0
    evaluated: int = 0
    passed: int = 0
    faulted: int = 0
    sent: int = 0
    expired: int = 0
    strikes: int = 0


def decide_backfill(judged: JudgedBatch, live: LiveFilter, number: int, at: int, left: int) -> Decision:
    """Return the decision on a batch of a backfill.

    Args:
        judged: What the worker found.
        live: The filter by which it was judged.
        number: The batch.
        at: When it was judged. [ms since 1970, UTC]
        left: How many alerts may still be sent.
    """
    alerts = [one._replace(backfilled=True) for one in judged.alerts]
    past = replace(without_undecodable(judged), alerts=alerts)
    whole = decide(past, Quotas(), [live], BatchContext(number, filters=1, at=at))
    in_order = sorted(whole.items, key=lambda item: item.alert.order_key)
    return replace(whole, items=sorted(in_order[:left]), overflow=_overflow(in_order[left:], live))


def _overflow(items: Sequence[DeliveryItem], live: LiveFilter) -> Overflow:
    alerts, ranks = [item.alert for item in items], [item.passes[0].rank for item in items]
    return Overflow(alerts, [(live.key, live.version)], list(range(len(alerts))), [0] * len(alerts), ranks)


def advance_progress(
    progress: BackfillProgress, end: Mapping[TopicPartition, int], decision: Decision
) -> BackfillProgress:
    """Return how far a backfill is after a batch."""
    counts = decision.counts
    return BackfillProgress(
        at=end,
        whole=progress.whole,
        done=progress.done + sum(one.range.size for one in counts),
        batch=progress.batch + 1,
        evaluated=progress.evaluated + sum(sum(one.evaluated) for one in counts),
        passed=progress.passed + sum(sum(one.passed) for one in counts),
        faulted=progress.faulted + sum(sum(one.faulted) for one in counts),
        sent=progress.sent + len(decision.items),
        expired=progress.expired + sum(one.expired for one in counts),
        strikes=progress.strikes + bool(bad_filters(counts)),
    )


def backfill_accounts(job: BackfillJob, decision: Decision, unsent: Unsent) -> list[Account]:
    """Return the accounts of one batch: a stage of their own, and a source for each backfill."""
    return [
        replace(one, stage=STAGE, source=f"{STAGE}/{job.id}/{one.source}")
        for one in accounts(decision, unsent=unsent)
    ]


def progress_text(progress: BackfillProgress) -> str:
    """Return how far a backfill is, in words."""
    parts = [
        f"{progress.evaluated:,} alerts judged",
        f"{progress.passed:,} passed",
        f"{progress.sent:,} sent",
    ]
    if beyond := progress.passed - progress.sent:
        parts.append(f"{beyond:,} to overflow")
    if progress.faulted:
        parts.append(f"{progress.faulted:,} failed")
    if progress.expired:
        parts.append(f"{progress.expired:,} had expired")
    return ", ".join(parts)


def live_from(
    number: int, start: Mapping[TopicPartition, int], counts: Iterable[RangeCounts]
) -> dict[TopicPartition, int]:
    """Return the offsets from which a filter is live that was not live before a batch.

    Args:
        number: The filter's.
        start: Where the batch began.
        counts: What was done with the batch's ranges: the filter was too late for those that it did
            not judge.
    """
    missed = {
        (one.range.topic, one.range.partition): one.range.end for one in counts if number not in one.filters
    }
    return {**start, **missed}
