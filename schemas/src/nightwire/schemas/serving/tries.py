"""Wrong logins are counted by who asks, so that nobody guesses for long."""

import time
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv6Address, IPv6Network

from nightwire.schemas.serving.requests import RefusedError

TRIES, WINDOW = 10, 60.0
"""Wrong passwords and codes from one `source_of` within so long [s], before it has to wait."""
MAX_ADDRESSES = 10_000
"""Most addresses whose tries are remembered."""


def source_of(address: str) -> str:
    """Return whom something is counted for that *address* does: itself, or an IPv6 one's network.

    Whoever has one address of a /64 has all 2⁶⁴ of it (RFC 6177).
    """
    with suppress(ValueError):
        found = IPv6Address(address)
        return str(found.ipv4_mapped or IPv6Network((found, 64), strict=False))
    return address


class Tries:
    """Counts wrong logins by the `source_of` their address.

    Args:
        clock: Gives the time. [s, any steady clock]
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=TRIES))

    def check(self, address: str) -> None:
        """Do nothing while *address* may try.

        Raises:
            RefusedError: It was wrong too often.
        """
        wrong = self._wrong.get(source_of(address))
        if wrong and len(wrong) == TRIES and self._clock() - wrong[0] < WINDOW:
            raise RefusedError(429, f"too many wrong passwords or codes: wait for {WINDOW:g} s")

    def wrong(self, address: str) -> None:
        """Count a wrong login of *address*."""
        if len(self._wrong) >= MAX_ADDRESSES:
            self._wrong.clear()
        self._wrong[source_of(address)].append(self._clock())
