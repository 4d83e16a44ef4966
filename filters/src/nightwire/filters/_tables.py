"""Tables of filters that people read in the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table

from nightwire.filters._listing import Line

COUNTS = ("evaluated", "passed", "capped", "rejected", "faulted")


def list_table(lines: Iterable[Line]) -> Table:
    """Return one row per filter: its state, and what became of the alerts that it judged."""
    table = _table("filter", "version", "survey", "cap", counts=COUNTS)
    table.add_column("state")
    for line in lines:
        counts = (f"{getattr(line, name):,}" for name in COUNTS)
        table.add_row(
            f"{line.owner}/{line.name}", str(line.version), line.survey, _cap(line), *counts, line.state
        )
    return table


def top_table(now: Sequence[Line], before: Sequence[Line] = (), seconds: float = 1.0) -> Table:
    """Return one row per live filter, those that judged most in the last *seconds* [s] first."""
    table = _table(
        "filter", "judged by", counts=("alerts/s", "evaluated", "passed", "%", "sent", "capped", "faulted")
    )
    earlier = {line.topic: line.evaluated for line in before}
    rates = {line.topic: (line.evaluated - earlier.get(line.topic, line.evaluated)) / seconds for line in now}
    for line in sorted(now, key=lambda line: (-rates[line.topic], -line.evaluated)):
        if line.live:
            share = f"{100 * line.passed / line.evaluated:.2f}" if line.evaluated else "·"
            numbers = (line.evaluated, line.passed, line.sent, line.capped, line.faulted)
            shown = [f"{number:,}" for number in numbers]
            table.add_row(
                f"{line.owner}/{line.name}",
                _way(line),
                f"{rates[line.topic]:,.0f}",
                *shown[:2],
                share,
                *shown[2:],
            )
    return table


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


def _way(line: Line) -> str:
    return "columns" if line.compiled else "rows"
