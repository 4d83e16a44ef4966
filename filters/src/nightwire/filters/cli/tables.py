"""Tables of filters that people read in the terminal."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from rich.console import Group
from rich.table import Table
from rich.text import Text

from nightwire.filters.cli.queries import ListedFilter
from nightwire.filters.cli.summaries import UNKNOWN, FilterSummary, ago, number_text

COUNTS = ("evaluated", "passed", "capped", "rejected", "faulted")


def list_table(lines: Iterable[ListedFilter], seen: Mapping[str, FilterSummary], now: datetime) -> Table:
    """Return one row per filter: its state, what became of the alerts that it judged, and what it costs.

    Args:
        lines: The filters.
        seen: What was seen of them at work, as far as we may know.
        now: The time.
    """
    table = _table("filter", "version", "survey", "cap", counts=(*COUNTS, "µs/alert"))
    table.add_column("last passed", justify="right")
    table.add_column("state")
    for line in lines:
        key = f"{line.owner}/{line.name}"
        one = seen.get(key, FilterSummary(key))
        table.add_row(
            key, str(line.version), line.survey, _cap(line),
            *(f"{getattr(line, name):,}" for name in COUNTS),
            number_text(one.cost_us), ago(one.passed_at, now), line.state,
        )  # fmt: skip
    return table


def listed_json(line: ListedFilter, seen: Mapping[str, FilterSummary]) -> dict[str, Any]:
    """Return a filter as JSON has it: the line, and what was seen of it at work; null where nobody knows."""
    one = seen.get(f"{line.owner}/{line.name}")
    names = ("cost_us", "delay_p50", "delay_p99", "passed_at", "stopped")
    return asdict(line) | {name: getattr(one, name, None) for name in names}


def overflow_table(found: Iterable[Mapping[str, Any]]) -> Table:
    """Return one row per alert that was cut off."""
    table = _table("visit", "survey", "alert", "rank", "cut off", "lies at")
    for one in found:
        rank = "" if one["rank"] is None else f"{one['rank']:g}"
        place = f"{one['topic']}[{one['partition']}] {one['offset']}"
        visit = "" if one["visit"] is None else str(one["visit"])
        table.add_row(visit, one["survey"], one["alert"], rank, f"{one['time']:%Y-%m-%d %H:%M:%S} UTC", place)
    return table


def _table(*columns: str, counts: Sequence[str] = ()) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:  # a filter's name is never cut off
        table.add_column(column, no_wrap=column == columns[0], overflow="fold")
    for column in counts:
        table.add_column(column, justify="right")
    return table


def _cap(line: ListedFilter) -> str:
    return f"{line.cap} {line.choice}" if line.cap else "none"


BAR = 8
"""Width of the bar that shows a filter's share of the CPU time. [character]"""

GAP = 2
"""Between columns. [character]"""

BLOCKS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True)
class TableContext:
    """What all rows of one table share.

    Attributes:
        now: The time.
        load: Share of a core that all filters take.
    """

    now: datetime
    load: float


CellText = Callable[[FilterSummary, TableContext], Text]


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        title: Its heading.
        cell: What it says of a filter.
        turn: In a narrow terminal columns are left out from the highest on.
        justify: ``left`` or ``right``.
        most: What it needs at most; beyond, it may be cut off. [character]
    """

    title: str
    cell: CellText
    turn: int = 0
    justify: Literal["left", "right"] = "right"
    most: int = 200


def top_view(sights: Iterable[FilterSummary], now: datetime, *, width: int = 160) -> Group:
    """Return the table, under a line about all of them.

    Args:
        sights: What was seen of the live filters.
        now: The time.
        width: Of the terminal. [character]
    """
    ordered = sorted(sights, key=lambda one: (-one.load, -(one.cost_us or 0.0), one.key))
    return Group(_headline(ordered, now), Text(), _summary_table(ordered, now, width))


def _headline(sights: Sequence[FilterSummary], now: datetime) -> Text:
    rate, load = max((one.rate for one in sights), default=0.0), sum(one.load for one in sights)
    rows = sum(one.way == "rows" for one in sights)
    said = Text.assemble((f"{len(sights)} live filters", "bold"))
    said.append(f" · {rate:,.0f} alerts/s · {load:.1%} of a core")
    said.append(f" · {rows} judged alert by alert" if rows else "")
    said.append(f" · {now:%H:%M:%S} UTC", "dim")
    return said


def _summary_table(sights: Sequence[FilterSummary], now: datetime, width: int) -> Table:
    frame = TableContext(now, sum(one.load for one in sights))
    cells = {column: [column.cell(one, frame) for one in sights] for column in COLUMNS}
    widths = {
        column: max([len(column.title), *(cell.cell_len for cell in some)]) for column, some in cells.items()
    }
    shown = fitting_columns(widths, width)
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, GAP, 0, 0))
    for column, given in shown.items():
        table.add_column(column.title, justify=column.justify, no_wrap=True, min_width=given, max_width=given)
    for at, one in enumerate(sights):
        table.add_row(*(cells[column][at] for column in shown), style="" if one.way else "dim")
    return table


def fitting_columns(widths: Mapping[Column, int], width: int) -> dict[Column, int]:
    """Return the columns that fit into *width*, those that matter most before others, and what each gets.

    Args:
        widths: What each column would need. [character]
        width: Of the terminal. [character]
    """
    left, given = width, {}
    for column in sorted(widths, key=lambda column: column.turn):
        needed = min(widths[column], column.most)
        if needed <= left:
            given[column] = needed
            left -= needed + GAP
    for column in given:
        more = min(widths[column] - given[column], max(0, left + GAP))
        given[column] += more
        left -= more
    return {column: given[column] for column in widths if column in given}


def _share(one: FilterSummary, frame: TableContext) -> Text:
    share = one.load / frame.load if frame.load else 0.0
    eighths = round(8 * BAR * share)
    bar = BLOCKS[8] * (eighths // 8) + (BLOCKS[eighths % 8] if eighths % 8 else "")
    return Text.assemble((bar.ljust(BAR), "cyan"), f" {share:4.0%}") if one.way else Text(UNKNOWN)


def _passed(one: FilterSummary, _frame: TableContext) -> Text:
    return Text(f"{one.passed:,} {one.passed / one.evaluated:7.2%}" if one.evaluated else UNKNOWN)


def _count(name: str, style: str = "") -> CellText:
    def cell(one: FilterSummary, _frame: TableContext) -> Text:
        value = getattr(one, name)
        return Text(f"{value:,}" if one.way else UNKNOWN, style if value else "dim")

    return cell


def _seconds(name: str) -> CellText:
    def cell(one: FilterSummary, _frame: TableContext) -> Text:
        value = getattr(one, name)
        return Text(UNKNOWN if value is None else f"{value:.2f}")

    return cell


def _stopped(one: FilterSummary, _frame: TableContext) -> Text:
    if not (stages := one.stages()):
        return Text(UNKNOWN, "dim")
    condition, share = stages[0]
    return Text.assemble((f"{share:4.0%} ", "dim"), condition)


COLUMNS = (
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
    Column("last passed", lambda one, frame: Text(ago(one.passed_at, frame.now)), 6),
    Column("stopped most", _stopped, 7, "left", most=30),
)
"""In their order."""
