"""Summaries of filters at work, from the records in `seen.<owner>`, and their texts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from nightwire.filters.cli.queries import read_filters
from nightwire.filters.stats.publish import read_stats

UNKNOWN = "·"
"""Stands for an unknown value."""

UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))

COPIED_FIELDS = (
    *("evaluated", "passed", "sent", "capped", "faulted"),
    *("delay_p50", "delay_p99", "passed_at", "stopped", "lane", "behind", "behind_s", "unjudged"),
)
"""Fields that a summary takes from its record unchanged."""


@dataclass(frozen=True)
class FilterSummary:
    """One filter at work: counts since its version began, cost and rate of late.

    Attributes:
        key: ``owner/name``.
        way: How it is judged, by ``columns`` or by ``rows``; empty without a record of it.
        seconds: Time that the counts cover. [s]
        evaluated: Alerts judged.
        passed: Alerts that passed.
        sent: Copies that Kafka acknowledged.
        capped: Alerts cut off by its cap.
        faulted: Alerts on which it failed.
        cost_us: CPU time for an alert, of late. [µs]
        rate: Alerts judged, of late. [1/s]
        delay_p50: From Kafka's timestamp of an alert to the acknowledged copy, median. [s]
        delay_p99: The same, 99th percentile. [s]
        passed_at: Time of the last alert that passed.
        stopped: Alerts of a sample that each condition stopped.
        lane: The lane that judges it; empty without a record of it.
        behind: Records by which its lane is behind the quick one; None in that.
        behind_s: The same in time. [s]
        unjudged: Alerts that it did not judge, for its lane was too far behind.
    """

    key: str
    way: str = ""
    seconds: float = 0.0
    evaluated: int = 0
    passed: int = 0
    sent: int = 0
    capped: int = 0
    faulted: int = 0
    cost_us: float | None = None
    rate: float = 0.0
    delay_p50: float | None = None
    delay_p99: float | None = None
    passed_at: datetime | None = None
    stopped: Mapping[str, int] = field(default_factory=dict)
    lane: str = ""
    behind: int | None = None
    behind_s: float | None = None
    unjudged: int = 0

    @property
    def lane_text(self) -> str:
        """Its lane, and how far that is behind: ``slow, 12 s behind``."""
        late = self.behind_s is not None and self.behind_s >= 1
        return f"{self.lane}, {duration_text(self.behind_s or 0.0)} behind" if late else self.lane

    @property
    def load(self) -> float:
        """Share of a core that the filter takes."""
        return 1e-6 * self.rate * (self.cost_us or 0.0)

    def stages(self) -> list[tuple[str, float]]:
        """Return the conditions and their shares of the stopped alerts, the largest share first."""
        total = sum(self.stopped.values())
        ordered = sorted(self.stopped.items(), key=lambda item: (-item[1], item[0]))
        return [(condition, number / total) for condition, number in ordered]


def summary_of(record: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> FilterSummary:
    """Return the summary of a record; cost and rate are of the time since *before*.  Pure.

    Args:
        record: The last record of the filter in `seen.<owner>`.
        before: An earlier one; ignored if of another version, or older than the engine.
    """
    if before is None or any(before[name] != record[name] for name in ("version", "since")):
        before = {"time": record["since"], "evaluated": 0, "cpu": 0.0}
    seconds = (record["time"] - before["time"]).total_seconds()
    alerts, cpu_s = (record[name] - before[name] for name in ("evaluated", "cpu"))
    if not alerts:  # the filter stands still: the cost is that of all its alerts
        alerts, cpu_s = record["evaluated"], record["cpu"]
        seconds = 0.0
    return FilterSummary(
        f"{record['owner']}/{record['name']}",
        record["way"],
        (record["time"] - record["since"]).total_seconds(),
        cost_us=1e6 * cpu_s / alerts if alerts else None,
        rate=alerts / seconds if seconds > 0 else 0.0,
        **{name: record[name] for name in COPIED_FIELDS},
    )


def summary_lines(one: FilterSummary, now: datetime) -> Iterator[str]:
    """Yield the description of a filter at work, line by line.  Pure."""
    if one.cost_us is not None:
        yield (
            f"judged {one.evaluated:,} alerts in {duration_text(one.seconds)}, "
            f"{number_text(one.cost_us)} µs of CPU each; "
            f"{one.passed:,} passed ({one.passed / one.evaluated:.2%}), {one.sent:,} sent, "
            f"{one.capped:,} cut off, {one.faulted:,} failed"
        )
    if one.lane == "slow":
        unjudged = f"; {one.unjudged:,} alerts were too old for it" if one.unjudged else ""
        yield f"in the slow lane, {one.behind or 0:,} alerts or {one.behind_s or 0:.0f} s behind{unjudged}"
    if one.passed_at is not None:
        yield f"last passed {ago(one.passed_at, now)}{_delays(one)}"
    for condition, share in one.stages()[:3]:
        yield f"stopped {share:4.0%} by {condition}"


def _delays(one: FilterSummary) -> str:
    if one.delay_p50 is None or one.delay_p99 is None:
        return ""
    return f"; from the producer to your topic {one.delay_p50:.2g} s, 99 of 100 within {one.delay_p99:.2g} s"


def ago(then: datetime | None, now: datetime) -> str:
    """Return the age of a time: ``12 s ago``."""
    return UNKNOWN if then is None else f"{duration_text((now - then).total_seconds())} ago"


def duration_text(seconds: float) -> str:
    """Return a duration in its largest unit: ``3 min``."""
    length, unit = next(((one, name) for one, name in UNITS if seconds >= one), (1.0, "s"))
    return f"{max(0.0, seconds) // length:.0f} {unit}"


def number_text(value: float | None) -> str:
    """Return a number with two digits or more: ``0.42``, ``17``, ``1,204``."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value >= 10 else f"{value:#.2g}"


@dataclass(frozen=True)
class Snapshot:
    """All filters at one moment.

    Attributes:
        records: The last record of each filter in `seen.<owner>`, by ``owner/name``.
        live: Keys of the live filters; None where Kafka does not let us read them.
    """

    records: Mapping[str, Mapping[str, Any]]
    live: Sequence[str] | None = None


def take_snapshot(bootstrap: str, owner: str | None) -> Snapshot:
    """Return the filters of *owner*; without one, of all owners whose topics we may read.

    Raises:
        KafkaException: Kafka does not answer.
    """
    records = {f"{one['owner']}/{one['name']}": one for one in read_stats(bootstrap, owner)}
    known = read_filters(bootstrap)
    live = [one.key for one in known.live() if owner in (None, one.owner)]
    return Snapshot(records, live if known.versions else None)


def summaries_of(now: Snapshot, before: Snapshot | None = None) -> list[FilterSummary]:
    """Return the summaries of the live filters since *before*, or since they began.  Pure."""
    keys = sorted(now.records) if now.live is None else now.live
    earlier = before.records if before else {}
    return [
        summary_of(now.records[key], earlier.get(key)) if key in now.records else FilterSummary(key)
        for key in keys
    ]
