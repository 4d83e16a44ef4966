"""Datagrams on their way: paced, counted, and never a reason to stop."""

import logging
import socket
import time
from collections.abc import Callable

from nightwire.core.datagrams import GroupAddress, open_sender
from nightwire.core.runtime import LogLimiter

log = logging.getLogger("nightwire.relay")

BURST = 64 << 10
"""What may be sent at once after a pause. [byte]"""
SHORTEST = 0.001
"""Shorter pauses are put off until they are so long: sleeping is not more exact. [s]"""


class TokenBucket:
    """Tells how long to wait so that a rate is kept.

    Args:
        rate: Bytes a second.
        clock: Gives the time. [s, any steady clock]
    """

    def __init__(self, rate: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._tokens, self._at = float(BURST), clock()

    def take(self, size: int) -> float:
        """Take *size* bytes; return how long to wait after them. [s]"""
        now = self._clock()
        self._tokens = min(float(BURST), self._tokens + (now - self._at) * self._rate) - size
        self._at = now
        return max(0.0, -self._tokens / self._rate)


class Sender:
    """Sends datagrams to a group.  What cannot be sent is lost, and receivers fetch it from Kafka.

    Args:
        address: The group.
        rate: Most bytes a second.
        ttl: How many routers may pass it on, and one.
    """

    def __init__(self, address: GroupAddress, rate: float, ttl: int) -> None:
        self._socket: socket.socket = open_sender(address, ttl=ttl)
        self._bucket, self._limiter = TokenBucket(rate), LogLimiter()
        self.count = self.bytes = self.failed = 0

    def send(self, raw: bytes) -> None:
        """Send *raw*, and wait where the rate asks for it."""
        try:
            self._socket.send(raw)
            self.count, self.bytes = self.count + 1, self.bytes + len(raw)
        except OSError as error:
            self.failed += 1
            if self._limiter.allows():
                log.warning("not sent (%d so far), receivers fetch it from Kafka: %s", self.failed, error)
        if (pause := self._bucket.take(len(raw))) >= SHORTEST:
            time.sleep(pause)

    def close(self) -> None:
        """Send no more."""
        self._socket.close()
