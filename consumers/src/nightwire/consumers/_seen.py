"""Which alerts came already: a memory of bounded size."""

from collections.abc import Hashable, Iterable

WINDOW = 100_000
"""How many of the latest alerts are remembered; a visit of the largest size.  About 20 MB, at most 40."""


class Seen:
    """Remember keys: the latest *window* for certain, never more than twice as many.

    Two generations: when the young one is full it becomes the old one, and what was old is forgotten.

    Args:
        window: How many keys.
    """

    def __init__(self, window: int = WINDOW) -> None:
        if window < 1:
            raise ValueError(f"window={window}: remember at least one alert")
        self._window = window
        self._young: set[Hashable] = set()
        self._old: set[Hashable] = set()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._young or key in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def add(self, keys: Iterable[Hashable]) -> None:
        """Remember *keys*."""
        for key in keys:
            self._old.discard(key)
            self._young.add(key)
            if len(self._young) >= self._window:
                self._old, self._young = self._young, set()
