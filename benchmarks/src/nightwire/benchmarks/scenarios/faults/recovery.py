"""A stream's recovery from a fault: gaps, delays, backlog, and what is missing.  Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from nightwire.benchmarks import RunError

NAMED = 20
"""Most losses that a message names; it counts the rest."""

Times = Mapping[str, float]
"""A moment for each name. [s, monotonic]"""


@dataclass(frozen=True)
class Recovery:
    """How soon a stream was well again after a restart. [s]

    Attributes:
        first: Until the first delivery of something that was due after the fault.
        backlog: Until nothing waited any more that was due so long ago as the slowest delivery
            before the fault had taken.
    """

    first: float
    backlog: float


def firsts(arrivals: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return when each name came first."""
    found: dict[str, float] = {}
    for name, when in arrivals:
        found[name] = min(when, found.get(name, when))
    return found


def twice(arrivals: Sequence[tuple[str, float]]) -> int:
    """Return how many arrivals were not the first of their name."""
    return len(arrivals) - len({name for name, _ in arrivals})


def check(what: str, sent: Iterable[str], read: Iterable[str]) -> None:
    """Raise unless as sets *sent* and *read* are equal.

    Raises:
        RunError: Something was lost, or read and never sent; the message names it.
    """
    sent, read = set(sent), set(read)
    faults = {"lost": sorted(sent - read), "never sent but read": sorted(read - sent)}
    named = [f"{len(names):,} {word}: {listed(names)}" for word, names in faults.items() if names]
    if named:
        raise RunError(f"of {len(sent):,} {what} " + "; ".join(named))


def listed(names: Sequence[str]) -> str:
    """Return the first `NAMED` of *names*, and how many more there are."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def longest_gap(times: Iterable[float]) -> float:
    """Return the longest time between two deliveries in a row; 0 where there are not two. [s]"""
    return max((later - sooner for sooner, later in pairwise(sorted(times))), default=0.0)


def recovery(due: Times, arrived: Times, *, killed: float, restarted: float) -> Recovery:
    """Return how soon all was well again.

    Args:
        due: When each thing was due; all of them arrived.
        arrived: When each came first.
        killed: When the fault was made.
        restarted: When what was killed was started again; from here the times count.

    Raises:
        RunError: Nothing was due after the fault.
    """
    after = [arrived[name] for name, moment in due.items() if moment > killed]
    if not after:
        raise RunError("nothing was due after the fault: the stream was too short")
    usual = max((arrived[name] - due[name] for name in due if arrived[name] <= killed), default=0.0)
    first = max(restarted, min(after))
    return Recovery(first - restarted, _caught_up(due, arrived, usual, first) - restarted)


def _caught_up(due: Times, arrived: Times, usual: float, since: float) -> float:
    """Return when, from *since* on, nothing waits any more that was due *usual* ago."""
    ordered = sorted(due, key=due.__getitem__)
    moments = [due[name] for name in ordered]
    # when all up to here had come
    through = list(accumulate((arrived[name] for name in ordered), max))
    for moment in sorted({since, *(when for when in arrived.values() if when > since)}):
        waited_for = bisect_right(moments, moment - usual)
        if not waited_for or through[waited_for - 1] <= moment:
            return moment
    return max(since, through[-1])
