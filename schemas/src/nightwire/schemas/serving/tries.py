"""Wrong logins are counted by address, so that nobody guesses for long."""

import time
from collections import defaultdict, deque
from collections.abc import Callable

from nightwire.schemas.serving.requests import RefusedError

TRIES, WINDOW = 10, 60.0
"""Wrong passwords and codes from one address within so long [s], before it has to wait."""
MAX_ADDRESSES = 10_000
"""Most addresses whose tries are remembered."""


class Tries:
    """Counts wrong logins by address.

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
        wrong = self._wrong.get(address)
        if wrong and len(wrong) == TRIES and self._clock() - wrong[0] < WINDOW:
            raise RefusedError(429, f"too many wrong passwords or codes: wait for {WINDOW:g} s")

    def wrong(self, address: str) -> None:
        """Count a wrong login of *address*."""
        if len(self._wrong) >= MAX_ADDRESSES:
            self._wrong.clear()
        self._wrong[address].append(self._clock())
