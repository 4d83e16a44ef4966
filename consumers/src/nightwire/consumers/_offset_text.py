"""Where a group stands, for people and for programs."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from nightwire.consumers._offsets import Member, Move, Position


def as_record(group: str, positions: Sequence[Position], members: Sequence[Member]) -> dict[str, Any]:
    """Return what JSON has of a group."""
    return {
        "group": group,
        "positions": [
            {
                "topic": one.spot[0],
                "partition": one.spot[1],
                "committed": one.committed,
                "oldest": one.span[0],
                "end": one.span[1],
                "behind": one.behind,
                "expired": one.expired,
            }
            for one in positions
        ],
        "members": [
            {"name": one.name, "host": one.host, "partitions": [list(spot) for spot in one.spots]}
            for one in members
        ],
    }


def table(positions: Sequence[Position], members: Sequence[Member]) -> Table:
    """Return a row a partition, with who reads it."""
    owners = {spot: str(one) for one in members for spot in one.spots}
    rows = Table(box=None, pad_edge=False, header_style="bold")
    rows.add_column("topic", overflow="fold")
    for name in ("partition", "committed", "oldest", "end", "behind", "expired"):
        rows.add_column(name, justify="right")
    rows.add_column("read by", overflow="fold")
    for one in positions:
        numbers = (one.committed, *one.span, one.behind, one.expired)
        cells = (f"{number:,}" if number else "·" for number in numbers)
        rows.add_row(one.spot[0], str(one.spot[1]), *cells, owners.get(one.spot, ""))
    return rows


def move_line(move: Move) -> str:
    """Return a change in one line."""
    topic, partition = move.spot
    now = "nowhere" if move.now is None else str(move.now)
    return f"{topic}[{partition}]: {now} -> {move.then}"
