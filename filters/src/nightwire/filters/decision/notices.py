"""Notices to the owners of filters.  Pure.

From where a filter is live, its first fault, and why it is suspended.
"""

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
    """What the engine remembers: filters that are live, that have failed, and their bad batches."""

    live: set[FilterVersion] = field(default_factory=set)
    faulted: set[FilterVersion] = field(default_factory=set)
    strikes: dict[FilterVersion, set[int]] = field(default_factory=dict)

    def strike(self, version: FilterVersion, batch: int) -> int:
        """Note that *batch* was a bad one of a filter; return how many of the last were."""
        recent = {one for one in self.strikes.get(version, ()) if one >= batch - LASTING}
        self.strikes[version] = recent | {batch}
        return len(self.strikes[version])


def live_notices(state: NoticeState, batch: int, decision: Decision) -> Iterator[Notice]:
    """Yield from where the filters are live that the batch before did not have."""
    for number, (key, version) in enumerate(decision.versions):
        if (key, version) not in state.live:
            work = [one.range for one in decision.counts if number in one.filters]
            yield Notice(key, version, f"live from batch {batch}{_from(work)}", good=True)
    state.live = set(decision.versions)


def _from(work: Sequence[OffsetRange]) -> str:
    starts = [f"{one.topic}[{one.partition}] from offset {one.first}" for one in work]
    return f": {', '.join(starts)}" if starts else ""


def fault_notices(state: NoticeState, batch: int, decision: Decision) -> Iterator[Notice]:
    """Yield the first fault of each filter's version."""
    for one in decision.counts:
        for number, fault in one.faults.items():
            version = decision.versions[number]
            if version not in state.faulted:
                state.faulted.add(version)
                yield Notice(*version, f"failed in batch {batch}{_on(one, fault)}: {fault.text}")


def _on(one: RangeCounts, fault: Fault) -> str:
    where = f" of {one.range.topic}[{one.range.partition}]"
    return f", first on alert {fault.alert}{where}" if fault.alert else where


def suspensions(state: NoticeState, batch: int, decision: Decision) -> Iterator[Notice]:
    """Yield the filters to be suspended: stopped, or failed on every alert, in several batches."""
    stopped = {number for one in decision.counts for number in one.late}
    for number, reason in bad_filters(decision.counts).items():
        version = decision.versions[number]
        strikes = state.strike(version, batch)
        if strikes >= (STOPS if number in stopped else STRIKES):
            yield Notice(*version, f"suspended: {reason}, in {strikes} batches")


def bad_filters(counts: Iterable[RangeCounts]) -> Mapping[int, str]:
    """Return why this batch is a strike against which filters, by number."""
    counts = list(counts)
    faults = {number: fault.text for one in counts for number, fault in one.faults.items()}
    late = {
        number: f"had to be stopped: {faults.get(number, 'no time was left')}"
        for one in counts
        for number in one.late
    }
    evaluated, faulted = _sums(counts, "evaluated"), _sums(counts, "faulted")
    useless = {
        number: f"failed on every alert: {faults.get(number, 'no reason given')}"
        for number, alerts in evaluated.items()
        if alerts >= ENOUGH and faulted[number] == alerts
    }
    return {**useless, **late}


def _sums(counts: Iterable[RangeCounts], name: str) -> dict[int, int]:
    """Return one of the counts of each filter, over all ranges."""
    sums: dict[int, int] = {}
    for one in counts:
        for number, value in zip(one.filters, getattr(one, name), strict=True):
            sums[number] = sums.get(number, 0) + value
    return sums
