"""What an owner sees of a filter at work: numbers from `seen.<owner>`, and how they are spelled.  Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from nightwire.filters.cli.queries import read_filters
from nightwire.filters.stats.publish import read_stats

UNKNOWN = "·"
"""Stands for what is not known."""

UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))


@dataclass(frozen=True)
class FilterSummary:
    """What was seen of one filter: counts since it began, cost and rate of late.

    Attributes:
        key: ``owner/name``.
        way: How it is judged: ``columns`` or ``rows``; empty where nothing was seen of it.
        seconds: How long it is counted. [s]
        evaluated: Alerts judged.
        passed: Of these passed.
        sent: Copies that Kafka acknowledged.
        capped: Cut off.
        faulted: Failed on.
        cost_us: CPU time for an alert, of late. [µs]
        rate: Alerts judged in a second, of late.
        delay_p50: From Kafka's timestamp of an alert to the acknowledged copy, median. [s]
        delay_p99: The same, 99 of 100 took less.
        passed_at: When an alert passed last.
        stopped: Of a sample, how many alerts each condition stopped.
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

    @property
    def load(self) -> float:
        """Share of a core that it takes."""
        return 1e-6 * self.rate * (self.cost_us or 0.0)

    def stages(self) -> list[tuple[str, float]]:
        """Return the conditions, that which stopped most first, each with its share."""
        total = sum(self.stopped.values())
        ordered = sorted(self.stopped.items(), key=lambda item: (-item[1], item[0]))
        return [(condition, number / total) for condition, number in ordered]


def summary_of(record: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> FilterSummary:
    """Return what *record* of `seen.<owner>` says; cost and rate are of the time since *before*, if given.

    Args:
        record: The last one.
        before: An earlier one; of another version, or of before the engine's start, it counts for nothing.
    """
    if before is None or any(before[name] != record[name] for name in ("version", "since")):
        before = {"time": record["since"], "evaluated": 0, "cpu": 0.0}
    seconds = (record["time"] - before["time"]).total_seconds()
    alerts, cpu_s = (record[name] - before[name] for name in ("evaluated", "cpu"))
    if not alerts:  # it stands still: its cost is that of before
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


COPIED_FIELDS = (
    *("evaluated", "passed", "sent", "capped", "faulted"),
    *("delay_p50", "delay_p99", "passed_at", "stopped"),
)
"""What a sight has from its record as it is."""


def summary_lines(one: FilterSummary, now: datetime) -> Iterator[str]:
    """Yield what there is to say of a filter at work, a line each."""
    if one.cost_us is not None:
        yield (
            f"judged {one.evaluated:,} alerts in {duration_text(one.seconds)}, {number_text(one.cost_us)} µs of CPU each; "
            f"{one.passed:,} passed ({one.passed / one.evaluated:.2%}), {one.sent:,} sent, "
            f"{one.capped:,} cut off, {one.faulted:,} failed"
        )
    if one.passed_at is not None:
        yield f"last passed {ago(one.passed_at, now)}{_delays(one)}"
    for condition, share in one.stages()[:3]:
        yield f"stopped {share:4.0%} by {condition}"


def _delays(one: FilterSummary) -> str:
    if one.delay_p50 is None or one.delay_p99 is None:
        return ""
    return f"; from the producer to your topic {one.delay_p50:.2g} s, 99 of 100 within {one.delay_p99:.2g} s"


def ago(then: datetime | None, now: datetime) -> str:
    """Return how long ago *then* was: ``12 s ago``."""
    return UNKNOWN if then is None else f"{duration_text((now - then).total_seconds())} ago"


def duration_text(seconds: float) -> str:
    """Return a time in its largest unit: ``3 min``."""
    length, unit = next(((one, name) for one, name in UNITS if seconds >= one), (1.0, "s"))
    return f"{max(0.0, seconds) // length:.0f} {unit}"


def number_text(value: float | None) -> str:
    """Return a number with two digits or more: ``0.42``, ``17``, ``1,204``."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value >= 10 else f"{value:#.2g}"


@dataclass(frozen=True)
class Snapshot:
    """Filters at one moment.

    Attributes:
        records: The last record of each in `seen.<owner>`, by ``owner/name``.
        live: Those that are live; None where we may not read which are.
    """

    records: Mapping[str, Mapping[str, Any]]
    live: Sequence[str] | None = None


def take_snapshot(bootstrap: str, owner: str | None) -> Snapshot:
    """Return the filters of *owner* as they are now; without one, of everybody whose topics we may read.

    Raises:
        KafkaException: Kafka does not answer.
    """
    records = {f"{one['owner']}/{one['name']}": one for one in read_stats(bootstrap, owner)}
    known = read_filters(bootstrap)
    live = [one.key for one in known.live() if owner in (None, one.owner)]
    return Snapshot(records, live if known.versions else None)


def summaries_of(now: Snapshot, before: Snapshot | None = None) -> list[FilterSummary]:
    """Return what was seen of the live filters since *before*; without it, since they began.  Pure."""
    keys = sorted(now.records) if now.live is None else now.live
    earlier = before.records if before else {}
    return [
        summary_of(now.records[key], earlier.get(key)) if key in now.records else FilterSummary(key)
        for key in keys
    ]
