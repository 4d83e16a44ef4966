"""What owners are told unasked: from where a filter is live, its first fault, why it is suspended.  Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nightwire.filters.decision.decision import Decision
from nightwire.filters.model.live_filter import FilterVersion
from nightwire.filters.model.messages import Fault, RangeCounts
from nightwire.filters.model.offsets import OffsetRange

STRIKES = 3
"""At so many bad batches a filter is suspended; and
"""

STOPS = 2
"""at so many, where it had to be stopped: that takes everybody's time."""

LASTING = 1000
"""A bad batch is forgotten after so many others."""

ENOUGH = 20
"""A batch in which a filter failed on every alert is a bad one from so many alerts on."""


@dataclass(frozen=True)
class Notice:
    """One thing that the owner of a filter should know; *good* unless something is wrong."""

    key: str
    version: int
    text: str
    good: bool = False


@dataclass
class NoticeState:
    """What the engine remembers of its filters: those that are live, faults told, and their bad batches."""

    live: set[FilterVersion] = field(default_factory=set)
    told: set[FilterVersion] = field(default_factory=set)
    strikes: dict[FilterVersion, set[int]] = field(default_factory=dict)

    def strike(self, named: FilterVersion, number: int) -> int:
        """Note that batch *number* was a bad one of a filter; return how many of the last were."""
        recent = {one for one in self.strikes.get(named, ()) if one >= number - LASTING}
        self.strikes[named] = recent | {number}
        return len(self.strikes[named])


def live_notices(record: NoticeState, number: int, decision: Decision) -> Iterator[Notice]:
    """Yield from where the filters are live that the batch before did not have."""
    for judge, (key, version) in enumerate(decision.judges):
        if (key, version) not in record.live:
            work = [one.range for one in decision.counts if judge in one.judges]
            yield Notice(key, version, f"live from batch {number}{_from(work)}", good=True)
    record.live = set(decision.judges)


def _from(work: Sequence[OffsetRange]) -> str:
    spots = [f"{one.topic}[{one.partition}] from offset {one.first}" for one in work]
    return f": {', '.join(spots)}" if spots else ""


def fault_notices(record: NoticeState, number: int, decision: Decision) -> Iterator[Notice]:
    """Yield the first fault of each filter's version."""
    for one in decision.counts:
        for judge, fault in one.faults.items():
            named = decision.judges[judge]
            if named not in record.told:
                record.told.add(named)
                yield Notice(*named, f"failed in batch {number}{_on(one, fault)}: {fault.text}")


def _on(one: RangeCounts, fault: Fault) -> str:
    where = f" of {one.range.topic}[{one.range.partition}]"
    return f", first on alert {fault.alert}{where}" if fault.alert else where


def suspensions(record: NoticeState, number: int, decision: Decision) -> Iterator[Notice]:
    """Yield the filters that are to be suspended: stopped, or failed on every alert, in several batches."""
    stopped = {judge for one in decision.counts for judge in one.late}
    for judge, reason in bad_filters(decision.counts).items():
        named = decision.judges[judge]
        strikes = record.strike(named, number)
        if strikes >= (STOPS if judge in stopped else STRIKES):
            yield Notice(*named, f"suspended: {reason}, in {strikes} batches")


def bad_filters(counts: Iterable[RangeCounts]) -> Mapping[int, str]:
    """Return why this batch is a strike against which filters, by number."""
    counts = list(counts)
    faults = {judge: fault.text for one in counts for judge, fault in one.faults.items()}
    late = {
        judge: f"had to be stopped: {faults.get(judge, 'no time was left')}"
        for one in counts
        for judge in one.late
    }
    evaluated, faulted = _sums(counts, "evaluated"), _sums(counts, "faulted")
    useless = {
        judge: f"failed on every alert: {faults.get(judge, 'no reason given')}"
        for judge, number in evaluated.items()
        if number >= ENOUGH and faulted[judge] == number
    }
    return {**useless, **late}


def _sums(counts: Iterable[RangeCounts], name: str) -> dict[int, int]:
    sums: dict[int, int] = {}
    for one in counts:
        for judge, number in zip(one.judges, getattr(one, name), strict=True):
            sums[judge] = sums.get(judge, 0) + number
    return sums
