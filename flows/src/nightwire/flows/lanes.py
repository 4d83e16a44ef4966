"""Work for owners, each in a thread of its own: nobody waits for what is done for another."""

import threading
from collections.abc import Callable, Iterable

MOST = 8
"""Most owners for whom something is done at once; others wait for one of these."""


class Lanes:
    """Does one thing at a time for each owner."""

    def __init__(self) -> None:
        self._threads: dict[str, threading.Thread] = {}
        self._turn, self._turns = 0, dict[str, int]()

    def in_turn(self, owners: Iterable[str]) -> list[str]:
        """Return *owners*, those first whose last turn is the longest ago."""
        return sorted(owners, key=lambda one: self._turns.get(one, 0))

    def start(self, owner: str, work: Callable[[], None]) -> None:
        """Begin *work*, unless something is done for *owner* yet, or for too many."""
        self._threads = {name: one for name, one in self._threads.items() if one.is_alive()}
        if owner in self._threads or len(self._threads) >= MOST:
            return
        self._turn += 1
        self._turns[owner] = self._turn
        self._threads[owner] = threading.Thread(target=work, name=f"flows of {owner}", daemon=True)
        self._threads[owner].start()
