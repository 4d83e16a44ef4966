"""A process that sends VOEvents at a steady rate, each again until the gateway has answered it.

``python -m nightwire.benchmarks.scenarios.faults.author '{"port": …, "run": …, "count": …,
"interval": …}'`` prints a line when it begins, stops when its standard input is closed or at
``count`` events, waits for every answer, and prints a line with when each event was due (by the
local part of its ivorn).
"""

import time
from collections import deque

from nightwire.benchmarks.workers.vtp.authors import PATIENCE, Author, AuthorGroup, AuthorStats, Order
from nightwire.benchmarks.workers.vtp.sockets import step
from nightwire.benchmarks.workers.worker import emit, first_order, input_ended

PAUSE = 0.05
"""Before an author whose connection was lost, or refused, comes again. [s]"""


class RetryingAuthor(Author):
    """An author that comes again a moment later where its connection was lost."""

    def __init__(self, group: "SteadyAuthors") -> None:
        super().__init__(group)
        self._away = group.away

    def _retry(self) -> None:
        self._away.append((time.monotonic() + PAUSE, self))


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
        stop, (numbers, self.left) = input_ended(), (self.left, deque())
        start = time.monotonic()
        for number in numbers:
            due = start + number * self.order.interval
            while not stop.is_set() and (left := due - time.monotonic()) > 0:
                self._serve_for(left)
            if stop.is_set():
                break
            self.due[number] = due
            self.left.append(number)
            RetryingAuthor(self).begin()
        self._await_answers()
        return self.stats

    def _await_answers(self) -> None:
        last, known = time.monotonic(), len(self.stats.answered)
        while known < len(self.due) and time.monotonic() - last < PATIENCE:
            self._serve_for(PAUSE)
            if len(self.stats.answered) > known:
                last, known = time.monotonic(), len(self.stats.answered)

    def _serve_for(self, seconds: float) -> None:
        """Serve sockets for at most so long; an author that was sent away comes again in time."""
        step(self.selector, min(seconds, PAUSE))
        while self.away and self.away[0][0] <= time.monotonic():
            self.away.popleft()[1].begin()


def main() -> None:
    """Follow the order, and print what came of it."""
    group = SteadyAuthors(Order(**first_order()))
    emit({"ready": True})
    stats, run = group.run(), group.order.run
    emit(
        {
            "due": {f"{run}-{number}": due for number, due in group.due.items()},
            "unanswered": [f"{run}-{number}" for number in group.due if number not in stats.answered],
            "naked": stats.naked,
            "broken": stats.broken,
        }
    )


if __name__ == "__main__":
    main()
