"""Which lane judges each filter in the next batch: the wishes, and what can be moved now.

A filter leaves a slow lane only when that lane has judged all that the quick one has: so it goes
on exactly where it was, and its quota goes with it.  One that takes the best of visits moves only
while none of its alerts is held.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nightwire.filters.decision.engine_state import EngineState, read_json, write_atomically
from nightwire.filters.decision.slow_lanes import FOLDER, SlowLanes
from nightwire.filters.model.lane_choice import QUICK_LANE_US, assigned, wanted_lanes
from nightwire.filters.model.live_filter import SLOW, FilterVersion, LiveFilter
from nightwire.filters.model.offsets import Offset, positions


@dataclass
class LaneAssignment:
    """Assigns filters to lanes.

    Args:
        state: The quick lane's.
        tasks: Tasks of a batch.
    """

    state: EngineState
    tasks: int = 1
    _stamp: int = -1
    _wanted: dict[FilterVersion, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lanes = SlowLanes(self.state.root)

    def assigned(
        self, live: Sequence[LiveFilter], before: Sequence[LiveFilter], start: Offset
    ) -> list[LiveFilter]:
        """Return the *live* filters with the lanes that judge them after *start*.

        Args:
            live: The live filters.
            before: Those of the last batch, with their lanes.
            start: Where the quick lane is.
        """
        current = {one.key: one.lane for one in before}
        placed = [replace(one, lane=current.get(one.key, one.lane)) for one in live]
        tried = wanted_lanes(placed, {}, QUICK_LANE_US * self.tasks)  # of those that are not measured
        wanted = {**tried, **self.wanted()}
        return assigned(live, current, wanted, lambda one, lane: self._may_leave(one, lane, start))

    def wanted(self) -> Mapping[FilterVersion, str]:
        """Return the lanes that filters should have."""
        path = wanted_file(self.state.root)
        if (stamp := path.stat().st_mtime_ns if path.exists() else 0) != self._stamp:
            self._stamp, self._wanted = stamp, load_wanted(self.state.root)
        return self._wanted

    def pending(self, filters: Sequence[LiveFilter]) -> bool:
        """Return whether some of *filters* wait for leaving their lanes."""
        wanted = self.wanted()
        return any(wanted.get(one.id, one.lane) != one.lane for one in filters)

    def _may_leave(self, one: LiveFilter, lane: str, start: Offset) -> bool:
        if lane != SLOW:
            return one.choice != "best" or not holds(self.state, one.key)
        if (name := self.lanes.current(one.owner)) is None:
            return True
        reached = self.lanes.reached(name)
        caught_up = all(reached.get(partition, 0) >= at for partition, at in positions(start).items())
        return caught_up and not holds(self.lanes.state(name), one.key)


def holds(state: EngineState, key: str) -> bool:
    """Return whether a lane holds alerts of a filter until a visit ends."""
    return any(one.key == key for one in state.quotas(state.newest_decision()).held())


def wanted_file(root: Path) -> Path:
    """Return the file of the lanes that filters should have."""
    return root / FOLDER / "wanted.json"


def load_wanted(root: Path) -> dict[FilterVersion, str]:
    """Return the lanes that filters should have."""
    found = read_json(wanted_file(root), {"lanes": []})["lanes"]
    return {(key, number): lane for key, number, lane in found}


def keep_wanted(root: Path, wanted: Mapping[FilterVersion, str]) -> None:
    """Store the lanes that filters should have."""
    lanes = [(key, number, lane) for (key, number), lane in sorted(wanted.items())]
    write_atomically(wanted_file(root), json.dumps({"lanes": lanes}))
