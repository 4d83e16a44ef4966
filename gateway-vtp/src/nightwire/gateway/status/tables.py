"""The status of a gateway as tables, for the browser and the terminal.  Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Status = Mapping[str, Any]
"""What `Board.status` returns."""
Row = Mapping[str, Any]

NONE = "·"
"""The text of an empty cell."""


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        title: Its heading.
        text: Makes the text of a row.
        number: Whether it is a number, set to the right.
        whole: Whether it is not to be broken into lines.
    """

    title: str
    text: Callable[[Row], str]
    number: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of one kind.

    Attributes:
        title: What they are.
        key: Where the status has them.
        columns: Its columns.
        nothing: Its text where there are no rows.
    """

    title: str
    key: str
    columns: Sequence[Column]
    nothing: str


def ago(seconds: float | None) -> str:
    """Return how long ago something was, in one unit."""
    if seconds is None:
        return "never"
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{max(seconds, 0):.0f} s ago"


def _rate(row: Row) -> str:
    rate = float(row["rate"])
    return f"{rate:,.1f}/s" if rate >= 0.1 else f"{60 * rate:.1f}/min" if rate > 0.001 else NONE


def _count(name: str) -> Callable[[Row], str]:
    return lambda row: f"{row[name]:,}" if row[name] else NONE


def _plain(name: str) -> Callable[[Row], str]:
    return lambda row: str(row[name] or NONE)


def _outcomes(row: Row) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in row["outcomes"].items()) or NONE


def _filters(row: Row) -> str:
    return " | ".join(row["filters"]) or "all"


def _link(row: Row) -> str:
    return "connected" if row["connected"] else f"away: {row['reason'] or 'connecting'}"


def _last(row: Row) -> str:
    return ago(row["silent_s"])


_LAST = Column("last event", _last, number=True)
_RATE = Column("rate", _rate, number=True)
_ADDRESS = Column("address", _plain("address"), whole=True)
_FEED = Column("feed", _plain("feed"), whole=True)
_WHAT = Column("last ivorn", _plain("last_ivorn"))

TABLES = (
    Table(
        "Feeds",
        "feeds",
        (
            _FEED,
            _LAST,
            Column("events", _count("events"), number=True),
            _RATE,
            _WHAT,
        ),
        "there are no feeds",
    ),
    Table(
        "Subscribers",
        "subscribers",
        (
            _ADDRESS,
            Column("IVOID", _plain("ivoid")),
            _FEED,
            Column("filters", _filters),
            _LAST,
            Column("sent", _count("sent"), number=True),
            Column("acked", _count("acked"), number=True),
            Column("refused", _count("naked"), number=True),
            Column("lag", _count("lag"), number=True),
            _RATE,
        ),
        "nobody is subscribed",
    ),
    Table(
        "Remote brokers",
        "remotes",
        (
            _ADDRESS,
            Column("state", _link),
            Column("since", _plain("since"), whole=True),
            _LAST,
            Column("events", _outcomes),
            _RATE,
        ),
        "we subscribe to none: --remote HOST:PORT",
    ),
    Table(
        "Authors",
        "authors",
        (
            _ADDRESS,
            _LAST,
            Column("events", _outcomes),
            _RATE,
            _WHAT,
            Column("last refused because", _plain("last_reason")),
        ),
        "nobody has sent anything",
    ),
    Table(
        "Refused connections",
        "refused",
        (
            Column("role", _plain("role")),
            Column("reason", _plain("reason")),
            Column("times", _count("count"), number=True),
            Column("last from", _plain("last_from"), whole=True),
            Column("at", _plain("last"), whole=True),
        ),
        "none",
    ),
    Table(
        "Subscribers that left",
        "left",
        (
            _ADDRESS,
            Column("IVOID", _plain("ivoid")),
            _FEED,
            Column("left", _plain("left"), whole=True),
            Column("sent", _count("sent"), number=True),
            Column("acked", _count("acked"), number=True),
        ),
        "none yet",
    ),
)


def cells(table: Table, status: Status) -> list[list[str]]:
    """Return the text of each row of *table*."""
    return [[column.text(row) for column in table.columns] for row in status[table.key]]
