"""The engine's pass over visits that grow, and by filters that grow; beside a plain consumer of them."""

from abc import abstractmethod
from collections.abc import Sequence

from nightwire.benchmarks.model.scenario import Context
from nightwire.benchmarks.model.sample import Kind
from nightwire.benchmarks.scenarios.filters.backlog import Backlog
from nightwire.benchmarks.scenarios.filters.scenario import MIXTURES
from nightwire.benchmarks.scenarios.filters.visits import FilterSetting, Visits
from nightwire.benchmarks.scenarios.growth.curve import Cost, Curve
from nightwire.benchmarks.scenarios.growth.environment import MeasuredEngine
from nightwire.benchmarks.workers.client import reader_process

WARM_UP = 300
"""Alerts that are judged by filters that are new, twice, before those that count."""
FILTERS = 10
"""Live filters, where alerts are what grows."""


class Pass(Backlog):
    """The pass of visits of any size, with its CPU time.

    Args:
        it: What is measured.
        engine: That which judges.
    """

    def __init__(self, it: FilterSetting, engine: MeasuredEngine) -> None:
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
            with reader_process(self._it.context, {**order, "topics": [topic]}, log) as second:
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

    def __init__(
        self, context: Context, points: Sequence[int], engine: MeasuredEngine, visits: Visits
    ) -> None:
        super().__init__(context, points)
        self._engine, self._visits = engine, visits

    def cost(self, kind: Kind, count: int) -> Cost:
        """Judge a visit, or only take it."""
        filters, alerts = self._what(count)
        setting = FilterSetting(self._context, self._engine, self._visits, filters, MIXTURES[filters])
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
