"""A process that sends VOEvents at a steady rate, each again until the gateway has answered it.

``python -m nightwire.benchmarks.scenarios.faults.author '{"port": …, "run": …, "count": …, "interval": …}'`` prints a
JSON line when it begins, stops when its standard input is closed or at ``count`` events, waits for every
answer, and prints a line with when each event was due (by the local part of its ivorn).
"""

import json
import sys
import time
from collections import deque

from nightwire.benchmarks.workers.vtp.authors import PATIENCE, Author, AuthorGroup, AuthorStats, Order
from nightwire.benchmarks.workers.vtp.frames import say, step
from nightwire.benchmarks.workers.worker import input_closed

PAUSE = 0.05
"""Before an author whose connection was lost, or refused, comes again. [s]"""


class RetryingAuthor(Author):
    """An author that comes again a moment later where its connection was lost."""

    def __init__(self, play: "SteadyAuthors") -> None:
        super().__init__(play)
        self._steady = play

    def _lost(self) -> None:
        self._play.findings.broken += 1
        self._play.left.extend(self._asked)
        self._asked.clear()
        self._close()
        self._steady.away.append((time.monotonic() + PAUSE, self))


class SteadyAuthors(AuthorGroup):
    """Authors at a steady rate, each event on a connection of its own.

    Args:
        order: What they send; its count is the most.
    """

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self.away: deque[tuple[float, RetryingAuthor]] = deque()
        self.due: dict[int, float] = {}

    def run(self) -> AuthorStats:
        """Send until it is time to stop, and wait until every event is answered."""
        stop, (numbers, self.left) = input_closed(), (self.left, deque())
        start = time.monotonic()
        for number in numbers:
            due = start + number * self.order.interval
            while not stop.is_set() and (left := due - time.monotonic()) > 0:
                self._turn(left)
            if stop.is_set():
                break
            self.due[number] = due
            self.left.append(number)
            RetryingAuthor(self).begin()
        self._settle()
        return self.findings

    def _settle(self) -> None:
        heard, known = time.monotonic(), len(self.findings.answered)
        while known < len(self.due) and time.monotonic() - heard < PATIENCE:
            self._turn(PAUSE)
            if len(self.findings.answered) > known:
                heard, known = time.monotonic(), len(self.findings.answered)

    def _turn(self, seconds: float) -> None:
        """Do what there is to do, for at most so long; who was sent away comes again when it is time."""
        step(self.selector, min(seconds, PAUSE))
        while self.away and self.away[0][0] <= time.monotonic():
            self.away.popleft()[1].begin()


def main() -> None:
    """Read the order, play, and tell."""
    play = SteadyAuthors(Order(**json.loads(sys.argv[1])))
    say({"ready": True})
    found = play.run()
    say(
        {
            "due": {f"{play.order.run}-{number}": due for number, due in play.due.items()},
            "unanswered": [f"{play.order.run}-{one}" for one in play.due if one not in found.answered],
            "naked": found.naked,
            "broken": found.broken,
        }
    )


if __name__ == "__main__":
    main()
