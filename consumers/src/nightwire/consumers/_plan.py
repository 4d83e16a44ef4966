"""What a reader was asked for, checked before anything is opened."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

Start = Literal["beginning", "live"]


@dataclass(frozen=True)
class Plan:
    """What to read, and from where.

    Attributes:
        topics: Their names.
        group: The group that keeps the position; None reads by assignment and commits nothing.
        since: How long ago, or when, reading begins.
        last: Begin with the newest so many of each topic.
        start: Where to begin without *since* and *last*; None lets `begins` decide.
        follow: Whether to wait for more at the end.
    """

    topics: Sequence[str]
    group: str | None = None
    since: timedelta | datetime | None = None
    last: int | None = None
    start: Start | None = None
    follow: bool = True

    def __post_init__(self) -> None:
        if faults := list(self._faults()):
            raise ValueError("; ".join(faults))

    @property
    def begins(self) -> Start:
        """Where reading begins: what was asked for, else where people expect it.

        A group begins with the oldest, so that nothing is missed; a reader without one begins live, or
        with the oldest where it is not to wait for more.
        """
        if self.start is not None:
            return self.start
        return "live" if self.group is None and self.follow else "beginning"

    def _faults(self) -> list[str]:
        asked = [name for name in ("since", "last", "start") if getattr(self, name) is not None]
        faults = [] if self.topics else ["no topic to read"]
        if len(asked) > 1:
            faults.append(f"{' and '.join(asked)} exclude each other")
        if self.last is not None and self.last < 1:
            faults.append(f"last={self.last}: ask for at least one")
        if self.last is not None and self.group is not None:
            faults.append("last reads without a group: a group goes on where it was")
        if self.start not in (None, "beginning", "live"):
            faults.append(f"start={self.start!r} is neither 'beginning' nor 'live'")
        return faults
