"""What is decided for a batch, before anything of it is sent.  Pure.

A re-run after a crash reads the decision and sends the same alerts again, never others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nightwire.filters.decision.quota import Candidate, QuotaChanges, Quotas
from nightwire.filters.decision.select import BatchContext, Overflow, pass_of, select
from nightwire.filters.model.live_filter import FilterVersion, LiveFilter
from nightwire.filters.model.messages import (
    BACKFILL,
    JudgedBatch,
    Pass,
    PassedAlert,
    RangeCounts,
    UndecodableRecord,
)
from nightwire.filters.model.transform import Transform
from nightwire.schemas.topics import filter_topic

NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, order=True)
class DeliveryItem:
    """One alert that goes to the topics of the filters it passed."""

    hit: PassedAlert
    passes: tuple[Pass, ...] = field(compare=False)


@dataclass(frozen=True)
class Decision:
    """All that a batch will do to the outside.

    Attributes:
        filters: Version of the filter set.
        judges: The filters of that set, by their numbers.
        outputs: Topics of those filters that have not their own, by ``owner/name``; and
        shapes: what becomes of the alerts of those that are transforms.
        at: When the batch was planned. [ms since 1970, UTC]
        picks: Alerts of this batch that are sent.
        released: Alerts of earlier batches that are sent, by batch; and
        before: what of those batches was released already.
        cut: What is cut off.
        dead: Records that are no alerts.
        counts: What became of each range.
        changes: What this makes of the places.
    """

    filters: int
    judges: Sequence[FilterVersion] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, Transform] = field(default_factory=dict)
    at: int = 0
    picks: Sequence[DeliveryItem] = ()
    released: Mapping[int, Sequence[DeliveryItem]] = field(default_factory=dict)
    before: Mapping[int, Sequence[DeliveryItem]] = field(default_factory=dict)
    cut: Overflow = field(default_factory=Overflow)
    dead: Sequence[UndecodableRecord] = ()
    counts: Sequence[RangeCounts] = ()
    changes: QuotaChanges = field(default_factory=QuotaChanges)

    def topic(self, key: str) -> str:
        """Return the topic of what passed filter *key*."""
        return self.outputs.get(key) or filter_topic(*key.split("/"))

    def sent(self) -> Iterator[DeliveryItem]:
        """Yield all alerts that are sent."""
        yield from self.picks
        for some in self.released.values():
            yield from some


def decide(
    judged: JudgedBatch, caps: Quotas, filters: Sequence[LiveFilter], moment: BatchContext
) -> Decision:
    """Return the decision for what workers *judged* by *filters*, after *caps*."""
    choice = select(caps, judged, filters, moment)
    fresh = {one.batch for one in choice.released}
    return Decision(
        filters=moment.filters,
        judges=[(one.key, one.version) for one in filters],
        outputs={one.key: one.output for one in filters if one.output},
        shapes={one.key: one.shape for one in filters if one.shape},
        at=moment.at,
        picks=delivery_items(choice.sent),
        released={
            batch: _released_items(one for one in choice.released if one.batch == batch)
            for batch in sorted(fresh)
        },
        before={batch: _released_items(some) for batch, some in caps.released.items() if batch in fresh},
        cut=choice.cut,
        dead=judged.dead,
        counts=judged.counts,
        changes=choice.changes,
    )


def delivery_items(passes: Iterable[tuple[PassedAlert, Pass]]) -> list[DeliveryItem]:
    """Return one pick for each alert, in order of place."""
    by_hit: dict[PassedAlert, list[Pass]] = {}
    for hit, one in passes:
        by_hit.setdefault(hit, []).append(one)
    return [DeliveryItem(hit, tuple(by_hit[hit])) for hit in sorted(by_hit, key=lambda hit: hit[:3])]


def _released_items(candidates: Iterable[Candidate]) -> list[DeliveryItem]:
    return delivery_items((one.hit, pass_of(one)) for one in candidates)


def copy_headers(
    pick: DeliveryItem, one: Pass, carried: Mapping[str, str] = NOTHING
) -> list[tuple[str, bytes]]:
    """Return the headers of *pick*'s copy for the filter that it passed; all are text.

    Args:
        pick: The alert.
        one: The filter.
        carried: What the alert brings along of another filter's topic.
    """
    hit = pick.hit
    values = {
        "filter": one.key,
        "version": one.version,
        "visit": "" if hit.visit is None else hit.visit,
        "rank": "" if one.rank is None else repr(one.rank),
        "survey": hit.survey,
        "alert": hit.alert,
        "topic": hit.topic,
        "partition": hit.partition,
        "offset": hit.offset,
        **carried,
    }
    if one.again:
        values["duplicate"] = "yes"
    if hit.past:
        values[BACKFILL] = "yes"
    return [(name, str(value).encode()) for name, value in values.items()]
