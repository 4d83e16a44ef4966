"""A thread for each owner's changes: nobody waits for another's."""

import threading
from collections.abc import Callable, Iterable

MOST_OWNERS = 8
"""Most threads at once; other owners wait for one of these."""


class OwnerThreads:
    """Runs one function at a time for each owner."""

    def __init__(self) -> None:
        self._threads: dict[str, threading.Thread] = {}
        self._turn, self._last_turns = 0, dict[str, int]()

    def least_recent_first(self, owners: Iterable[str]) -> list[str]:
        """Return *owners*, the one whose work began the longest ago first."""
        return sorted(owners, key=lambda one: self._last_turns.get(one, 0))

    def start(self, owner: str, work: Callable[[], None]) -> None:
        """Run *work*, unless a function of *owner* runs yet, or those of too many owners."""
        self._threads = {name: one for name, one in self._threads.items() if one.is_alive()}
        if owner in self._threads or len(self._threads) >= MOST_OWNERS:
            return
        self._turn += 1
        self._last_turns[owner] = self._turn
        self._threads[owner] = threading.Thread(target=work, name=f"flows of {owner}", daemon=True)
        self._threads[owner].start()
