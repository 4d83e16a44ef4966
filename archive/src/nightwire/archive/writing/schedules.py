"""The schedules by which an archive reads, so as not to disturb the live stream.  Pure.

The four are DataStager's (Abbasi et al. 2009; EVPath uses them): constant drain, rate limiting,
state-aware congestion avoidance, and in order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nightwire.core.kafka import TopicPartition

UNBOUNDED = 1 << 62
"""An allowance without limit. [byte]"""


@dataclass(frozen=True)
class StreamState:
    """The state of the live stream, which must not be disturbed.

    Attributes:
        last_write: Time of the last write into it. [s, monotonic]
        lag_since: Time when the present lag began; None for no lag. [s, monotonic]
    """

    last_write: float = float("-inf")
    lag_since: float | None = None


class Schedule:
    """Decides when records are read, and of which partitions: of all, at once, by these methods."""

    needs_lag = False
    """Whether it needs the partitions' end offsets, several times a second, and pauses some."""

    def allowance(self, now: float, stream: StreamState) -> int:
        """Return the number of bytes that may be read now; 0 or less for none."""
        return UNBOUNDED

    def consume(self, size: int) -> None:
        """Take *size* [byte], which were read, off the allowance."""

    def partitions(self, lags: Mapping[TopicPartition, int]) -> Sequence[TopicPartition]:
        """Return the partitions to read; *lags*: records that each has left."""
        return [*lags]


class ConstantDrain(Schedule):
    """Reads all partitions, at once."""


class RateLimit(Schedule):
    """Limits the rate, by a token bucket that holds a second's worth.

    Args:
        rate: The bytes that may be read. [byte/s]
    """

    def __init__(self, rate: int) -> None:
        self._rate, self._tokens, self._filled_at = rate, float(rate), float("-inf")

    def allowance(self, now: float, stream: StreamState) -> int:
        """Return the tokens in the bucket."""
        filled = self._tokens + (now - self._filled_at) * self._rate
        self._tokens, self._filled_at = min(filled, float(self._rate)), now
        return int(self._tokens)

    def consume(self, size: int) -> None:
        """Take *size* tokens; after a record that is longer than the bucket there is a debt."""
        self._tokens -= size


class StateAware(Schedule):
    """Reads while nobody writes: between the visits of a telescope.

    Args:
        quiet: Time without a write after which it reads. [s]
        max_wait: Time after which waiting records are read all the same. [s]
    """

    needs_lag = True

    def __init__(self, quiet: float = 1.0, max_wait: float = 120.0) -> None:
        self._quiet, self._max_wait = quiet, max_wait

    def allowance(self, now: float, stream: StreamState) -> int:
        """Return `UNBOUNDED` or 0."""
        late = stream.lag_since is not None and now - stream.lag_since > self._max_wait
        return UNBOUNDED if late or now - stream.last_write >= self._quiet else 0


class InOrder(Schedule):
    """Reads one partition after the other, each until it has no lag: long runs, few files."""

    needs_lag = True

    def __init__(self) -> None:
        self._current: TopicPartition | None = None

    def partitions(self, lags: Mapping[TopicPartition, int]) -> Sequence[TopicPartition]:
        """Return the current partition; the next one in order when it has no lag."""
        if self._current is None or not lags.get(self._current):
            ordered = [one for one in sorted(lags) if lags[one]]
            later = [one for one in ordered if self._current is None or one > self._current]
            self._current = next(iter(later or ordered), self._current)
        return [one for one in lags if one == self._current] or [*lags]


SCHEDULES: Mapping[str, Callable[[int], Schedule]] = {
    "constant": lambda rate: ConstantDrain(),
    "rate": RateLimit,
    "state": lambda rate: StateAware(),
    "order": lambda rate: InOrder(),
}
"""Makers of schedules, by their names on the command line, given a rate [byte/s]."""
