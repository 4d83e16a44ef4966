"""What to mirror, and from where in it: pure."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

DATE = "{date}"
"""Stands for the night in a topic's pattern: YYYYMMDD, UTC."""


@dataclass(frozen=True)
class Start:
    """Where a new topic of the source begins.

    Attributes:
        at: At this time; None for one of the two ends.
        live: At its end rather than at its beginning.
    """

    at: datetime | None = None
    live: bool = False


@dataclass(frozen=True)
class Topics:
    """Which topics of the source are wanted.

    Attributes:
        names: Their names.
        patterns: Names with ``{date}`` in them, a topic for each night.
    """

    names: Sequence[str] = ()
    patterns: Sequence[str] = ()

    def among(self, there: Iterable[str]) -> list[str]:
        """Return those of the topics *there* that are wanted, sorted."""
        return sorted(topic for topic in there if topic in self.names or self.pattern_of(topic))

    def pattern_of(self, topic: str) -> str | None:
        """Return the pattern that *topic* is a night of."""
        return next((pattern for pattern in self.patterns if night(pattern, topic)), None)

    def is_new(self, topic: str, seen: Collection[str]) -> bool:
        """Whether `Start` applies to *topic*: it and the nights of its pattern were not *seen*.

        A new night of a pattern whose other nights are known is read from its beginning.
        """
        pattern = self.pattern_of(topic)
        if topic in seen:
            return False
        return pattern is None or not any(night(pattern, other) for other in seen)


@dataclass(frozen=True)
class Plan:
    """What one run does.

    Attributes:
        survey: Name of the survey; its alerts go to ``alerts.<survey>``.
        source: Name of the source in accounts and headers.
        topics: Which of its topics to mirror.
        start: Where a new topic begins.
        as_is: Pass whole messages on as they are, rather than in wire format.
        until_end: Stop at the end that the source had at the start.
        quiet: A visit without alerts for so long is over. [s]
        patience: How long an alert waits for a schema that no registry has. [s]
        batch: Longest time that a transaction is collected. [s]
    """

    survey: str
    source: str
    topics: Topics
    start: Start = field(default_factory=Start)
    as_is: bool = False
    until_end: bool = False
    quiet: float = 30.0
    patience: float = 300.0
    batch: float = 0.5

    @property
    def prefix(self) -> str:
        """Begins the sources in its accounts."""
        return f"{self.survey}/{self.source}/"


def night(pattern: str, topic: str) -> str | None:
    """Return the night (YYYYMMDD) of a *topic* that matches *pattern*, else None."""
    before, _, after = pattern.partition(DATE)
    found = re.fullmatch(rf"{re.escape(before)}(\d{{8}}){re.escape(after)}", topic)
    if found is None:
        return None
    try:
        datetime.strptime(found[1], "%Y%m%d").replace(tzinfo=UTC)
    except ValueError:
        return None
    return found[1]
