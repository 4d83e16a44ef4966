"""What owners are told unasked: from where a filter is live, its first fault, why it is suspended.  Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nightwire.filters._decision import Decision, Named
from nightwire.filters._offsets import Range
from nightwire.filters._rows import Counts, Fault

STRIKES = 3
"""After so many bad batches a filter is suspended."""

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
class Record:
    """What the engine remembers of its filters: those that are live, faults told, and strikes."""

    live: set[Named] = field(default_factory=set)
    told: set[Named] = field(default_factory=set)
    strikes: dict[Named, int] = field(default_factory=dict)


def live_notices(record: Record, number: int, decision: Decision) -> Iterator[Notice]:
    """Yield from where the filters are live that the batch before did not have."""
    for judge, (key, version) in enumerate(decision.judges):
        if (key, version) not in record.live:
            work = [one.range for one in decision.counts if judge in one.judges]
            yield Notice(key, version, f"live from batch {number}{_from(work)}", good=True)
    record.live = set(decision.judges)


def _from(work: Sequence[Range]) -> str:
    spots = [f"{one.topic}[{one.partition}] from offset {one.first}" for one in work]
    return f": {', '.join(spots)}" if spots else ""


def fault_notices(record: Record, number: int, decision: Decision) -> Iterator[Notice]:
    """Yield the first fault of each filter's version."""
    for one in decision.counts:
        for judge, fault in one.faults.items():
            named = decision.judges[judge]
            if named not in record.told:
                record.told.add(named)
                yield Notice(*named, f"failed in batch {number}{_on(one, fault)}: {fault.text}")


def _on(one: Counts, fault: Fault) -> str:
    where = f" of {one.range.topic}[{one.range.partition}]"
    return f", first on alert {fault.alert}{where}" if fault.alert else where


def suspensions(record: Record, decision: Decision) -> Iterator[Notice]:
    """Yield the filters that are to be suspended: too slow, or failed on every alert, in several batches."""
    for judge, reason in bad(decision.counts).items():
        named = decision.judges[judge]
        record.strikes[named] = record.strikes.get(named, 0) + 1
        if record.strikes[named] >= STRIKES:
            yield Notice(*named, f"suspended: {reason}, in {record.strikes[named]} batches")


def bad(counts: Iterable[Counts]) -> Mapping[int, str]:
    """Return why this batch is a strike against which filters, by number."""
    counts = list(counts)
    faults = {judge: fault.text for one in counts for judge, fault in one.faults.items()}
    late = {
        judge: f"too slow: {faults.get(judge, 'no time was left')}" for one in counts for judge in one.late
    }
    evaluated, faulted = _sums(counts, "evaluated"), _sums(counts, "faulted")
    useless = {
        judge: f"failed on every alert: {faults.get(judge, 'no reason given')}"
        for judge, number in evaluated.items()
        if number >= ENOUGH and faulted[judge] == number
    }
    return {**useless, **late}


def _sums(counts: Iterable[Counts], name: str) -> dict[int, int]:
    sums: dict[int, int] = {}
    for one in counts:
        for judge, number in zip(one.judges, getattr(one, name), strict=True):
            sums[judge] = sums.get(judge, 0) + number
    return sums
