"""Tables for the terminal: the list of filters, filters at work (`top`), overflow.  Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.text import Text

from nightwire.core.cli import Cell, Column, Listing
from nightwire.filters.cli.queries import ListedFilter
from nightwire.filters.cli.summaries import UNKNOWN, FilterSummary, ago, number_text

COUNTS = ("evaluated", "passed", "capped", "rejected", "faulted")
"""Counts in the list of filters."""

BAR = 8
"""Width of the bar that shows a filter's share of the CPU time. [character]"""

BLOCKS = " ▏▎▍▌▋▊▉█"


LIST_COLUMNS = (
    Column("filter"),
    Column("version", 10, number=True),
    Column("survey", 6),
    Column("cap", 9),
    Column("evaluated", 2, number=True),
    Column("passed", 3, number=True),
    Column("capped", 8, number=True),
    Column("rejected", 11, number=True),
    Column("faulted", 5, number=True),
    Column("µs/alert", 7, number=True),
    Column("lane", 6, max_width=20),
    Column("last passed", 4, number=True),
    Column("state", 1, max_width=24),
)


def list_table(
    listed: Iterable[ListedFilter],
    summaries: Mapping[str, FilterSummary],
    now: datetime,
    *,
    wide: bool = False,
) -> Listing:
    """Return one row per filter: its state, the counts of the alerts that it judged, and its cost.

    Args:
        listed: The filters.
        summaries: Those at work whose topics we may read, by ``owner/name``.
        now: The time.
        wide: As of `Listing`.
    """
    rows: list[list[Cell]] = []
    for one in listed:
        record, counts = one.record, one.counts()
        summary = summaries.get(one.key, FilterSummary(one.key))
        rows.append([
            one.key, str(record["version"]), record["survey"],
            f"{record['cap']} {record['choice']}" if record["cap"] else "none",
            *(counts[name] for name in COUNTS),
            number_text(summary.cost_us), summary.lane_text or UNKNOWN,
            ago(summary.passed_at, now), one.state,
        ])  # fmt: skip
    return Listing(LIST_COLUMNS, rows, wide)


def listed_json(listed: ListedFilter, summaries: Mapping[str, FilterSummary]) -> dict[str, Any]:
    """Return a filter for JSON, with what its summary adds; null without a summary."""
    summary = summaries.get(listed.key)
    speed = ("cost_us", "delay_p50", "delay_p99", "passed_at", "stopped")
    names = (*speed, "lane", "behind", "behind_s", "unjudged")
    return listed.json() | {name: getattr(summary, name, None) for name in names}


OVERFLOW_COLUMNS = (
    Column("visit"), Column("survey", 4), Column("alert"), Column("rank", 1, number=True),
    Column("cut off", 3), Column("lies at", 2),
)  # fmt: skip


def overflow_table(found: Iterable[Mapping[str, Any]]) -> Listing:
    """Return one row per alert that a cap cut off."""
    rows: list[list[Cell]] = []
    for one in found:
        rank = "" if one["rank"] is None else f"{one['rank']:g}"
        position = f"{one['topic']}[{one['partition']}] {one['offset']}"
        visit = "" if one["visit"] is None else str(one["visit"])
        rows.append(
            [visit, one["survey"], one["alert"], rank, f"{one['time']:%Y-%m-%d %H:%M:%S} UTC", position]
        )
    return Listing(OVERFLOW_COLUMNS, rows)


CellText = Callable[[FilterSummary, datetime, float], Text]
"""The text of a filter's cell, now, where all filters take such a share of a core together."""


def top_view(summaries: Iterable[FilterSummary], now: datetime) -> tuple[Text, Text, Listing]:
    """Return the table of filters at work, the dearest first, under a line about all of them."""
    ordered = sorted(summaries, key=lambda one: (-one.load, -(one.cost_us or 0.0), one.key))
    return _headline(ordered, now), Text(), _top_table(ordered, now)


def _headline(summaries: Sequence[FilterSummary], now: datetime) -> Text:
    rate, load = max((one.rate for one in summaries), default=0.0), sum(one.load for one in summaries)
    rows = sum(one.way == "rows" for one in summaries)
    line = Text.assemble((f"{len(summaries)} live filters", "bold"))
    line.append(f" · {rate:,.0f} alerts/s · {load:.1%} of a core")
    line.append(f" · {rows} judged alert by alert" if rows else "")
    line.append(f" · {now:%H:%M:%S} UTC", "dim")
    return line


def _top_table(summaries: Sequence[FilterSummary], now: datetime) -> Listing:
    load = sum(one.load for one in summaries)
    rows = [[cell(one, now, load) for _, cell in TOP_COLUMNS] for one in summaries]
    for one, row in zip(summaries, rows, strict=True):
        if not one.way:
            for text in row:
                text.stylize("dim")
    return Listing([column for column, _ in TOP_COLUMNS], rows)


def _share(one: FilterSummary, _now: datetime, load: float) -> Text:
    share = one.load / load if load else 0.0
    eighths = round(8 * BAR * share)
    bar = BLOCKS[8] * (eighths // 8) + (BLOCKS[eighths % 8] if eighths % 8 else "")
    return Text.assemble((bar.ljust(BAR), "cyan"), f" {share:4.0%}") if one.way else Text(UNKNOWN)


def _passed(one: FilterSummary, _now: datetime, _load: float) -> Text:
    return Text(f"{one.passed:,} {one.passed / one.evaluated:7.2%}" if one.evaluated else UNKNOWN)


def _count(name: str, style: str = "") -> CellText:
    def cell(one: FilterSummary, _now: datetime, _load: float) -> Text:
        value = getattr(one, name)
        return Text(f"{value:,}" if one.way else UNKNOWN, style if value else "dim")

    return cell


def _seconds(name: str) -> CellText:
    def cell(one: FilterSummary, _now: datetime, _load: float) -> Text:
        value = getattr(one, name)
        return Text(UNKNOWN if value is None else f"{value:.2f}")

    return cell


def _stopped(one: FilterSummary, _now: datetime, _load: float) -> Text:
    if not (stages := one.stages()):
        return Text(UNKNOWN, "dim")
    condition, share = stages[0]
    return Text.assemble((f"{share:4.0%} ", "dim"), condition)


TOP_COLUMNS: tuple[tuple[Column, CellText], ...] = (
    (Column("filter"), lambda one, *_: Text(one.key, "bold")),
    (Column("lane", 9, max_width=20), lambda one, *_: Text(one.lane_text or UNKNOWN, "dim")),
    (Column("µs/alert", 1, number=True), lambda one, *_: Text(number_text(one.cost_us))),
    (Column("CPU", 8), _share),
    (Column("alerts/s", 11, number=True), lambda one, *_: Text(number_text(one.rate or None))),
    (Column("passed", 2, number=True), _passed),
    (Column("sent", 10, number=True), _count("sent")),
    (Column("cut off", 3, number=True), _count("capped", "yellow")),
    (Column("failed", 4, number=True), _count("faulted", "red")),
    (Column("p50 s", 12, number=True), _seconds("delay_p50")),
    (Column("p99 s", 5, number=True), _seconds("delay_p99")),
    (Column("last passed", 6, number=True), lambda one, now, _: Text(ago(one.passed_at, now))),
    (Column("stopped most", 7, max_width=30), _stopped),
)
"""Columns from left to right, and their texts."""
