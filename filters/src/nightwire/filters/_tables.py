"""Tables of filters that people read in the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from rich.table import Table

from nightwire.filters._listing import Line
from nightwire.filters._sight import Sight, ago, spelled

COUNTS = ("evaluated", "passed", "capped", "rejected", "faulted")


def list_table(lines: Iterable[Line], seen: Mapping[str, Sight], now: datetime) -> Table:
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
        one = seen.get(key, Sight(key))
        table.add_row(
            key, str(line.version), line.survey, _cap(line),
            *(f"{getattr(line, name):,}" for name in COUNTS),
            spelled(one.cost_us), ago(one.passed_at, now), line.state,
        )  # fmt: skip
    return table


def listed(line: Line, seen: Mapping[str, Sight]) -> dict[str, Any]:
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


def _cap(line: Line) -> str:
    return f"{line.cap} {line.choice}" if line.cap else "none"
