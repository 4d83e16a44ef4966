"""The engine's pass over growing visits, and by more filters; beside a plain consumer."""

from abc import abstractmethod
from collections.abc import Sequence

from nightwire.benchmarks.environment.filter_engine import FilterEngine
from nightwire.benchmarks.model.sample import Kind
from nightwire.benchmarks.model.scenario import Context
from nightwire.benchmarks.scenarios.filters.backlog import Backlog
from nightwire.benchmarks.scenarios.filters.scenario import MIXTURES
from nightwire.benchmarks.scenarios.filters.visits import FilterSetting, Visits
from nightwire.benchmarks.scenarios.growth.curve import Cost, Curve

WARM_UP = 300
"""Alerts that are judged by filters that are new, twice, before those that count."""
FILTERS = 10
"""Live filters, where alerts are what grows."""


class Passes(Curve):
    """Visits through the engine."""

    def __init__(self, context: Context, points: Sequence[int], engine: FilterEngine, visits: Visits) -> None:
        super().__init__(context, points)
        self._engine, self._visits = engine, visits

    def cost(self, kind: Kind, count: int) -> Cost:
        """Judge a visit, or only take it."""
        filters, alerts = self._what(count)
        setting = FilterSetting(self._context, self._engine, self._visits, filters, MIXTURES[filters])
        one = Backlog(setting)
        if kind is Kind.BASELINE:
            return Cost(alerts, *one.consumed(alerts))
        self._make_live(setting, one)
        before = self._engine.engine_cpu()
        seconds = one.pass_seconds(alerts)
        return Cost(alerts, seconds, self._engine.engine_cpu() - before)

    def _make_live(self, setting: FilterSetting, one: Backlog) -> None:
        """Make the filters live, where they are not, and have them judge some alerts."""
        filters = setting.filters()
        if self._engine.filters.keys() != {each.key for each in filters}:
            self._engine.live(filters)
            for _turn in range(2):
                one.pass_seconds(min(self._context.size.alerts, WARM_UP))

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
