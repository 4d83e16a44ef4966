"""When an archive takes what waits for it, so that the live stream does not notice.  Pure.

The four are DataStager's (Abbasi et al. 2009; EVPath uses them): constant drain, rate limiting,
state-aware congestion avoidance, and in order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nightwire.core.kafka import TopicPartition

UNBOUNDED = 1 << 62
"""All that there is. [byte]"""


@dataclass(frozen=True)
class LiveStream:
    """What is known of the stream that must not be disturbed.

    Attributes:
        moved: When somebody last wrote into it. [s, a steady clock]
        waiting: Since when something waits to be archived; None for nothing. [s, the same clock]
    """

    moved: float = float("-inf")
    waiting: float | None = None


class Schedule:
    """Decides when records are taken, and of which partitions: all there is, at once."""

    watches = False
    """Whether it asks where partitions end, several times a second, and pauses some of them."""

    def grant(self, now: float, stream: LiveStream) -> int:
        """Return how much may be taken now. [byte]  0 or less: nothing."""
        return UNBOUNDED

    def took(self, size: int) -> None:
        """Note that *size* [byte] were taken."""

    def turn(self, behind: Mapping[TopicPartition, int]) -> Sequence[TopicPartition]:
        """Return the partitions whose turn it is; *behind*: records that each has left."""
        return [*behind]


class RateLimit(Schedule):
    """Takes so many bytes a second, with a second's worth at once.

    Args:
        rate: How many. [byte/s]
    """

    def __init__(self, rate: int) -> None:
        self._rate, self._left, self._at = rate, float(rate), float("-inf")

    def grant(self, now: float, stream: LiveStream) -> int:
        """Return what has gathered by *now*."""
        gathered = self._left + (now - self._at) * self._rate
        self._left, self._at = min(gathered, float(self._rate)), now
        return int(self._left)

    def took(self, size: int) -> None:
        """Take *size* off what has gathered; a record that is longer is paid for afterwards."""
        self._left -= size


class StateAware(Schedule):
    """Takes while nobody writes: between the visits of a telescope.

    Args:
        quiet: Nobody has written for so long. [s]
        longest: What waits for so long is taken all the same. [s]
    """

    watches = True

    def __init__(self, quiet: float = 1.0, longest: float = 120.0) -> None:
        self._quiet, self._longest = quiet, longest

    def grant(self, now: float, stream: LiveStream) -> int:
        """Return all, or nothing."""
        late = stream.waiting is not None and now - stream.waiting > self._longest
        return UNBOUNDED if late or now - stream.moved >= self._quiet else 0


class InOrder(Schedule):
    """Takes one partition after the other, each until nothing of it waits: long runs, few files."""

    watches = True

    def __init__(self) -> None:
        self._current: TopicPartition | None = None

    def turn(self, behind: Mapping[TopicPartition, int]) -> Sequence[TopicPartition]:
        """Return the partition whose turn it is; the next one in order when it has nothing left."""
        if self._current is None or not behind.get(self._current):
            ordered = [one for one in sorted(behind) if behind[one]]
            later = [one for one in ordered if self._current is None or one > self._current]
            self._current = next(iter(later or ordered), self._current)
        return [one for one in behind if one == self._current] or [*behind]


SCHEDULES: Mapping[str, Callable[[int], Schedule]] = {
    "constant": lambda rate: Schedule(),
    "rate": RateLimit,
    "state": lambda rate: StateAware(),
    "order": lambda rate: InOrder(),
}
"""Makers of schedules, by their names on the command line, given a rate [byte/s]."""
