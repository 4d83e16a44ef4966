"""Tables for the terminal: the list of filters, filters at work (`top`), overflow.  Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from rich.console import Group
from rich.table import Table
from rich.text import Text

from nightwire.filters.cli.queries import ListedFilter
from nightwire.filters.cli.summaries import UNKNOWN, FilterSummary, ago, number_text

COUNTS = ("evaluated", "passed", "capped", "rejected", "faulted")
"""Counts in the list of filters."""

BAR = 8
"""Width of the bar that shows a filter's share of the CPU time. [character]"""

GAP = 2
"""Space between columns. [character]"""

BLOCKS = " ▏▎▍▌▋▊▉█"


def list_table(
    listed: Iterable[ListedFilter], summaries: Mapping[str, FilterSummary], now: datetime
) -> Table:
    """Return one row per filter: its state, the counts of the alerts that it judged, and its cost.

    Args:
        listed: The filters.
        summaries: Those at work whose topics we may read, by ``owner/name``.
        now: The time.
    """
    table = _table("filter", "version", "survey", "cap", counts=(*COUNTS, "µs/alert"))
    table.add_column("last passed", justify="right")
    table.add_column("state")
    for one in listed:
        record, counts = one.record, one.counts()
        summary = summaries.get(one.key, FilterSummary(one.key))
        table.add_row(
            one.key, str(record["version"]), record["survey"],
            f"{record['cap']} {record['choice']}" if record["cap"] else "none",
            *(f"{counts[name]:,}" for name in COUNTS),
            number_text(summary.cost_us), ago(summary.passed_at, now), one.state,
        )  # fmt: skip
    return table


def listed_json(listed: ListedFilter, summaries: Mapping[str, FilterSummary]) -> dict[str, Any]:
    """Return a filter for JSON, with what its summary adds; null without a summary."""
    summary = summaries.get(listed.key)
    names = ("cost_us", "delay_p50", "delay_p99", "passed_at", "stopped")
    return listed.json() | {name: getattr(summary, name, None) for name in names}


def overflow_table(found: Iterable[Mapping[str, Any]]) -> Table:
    """Return one row per alert that a cap cut off."""
    table = _table("visit", "survey", "alert", "rank", "cut off", "lies at")
    for one in found:
        rank = "" if one["rank"] is None else f"{one['rank']:g}"
        position = f"{one['topic']}[{one['partition']}] {one['offset']}"
        visit = "" if one["visit"] is None else str(one["visit"])
        time = f"{one['time']:%Y-%m-%d %H:%M:%S} UTC"
        table.add_row(visit, one["survey"], one["alert"], rank, time, position)
    return table


def _table(*columns: str, counts: Sequence[str] = ()) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:  # a filter's name is never cut off
        table.add_column(column, no_wrap=column == columns[0], overflow="fold")
    for column in counts:
        table.add_column(column, justify="right")
    return table


@dataclass(frozen=True)
class TableContext:
    """Values that all rows of one table share.

    Attributes:
        now: The time.
        load: Share of a core that all filters take together.
    """

    now: datetime
    load: float


CellText = Callable[[FilterSummary, TableContext], Text]


@dataclass(frozen=True)
class Column:
    """One column of the table of filters at work.

    Attributes:
        title: Its heading.
        cell: Returns its text for one filter.
        order: In a narrow terminal the columns of the highest order are left out.
        justify: ``left`` or ``right``.
        max_width: Width beyond which its text may be cut off. [character]
    """

    title: str
    cell: CellText
    order: int = 0
    justify: Literal["left", "right"] = "right"
    max_width: int = 200


def top_view(summaries: Iterable[FilterSummary], now: datetime, *, width: int = 160) -> Group:
    """Return the table of filters at work, the dearest first, under a line about all of them.

    Args:
        summaries: The live filters.
        now: The time.
        width: Width of the terminal. [character]
    """
    ordered = sorted(summaries, key=lambda one: (-one.load, -(one.cost_us or 0.0), one.key))
    return Group(_headline(ordered, now), Text(), _top_table(ordered, now, width))


