"""What each of several programs costs that are evaluated together, and share what they have in common.  Pure.

The work of a node is shared equally by the programs that have it; so the costs add up to the whole, and a
filter that ten others resemble is as cheap as it really is.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Shares:
    """Who pays for what.

    Args:
        places: For each program, for each of its nodes, its number among all different nodes.
    """

    def __init__(self, places: Sequence[Sequence[int]]) -> None:
        own = [np.unique(np.asarray(some, np.int64)) for some in places]
        self._own = np.concatenate(own) if own else np.zeros(0, np.int64)
        self._starts = np.cumsum([0, *map(len, own)])[:-1]
        self._users = np.bincount(self._own)
        self.nodes = len(self._users)

    def costs(self, nodes: Sequence[float], alone: Sequence[float], cpu_s: float) -> Array:
        """Return the CPU time of each program. [s]

        Args:
            nodes: Time that each different node took. [s]
            alone: Time that each program took beside its nodes. [s]
            cpu_s: CPU time of all together, beside other work on this machine. [s]
        """
        if not len(alone):
            return np.zeros(0)
        shared = (np.asarray(nodes) / self._users)[self._own]
        times = np.add.reduceat(shared, self._starts) + alone
        whole = float(times.sum())
        return times * (cpu_s / whole) if whole else times
