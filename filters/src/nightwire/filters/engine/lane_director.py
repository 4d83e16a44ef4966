"""The engine's side of the lanes: what filters cost, and which lane each should have.

The planner does what is wanted here; the processes of the slow lanes follow the schedules written
here, each change at the offsets where a batch of the quick lane began.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence

from nightwire.filters.decision.decision import Decision
from nightwire.filters.decision.engine_state import EngineState
from nightwire.filters.decision.lane_costs import LaneCosts
from nightwire.filters.decision.notices import Notice
from nightwire.filters.decision.quota import admitted_of
from nightwire.filters.decision.slow_lanes import LaneChange, SlowLanes
from nightwire.filters.engine.lane_assignment import keep_wanted, load_wanted
from nightwire.filters.engine.settings import EngineSettings
from nightwire.filters.model.lane_choice import QUICK_LANE_US, VISIT_ALERTS, VISIT_S, LaneLoad, wanted_lanes
from nightwire.filters.model.live_filter import SLOW, LiveFilter
from nightwire.filters.model.offsets import planned_at, version

THINK_S = 1.0
"""Shortest time between two judgements of which lane filters should have. [s]"""

RATE_S = 600.0
"""The rate of alerts is that of so long. [s]"""


class LaneDirector:
    """Decides which lane filters should have, and writes the schedules of the slow lanes.

    Args:
        settings: The engine's.
        state: The quick lane's.
    """

    def __init__(self, settings: EngineSettings, state: EngineState) -> None:
        self._settings, self._state, self._lanes = settings, state, SlowLanes(state.root)
        self._costs, self._wanted = LaneCosts(), load_wanted(state.root)
        self._set: tuple[int, Sequence[LiveFilter]] = (0, ())
        self._read: deque[tuple[float, int]] = deque()
        self._thought = 0.0
        self._lock = threading.Lock()

    def observe(self, number: int, decision: Decision) -> list[Notice]:
        """Look at a batch of the quick lane, before it is committed; return what owners should
        know.
        """
        last = version(self._state.planned(number - 1)) if number else 0
        notices = [] if last == decision.filters else [*self._change(number, last, decision.filters)]
        with self._lock:
            self._set = decision.filters, self._filters(decision.filters)
            self._read.append((time.monotonic(), sum(one.read for one in decision.counts)))
            while self._read[-1][0] - self._read[0][0] > RATE_S:
                self._read.popleft()
        self.learn(decision)
        return notices

    def learn(self, decision: Decision) -> None:
        """Learn what filters cost from a batch of any lane; say anew which they should have."""
        with self._lock:
            self._costs.add(decision.versions, decision.counts)
            if time.monotonic() - self._thought < THINK_S:
                return
            self._thought = time.monotonic()
            live = self._set[1]
            self._costs.forget(live)
            wanted = wanted_lanes(live, self._costs.means(), QUICK_LANE_US * self._settings.tasks)
            unknown = {one.id for one in live if self._costs.mean(one.id) is None}
            wanted |= {one: lane for one, lane in self._wanted.items() if one in unknown}
            if wanted != self._wanted:
                self._wanted = wanted
                keep_wanted(self._state.root, wanted)

    def load(self) -> LaneLoad:
        """Return what is asked of the slow lanes."""
        with self._lock:
            owners: dict[str, float] = {}
            quick: dict[str, list[float]] = {}
            for one in self._set[1]:
                cost = self._costs.mean(one.id) or one.cost_us or 0.0
                if one.lane == SLOW:
                    owners[one.owner] = owners.get(one.owner, 0.0) + cost
                else:
                    quick.setdefault(one.owner, []).append(cost)
            read, since = sum(count for _, count in self._read), self._read[0][0] if self._read else 0.0
            rate = read / max(VISIT_S, time.monotonic() - since) if read else 0.0
            alerts = max(VISIT_ALERTS, round(rate * VISIT_S))
            return LaneLoad(self._settings.slow_processes, owners, alerts, quick)

    def _filters(self, number: int) -> Sequence[LiveFilter]:
        return self._set[1] if self._set[0] == number else self._state.all_filters(number)

    def _change(self, number: int, last: int, now: int) -> Iterator[Notice]:
        """Write what batch *number* changes in the slow lanes; yield what owners should know."""
        before, after = self._state.all_filters(last), self._state.all_filters(now)
        start, quotas = self._state.batch_start(number), self._state.quotas(number - 1)
        planned, was = planned_at(self._state.planned(number)), {one.id: one.lane for one in before}
        for owner in sorted({one.owner for one in (*before, *after) if one.lane == SLOW}):
            slow = [one.id for one in after if one.owner == owner and one.lane == SLOW]
            if slow != [one.id for one in before if one.owner == owner and one.lane == SLOW]:
                admitted = admitted_of(
                    quotas, {key for key, version_ in slow if was.get((key, version_)) != SLOW}
                )
                self._lanes.change(owner, LaneChange(number, planned, now, start, tuple(slow), admitted))
        for one in after:
            if (old := was.get(one.id)) != one.lane and (old is not None or one.lane == SLOW):
                yield Notice(*one.id, self._lane_text(one, number), good=True)

    def _lane_text(self, one: LiveFilter, number: int) -> str:
        cost = self._costs.mean(one.id) or one.cost_us
        costs = "it was not measured yet" if cost is None else f"it costs {cost:,.1f} µs an alert"
        return f"in the {one.lane} lane from batch {number} on: {costs}"
