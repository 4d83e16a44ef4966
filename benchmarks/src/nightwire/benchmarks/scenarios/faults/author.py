"""A process that sends VOEvents at a steady rate, each again until the gateway has answered it.

``python -m nightwire.benchmarks.scenarios.faults.author '{"port": …, "run": …, "count": …,
"interval": …}'`` prints a line when it begins, stops when its standard input is closed or at
``count`` events, waits for every answer, and prints a line with when each event was due (by the
local part of its ivorn).
"""

import time
from collections import deque

from nightwire.benchmarks.workers.vtp.authors import Author, AuthorGroup, Order
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

    def new_author(self) -> Author:
        """Return one more author."""
        return RetryingAuthor(self)

    def serve(self, seconds: float) -> None:
        """Serve sockets for at most so long; an author that was sent away comes again in time."""
        super().serve(min(seconds, PAUSE))
        while self.away and self.away[0][0] <= time.monotonic():
            self.away.popleft()[1].begin()


def main() -> None:
    """Follow the order, and print what came of it."""
    group = SteadyAuthors(Order(**first_order()))
    emit({"ready": True})
    stats, run = group.run(input_ended()), group.order.run
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
