"""What a dashboard is made of: panels in rows, as plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

RATE = "count:/s"
"""Grafana's name of the unit 1/s, in thousands where there are many."""


class Kind(Enum):
    """How a panel draws."""

    NUMBER = "stat"
    LINES = "timeseries"
    TABLE = "table"


@dataclass(frozen=True)
class Panel:
    """One picture.

    Attributes:
        title: What it is, in a few words.
        meaning: What one should think when one sees it.
        queries: Legend of each query: PromQL.
        unit: Grafana's name of the unit; where there is none, lines are in thousands, all else is
            exact.
        red_above: Value from which it is red; None where no value is bad.
        red_below: The same for values that should be high.
        kind: How it draws.
        width: Of the page's 24 columns.
        empty: When it has no data although nothing is wrong with it, to be read after "Empty".
        named: Whether it is the legend that one wants to see, not its value.
    """

    title: str
    meaning: str
    queries: Mapping[str, str]
    unit: str = ""
    red_above: float | None = None
    red_below: float | None = None
    kind: Kind = Kind.LINES
    width: int = 8
    empty: str = ""
    named: bool = False


@dataclass(frozen=True)
class Row:
    """Panels under a heading.

    Attributes:
        title: The heading.
        panels: From left to right.
        empty: When none of them has data although nothing is wrong, as in `Panel`.
    """

    title: str
    panels: Sequence[Panel] = field(default_factory=tuple)
    empty: str = ""


def number_panel(
    title: str, meaning: str, queries: Mapping[str, str], *, width: int = 4, **more: Any
) -> Panel:
    """Return a panel of one figure, of which six fill a row unless they are wider."""
    return Panel(title, meaning, queries, kind=Kind.NUMBER, width=width, **more)


def description(row: Row, panel: Panel) -> str:
    """Return what is written at a panel: what it means, and when it is empty."""
    reasons = dict.fromkeys(reason for reason in (panel.empty, row.empty) if reason)
    return " ".join([panel.meaning, *(f"Empty {reason}." for reason in reasons)])


def no_value_text(row: Row, panel: Panel) -> str:
    """Return what a panel shows in place of data that may be missing; empty where they may not."""
    reason = panel.empty or row.empty
    return f"Empty {reason}" if reason else ""


def quantile(share: float, histogram: str, by: str = "", **labels: str) -> str:
    """Return the PromQL of a histogram's quantile over five minutes.

    Args:
        share: Which quantile. [0 to 1]
        histogram: Name of the metric.
        by: Label of which each value gets a quantile of its own.
        labels: Only series with these labels count.
    """
    grouped = f"le, {by}" if by else "le"
    chosen = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    buckets = f"{histogram}_bucket{{{chosen}}}" if labels else f"{histogram}_bucket"
    return f"histogram_quantile({share:g}, sum by ({grouped}) (rate({buckets}[5m])))"


def queries(rows: Sequence[Row], *, rare: bool = True) -> list[str]:
    """Return every query; without *rare*, only those that have data wherever nightwire works."""
    return [
        query
        for row in rows
        for panel in row.panels
        if rare or not (panel.empty or row.empty)
        for query in panel.queries.values()
    ]
