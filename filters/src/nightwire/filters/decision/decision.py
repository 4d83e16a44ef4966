"""The decision on a batch, made before anything of it is sent.  Pure.

A re-run after a crash reads the decision and sends the same alerts again, never others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nightwire.filters.decision.apply_quotas import BatchContext, Overflow, pass_of, select
from nightwire.filters.decision.quota import Candidate, QuotaChanges, Quotas
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

NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True, order=True)
class DeliveryItem:
    """One alert that goes to the topics of the filters it passed."""

    alert: PassedAlert
    passes: tuple[Pass, ...] = field(compare=False)


@dataclass(frozen=True)
class Decision:
    """All that will be sent and written for a batch.

    Attributes:
        filters: Version of the filter set.
        versions: The filters of that set, by their numbers.
        outputs: Topics of those filters that have not their own, by ``owner/name``; and
        transforms: what becomes of the alerts of those that are transforms.
        at: When the batch was planned. [ms since 1970, UTC]
        items: Alerts of this batch that are sent.
        released: Alerts of earlier batches that are sent, by batch; and
        before: what of those batches was released already.
        overflow: Passes beyond their quotas.
        undecodable: Records that are no alerts.
        counts: What became of each range.
        changes: What this changes in the quotas.
    """

    filters: int
    versions: Sequence[FilterVersion] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    transforms: Mapping[str, Transform] = field(default_factory=dict)
    at: int = 0
    items: Sequence[DeliveryItem] = ()
    released: Mapping[int, Sequence[DeliveryItem]] = field(default_factory=dict)
    before: Mapping[int, Sequence[DeliveryItem]] = field(default_factory=dict)
    overflow: Overflow = field(default_factory=Overflow)
    undecodable: Sequence[UndecodableRecord] = ()
    counts: Sequence[RangeCounts] = ()
    changes: QuotaChanges = field(default_factory=QuotaChanges)

    def topic(self, key: str) -> str:
        """Return the output topic of filter *key*."""
        return self.outputs.get(key) or filter_topic(*key.split("/"))

    def sent(self) -> Iterator[DeliveryItem]:
        """Yield all alerts that are sent."""
        yield from self.items
        for some in self.released.values():
            yield from some


def decide(
    judged: JudgedBatch, quotas: Quotas, filters: Sequence[LiveFilter], context: BatchContext
) -> Decision:
    """Return the decision on a batch *judged* by *filters*; *quotas* are those before the batch."""
    selection = select(quotas, judged, filters, context)
    fresh = {one.batch for one in selection.released}
    return Decision(
        filters=context.filters,
        versions=[(one.key, one.version) for one in filters],
        outputs={one.key: one.output for one in filters if one.output},
        transforms={one.key: one.transformation for one in filters if one.transformation},
        at=context.at,
        items=delivery_items(selection.sent),
        released={
            batch: _released_items(one for one in selection.released if one.batch == batch)
            for batch in sorted(fresh)
        },
        before={batch: _released_items(some) for batch, some in quotas.released.items() if batch in fresh},
        overflow=selection.overflow,
        undecodable=judged.undecodable,
        counts=judged.counts,
        changes=selection.changes,
    )


def delivery_items(passes: Iterable[tuple[PassedAlert, Pass]]) -> list[DeliveryItem]:
    """Return one item for each alert, in order of topic, partition, offset."""
    by_alert: dict[PassedAlert, list[Pass]] = {}
    for alert, one in passes:
        by_alert.setdefault(alert, []).append(one)
    return [
        DeliveryItem(alert, tuple(by_alert[alert]))
        for alert in sorted(by_alert, key=lambda alert: alert.position)
    ]


def _released_items(candidates: Iterable[Candidate]) -> list[DeliveryItem]:
    return delivery_items((one.alert, pass_of(one)) for one in candidates)


def copy_headers(
    item: DeliveryItem, one: Pass, carried: Mapping[str, str] = NO_HEADERS
) -> list[tuple[str, bytes]]:
    """Return the headers of *item*'s copy for the filter that it passed; all are text.

    Args:
        item: The alert.
        one: Its pass of the filter.
        carried: What the alert brings along of another filter's topic.
    """
    alert = item.alert
    values = {
        "filter": one.key,
        "version": one.version,
        "visit": "" if alert.visit is None else alert.visit,
        "rank": "" if one.rank is None else repr(one.rank),
        "survey": alert.survey,
        "alert": alert.alert,
        "topic": alert.topic,
        "partition": alert.partition,
        "offset": alert.offset,
        **carried,
    }
    if one.again:
        values["duplicate"] = "yes"
    if alert.backfilled:
        values[BACKFILL] = "yes"
    return [(name, str(value).encode()) for name, value in values.items()]
