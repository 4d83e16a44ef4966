"""The engine's pass over visits that grow, and by filters that grow; beside a plain consumer of them."""

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress

import psutil

from nightwire.benchmarks._scenario import Context, Kind
from nightwire.benchmarks._second import second_process
from nightwire.benchmarks.faults._stand import Engine
from nightwire.benchmarks.filters._backlog import Backlog
from nightwire.benchmarks.filters._scenario import MIXTURES
from nightwire.benchmarks.filters._visits import Setting, Visits
from nightwire.benchmarks.growth._curve import Curve
from nightwire.benchmarks.growth._exponent import Cost

WARM_UP = 300
"""Alerts that are judged by filters that are new, twice, before those that count."""
FILTERS = 10
"""Live filters, where alerts are what grows."""


class Judging(Engine):
    """The engine, whose CPU time can be asked."""

    def judging_cpu(self) -> float:
        """Return what the engine's processes took so far, those that ended included [s]; 0 where not ours."""
        if self._engine is None:
            return 0.0
        first = psutil.Process(self._engine.process.pid)
        total = 0.0
        for one in (first, *first.children(recursive=True)):
            with suppress(psutil.Error):  # one that just ended is in what its parent says of its children
                times = one.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total


class Pass(Backlog):
    """The pass of visits of any size, with its CPU time.

    Args:
        it: What is measured.
        engine: That which judges.
    """

    def __init__(self, it: Setting, engine: Judging) -> None:
        super().__init__(it)
        self._engine = engine

    def judged(self, alerts: int) -> Cost:
        """Judge one visit by the filters, which are made live where they are not."""
        filters = self._it.filters()
        if self._engine.filters.keys() != {one.key for one in filters}:
            self._engine.live(filters)
            for _turn in range(2):
                self._judged(min(self._it.context.size.alerts, WARM_UP))
        before = self._engine.judging_cpu()
        seconds = self._judged(alerts)
        return Cost(alerts, seconds, self._engine.judging_cpu() - before)

    def consumed(self, alerts: int) -> Cost:
        """Take such a visit with a plain consumer."""
        order = {"bootstrap": self._engine.bootstrap, "work": "bytes", "whole": True, "expect": alerts}
        with self._engine.topic("bare") as topic:
            self._it.visits.send_at_once(topic, alerts)
            log = self._it.context.folder / "consumer.log"
            with second_process(self._it.context, {**order, "topics": [topic]}, log) as second:
                found = second.findings()
        return Cost(alerts, found["last"] - found["began"], found["cpu"])


class Passes(Curve):
    """Visits through the engine.

    Args:
        context: Of the run.
        points: Counts.
        engine: That which judges.
        visits: What sends.
    """

    def __init__(self, context: Context, points: Sequence[int], engine: Judging, visits: Visits) -> None:
        super().__init__(context, points)
        self._engine, self._visits = engine, visits

    def cost(self, kind: Kind, count: int) -> Cost:
        """Judge a visit, or only take it."""
        filters, alerts = self._what(count)
        setting = Setting(self._context, self._engine, self._visits, filters, MIXTURES[filters])
        one = Pass(setting, self._engine)
        return one.judged(alerts) if kind is Kind.SUBJECT else one.consumed(alerts)

    @abstractmethod
    def _what(self, count: int) -> tuple[int, int]:
        """Return how many filters judge how many alerts."""


class Alerts(Passes):
    """Visits that grow, by ten filters."""

    axis, whole = "alerts", True

    def _what(self, count: int) -> tuple[int, int]:
        return FILTERS, count


class Filters(Passes):
    """Filters that grow, over one visit."""

    axis = "filters"

    def _what(self, count: int) -> tuple[int, int]:
        return count, self._context.size.alerts
