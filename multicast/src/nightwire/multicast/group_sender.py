"""The sender of a channel to its multicast group, and the rate limiter of all senders."""

import logging
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from nightwire.core.datagrams import Beat, Entry, GroupAddress, Judge, open_sender
from nightwire.core.runtime import LogLimiter
from nightwire.multicast.packing import Packer
from nightwire.multicast.positions import Position

log = logging.getLogger("nightwire.relay")

BURST = 64 << 10
"""Capacity of the token bucket. [byte]"""
SHORTEST = 0.001
"""Shorter pauses are saved up until they are so long: sleeping is not more exact. [s]"""
NEVER = 1 << 62
"""An offset that no partition reaches."""


class TokenBucket:
    """A token bucket, which may be in debt.

    Args:
        rate: Bytes a second.
        clock: Gives the time. [s, any steady clock]
    """

    def __init__(self, rate: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._tokens, self._at = float(BURST), clock()

    def take(self, size: int) -> float:
        """Take *size* tokens [byte]; return how long to wait after them. [s]"""
        now = self._clock()
        self._tokens = min(float(BURST), self._tokens + (now - self._at) * self._rate) - size
        self._at = now
        return max(0.0, -self._tokens / self._rate)


class RateLimiter:
    """The rate limiter that a relay's senders share, with counts of datagrams and failures.

    Args:
        rate: Most bytes a second.
    """

    def __init__(self, rate: float) -> None:
        self._bucket = TokenBucket(rate)
        self.counts: Counter[str] = Counter()
        self.waited = False

    def count_and_wait(self, size: int) -> None:
        """Count a datagram of *size* [byte], and wait if the rate is exceeded."""
        self.counts["datagrams"] += 1
        self.counts["bytes"] += size
        if (pause := self._bucket.take(size)) >= SHORTEST:
            self.waited = True
            time.sleep(pause)


class GroupSender:
    """Sends a channel to its group; datagrams that fail are lost, receivers fetch from Kafka.

    Args:
        packer: Makes the channel's datagrams.
        address: The group.
        limiter: Shared by all senders of a relay.
        ttl: Of the datagrams.
        judge: Evaluates the channel's condition; None: all records.
        priority: Senders of a higher one are served first.
        since: By partition, the first offset that it carries; 0 where none is given.

    Attributes:
        last: The last offset that was sent, by partition.
        until: By partition, the offset after its last; NEVER where none is given.
        ended: When all partitions had passed *until*. [s, monotonic]
    """

    def __init__(
        self, packer: Packer, address: GroupAddress, limiter: RateLimiter, ttl: int,
        judge: Judge | None = None, priority: int = 0, since: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.packer, self.judge, self.priority, self._since = packer, judge, priority, since
        self._limiter, self._log_limiter = limiter, LogLimiter()
        self._socket: socket.socket = open_sender(address, ttl=ttl)
        self.last: dict[int, int] = {}
        self.until: Sequence[int] | None = None
        self.ended: float | None = None

    def offsets(self, number: int) -> range:
        """Return the offsets that it carries of a partition."""
        until = NEVER if self.until is None else self.until[number] if number < len(self.until) else 0
        return range(self._since[number] if number < len(self._since) else 0, until)

    def begin(self, number: int, position: Position) -> None:
        """Begin with a partition at *position*."""
        self.last[number] = max(position.sent, self.offsets(number).start - 1)

    def send(self, entries: Sequence[Entry], number: int, epoch: int) -> Iterator[None]:
        """Send *entries* of a partition, at least one; yield after each datagram."""
        for raw in self.packer.datagrams(entries, number, epoch, self.last[number]):
            self._send(raw)
            yield
        self.last[number] = entries[-1].offset

    def heartbeat(self, positions: dict[int, Position], now_ms: int) -> None:
        """Send a heartbeat: the last offsets sent and read of each partition that has begun."""
        beats = []
        for number, one in positions.items():
            offsets = self.offsets(number)
            if one.next >= offsets.start:
                done = min(one.next, offsets.stop) - 1
                beats.append(Beat(number, one.epoch, self.last[number], max(done, self.last[number])))
        for raw in self.packer.heartbeats(beats, now_ms) if beats else ():
            self._send(raw)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _send(self, raw: bytes) -> None:
        try:
            self._socket.send(raw)
        except OSError as error:
            self._limiter.counts["failed"] += 1
            if self._log_limiter.allows():
                failed = self._limiter.counts["failed"]
                log.warning("not sent (%d so far), receivers fetch it from Kafka: %s", failed, error)
        self._limiter.count_and_wait(len(raw))