def _headline(summaries: Sequence[FilterSummary], now: datetime) -> Text:
    rate, load = max((one.rate for one in summaries), default=0.0), sum(one.load for one in summaries)
    rows = sum(one.way == "rows" for one in summaries)
    line = Text.assemble((f"{len(summaries)} live filters", "bold"))
    line.append(f" · {rate:,.0f} alerts/s · {load:.1%} of a core")
    line.append(f" · {rows} judged alert by alert" if rows else "")
    line.append(f" · {now:%H:%M:%S} UTC", "dim")
    return line


def _top_table(summaries: Sequence[FilterSummary], now: datetime, width: int) -> Table:
    context = TableContext(now, sum(one.load for one in summaries))
    cells = {column: [column.cell(one, context) for one in summaries] for column in TOP_COLUMNS}
    widths = {
        column: max([len(column.title), *(cell.cell_len for cell in some)]) for column, some in cells.items()
    }
    shown = fitting_columns(widths, width)
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, GAP, 0, 0))
    for column, given in shown.items():
        table.add_column(column.title, justify=column.justify, no_wrap=True, min_width=given, max_width=given)
    for at, one in enumerate(summaries):
        table.add_row(*(cells[column][at] for column in shown), style="" if one.way else "dim")
    return table


def fitting_columns(widths: Mapping[Column, int], width: int) -> dict[Column, int]:
    """Return the columns that fit into *width*, the important ones first, with their widths.

    Args:
        widths: Width that each column needs. [character]
        width: Width of the terminal. [character]
    """
    left, given = width, {}
    for column in sorted(widths, key=lambda column: column.order):
        needed = min(widths[column], column.max_width)
        if needed <= left:
            given[column] = needed
            left -= needed + GAP
    for column in given:
        more = min(widths[column] - given[column], max(0, left + GAP))
        given[column] += more
        left -= more
    return {column: given[column] for column in widths if column in given}


def _share(one: FilterSummary, context: TableContext) -> Text:
    share = one.load / context.load if context.load else 0.0
    eighths = round(8 * BAR * share)
    bar = BLOCKS[8] * (eighths // 8) + (BLOCKS[eighths % 8] if eighths % 8 else "")
    return Text.assemble((bar.ljust(BAR), "cyan"), f" {share:4.0%}") if one.way else Text(UNKNOWN)


def _passed(one: FilterSummary, _context: TableContext) -> Text:
    return Text(f"{one.passed:,} {one.passed / one.evaluated:7.2%}" if one.evaluated else UNKNOWN)


def _count(name: str, style: str = "") -> CellText:
    def cell(one: FilterSummary, _context: TableContext) -> Text:
        value = getattr(one, name)
        return Text(f"{value:,}" if one.way else UNKNOWN, style if value else "dim")

    return cell


def _seconds(name: str) -> CellText:
    def cell(one: FilterSummary, _context: TableContext) -> Text:
        value = getattr(one, name)
        return Text(UNKNOWN if value is None else f"{value:.2f}")

    return cell


def _stopped(one: FilterSummary, _context: TableContext) -> Text:
    if not (stages := one.stages()):
        return Text(UNKNOWN, "dim")
    condition, share = stages[0]
    return Text.assemble((f"{share:4.0%} ", "dim"), condition)


TOP_COLUMNS = (
    Column("filter", lambda one, _: Text(one.key, "bold"), 0, "left"),
    Column("by", lambda one, _: Text(one.way or UNKNOWN, "dim"), 9, "left"),
    Column("µs/alert", lambda one, _: Text(number_text(one.cost_us)), 1),
    Column("CPU", _share, 8, "left"),
    Column("alerts/s", lambda one, _: Text(number_text(one.rate or None)), 11),
    Column("passed", _passed, 2),
    Column("sent", _count("sent"), 10),
    Column("cut off", _count("capped", "yellow"), 3),
    Column("failed", _count("faulted", "red"), 4),
    Column("p50 s", _seconds("delay_p50"), 12),
    Column("p99 s", _seconds("delay_p99"), 5),
    Column("last passed", lambda one, context: Text(ago(one.passed_at, context.now)), 6),
    Column("stopped most", _stopped, 7, "left", max_width=30),
)
"""Columns from left to right."""
