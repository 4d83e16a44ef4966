"""Where an engine without Spark is, in files like those of a Spark checkpoint."""

import json
from dataclasses import dataclass

from nightwire.filters._offsets import Offset
from nightwire.filters._state import State, write

KEPT = 100
"""Batches whose files are kept."""


@dataclass(frozen=True)
class Progress:
    """Plans and commits of batches.

    Args:
        state: The engine's directory.
    """

    state: State

    def planned(self, batch: int) -> Offset | None:
        """Return the end of *batch*, where it was planned already."""
        there = (self.state.checkpoint / "offsets" / str(batch)).exists()
        return self.state.planned(batch) if there else None

    def plan(self, batch: int, end: Offset) -> None:
        """Note where *batch* ends, before it is done; on return it is on disk."""
        write(self.state.checkpoint / "offsets" / str(batch), f"v1\n{{}}\n{json.dumps(end)}")

    def commit(self, batch: int) -> None:
        """Note that *batch* is done."""
        write(self.state.checkpoint / "commits" / str(batch), "v1\n{}")
        for folder in ("offsets", "commits"):
            (self.state.checkpoint / folder / str(batch - KEPT)).unlink(missing_ok=True)
