"""The table of `nightwire filter top`: filters at work, the dearest first.  Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from rich.console import Group
from rich.table import Table
from rich.text import Text

from nightwire.filters._sight import NOTHING, Sight, ago, spelled

BAR = 8
"""Width of the bar that shows a filter's share of the CPU time. [character]"""

GAP = 2
"""Between columns. [character]"""

BLOCKS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True)
class Frame:
    """What all rows of one table share.

    Attributes:
        now: The time.
        load: Share of a core that all filters take.
    """

    now: datetime
    load: float


Cell = Callable[[Sight, Frame], Text]


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
    cell: Cell
    turn: int = 0
    justify: Literal["left", "right"] = "right"
    most: int = 200


def top_view(sights: Iterable[Sight], now: datetime, *, width: int = 160) -> Group:
    """Return the table, under a line about all of them.

    Args:
        sights: What was seen of the live filters.
        now: The time.
        width: Of the terminal. [character]
    """
    ordered = sorted(sights, key=lambda one: (-one.load, -(one.cost_us or 0.0), one.key))
    return Group(_headline(ordered, now), Text(), _table(ordered, now, width))


def _headline(sights: Sequence[Sight], now: datetime) -> Text:
    rate, load = max((one.rate for one in sights), default=0.0), sum(one.load for one in sights)
    rows = sum(one.way == "rows" for one in sights)
    said = Text.assemble((f"{len(sights)} live filters", "bold"))
    said.append(f" · {rate:,.0f} alerts/s · {load:.1%} of a core")
    said.append(f" · {rows} judged alert by alert" if rows else "")
    said.append(f" · {now:%H:%M:%S} UTC", "dim")
    return said


def _table(sights: Sequence[Sight], now: datetime, width: int) -> Table:
    frame = Frame(now, sum(one.load for one in sights))
    cells = {column: [column.cell(one, frame) for one in sights] for column in COLUMNS}
    widths = {
        column: max([len(column.title), *(cell.cell_len for cell in some)]) for column, some in cells.items()
    }
    shown = fitting(widths, width)
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, GAP, 0, 0))
    for column, given in shown.items():
        table.add_column(column.title, justify=column.justify, no_wrap=True, min_width=given, max_width=given)
    for at, one in enumerate(sights):
        table.add_row(*(cells[column][at] for column in shown), style="" if one.way else "dim")
    return table


def fitting(widths: Mapping[Column, int], width: int) -> dict[Column, int]:
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


def _share(one: Sight, frame: Frame) -> Text:
    share = one.load / frame.load if frame.load else 0.0
    eighths = round(8 * BAR * share)
    bar = BLOCKS[8] * (eighths // 8) + (BLOCKS[eighths % 8] if eighths % 8 else "")
    return Text.assemble((bar.ljust(BAR), "cyan"), f" {share:4.0%}") if one.way else Text(NOTHING)


def _passed(one: Sight, _frame: Frame) -> Text:
    return Text(f"{one.passed:,} {one.passed / one.evaluated:7.2%}" if one.evaluated else NOTHING)


def _count(name: str, style: str = "") -> Cell:
    def cell(one: Sight, _frame: Frame) -> Text:
        value = getattr(one, name)
        return Text(f"{value:,}" if one.way else NOTHING, style if value else "dim")

    return cell


def _seconds(name: str) -> Cell:
    def cell(one: Sight, _frame: Frame) -> Text:
        value = getattr(one, name)
        return Text(NOTHING if value is None else f"{value:.2f}")

    return cell


def _stopped(one: Sight, _frame: Frame) -> Text:
    if not (stages := one.stages()):
        return Text(NOTHING, "dim")
    condition, share = stages[0]
    return Text.assemble((f"{share:4.0%} ", "dim"), condition)


COLUMNS = (
    Column("filter", lambda one, _: Text(one.key, "bold"), 0, "left"),
    Column("by", lambda one, _: Text(one.way or NOTHING, "dim"), 9, "left"),
    Column("µs/alert", lambda one, _: Text(spelled(one.cost_us)), 1),
    Column("CPU", _share, 8, "left"),
    Column("alerts/s", lambda one, _: Text(spelled(one.rate or None)), 11),
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
