"""Which alerts came already: a memory of bounded size, by what an alert is known."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

WINDOW = 100_000
"""How many of the latest alerts are remembered; the largest visits have as many.

They take about 20 MB, at most 40.
"""

Dedup = Literal["offset", "alert"]
"""What makes two records the same alert: where it first lay, or its survey and id."""


class RecentKeys:
    """Remember keys: the latest *window* for certain, never more than twice as many.

    Two generations: when the young one is full it becomes the old one, and what was old is
    forgotten.

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


@dataclass(frozen=True)
class Deduplicator:
    """Leaves out alerts that were handed out before.

    Attributes:
        dedup: What makes two records the same alert; None leaves nothing out.
        recent: Keys of the alerts that were handed out.
    """

    dedup: Dedup | None
    recent: RecentKeys

    def select_new(self, keys: Sequence[Hashable]) -> list[int]:
        """Return the indices of those *keys* that are new, in order."""
        if self.dedup is None:
            return list(range(len(keys)))
        first = {key: at for at, key in reversed(list(enumerate(keys)))}
        return sorted(at for key, at in first.items() if key not in self.recent)

    def remember(self, keys: Sequence[Hashable]) -> None:
        """Note that alerts with these *keys* were handed out."""
        if self.dedup is not None:
            self.recent.add(keys)
