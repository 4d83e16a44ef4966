"""What a dashboard is made of: panels in rows, as plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


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
        unit: Grafana's name of the unit.
        red_above: Value from which it is red; None where no value is bad.
        red_below: The same for values that should be high.
        kind: How it draws.
        width: Of the page's 24 columns.
        rare: Whether it may be empty on a good night.
    """

    title: str
    meaning: str
    queries: Mapping[str, str]
    unit: str = "short"
    red_above: float | None = None
    red_below: float | None = None
    kind: Kind = Kind.LINES
    width: int = 8
    rare: bool = False


@dataclass(frozen=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: Sequence[Panel] = field(default_factory=tuple)


def quantile(share: float, histogram: str, by: str = "") -> str:
    """Return the PromQL of a quantile of a histogram over five minutes; for each *by*, if given."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share:g}, sum by ({labels}) (rate({histogram}_bucket[5m])))"


def queries(rows: Sequence[Row], *, rare: bool = True) -> list[str]:
    """Return every query; without the *rare* ones, those that must have an answer after a real run."""
    return [
        query
        for row in rows
        for panel in row.panels
        if rare or not panel.rare
        for query in panel.queries.values()
    ]
