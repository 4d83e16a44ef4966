"""The scenario `growth`: its curves, their figures, and what they take."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from nightwire.benchmarks import Context, Experiment, Figure, Kind, Needs, Outcome, Sample, Scenario, Size
from nightwire.benchmarks.environment.alert_pool import ON_DISK, POOL, make_pool, pool_memory
from nightwire.benchmarks.environment.filter_engine import FilterEngine
from nightwire.benchmarks.scenarios.filters.backlog import Backlog
from nightwire.benchmarks.scenarios.filters.visits import FilterSetting, Visits
from nightwire.benchmarks.scenarios.growth.curve import Cost, Curve
from nightwire.benchmarks.scenarios.growth.readers import CLIENTS, Consumers, GrowthEnvironment, Subscribers

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
        setting = FilterSetting.mixed(self._context, self._engine, self._visits, filters)
        one = Backlog(setting)
        if kind is Kind.BASELINE:
            return Cost(alerts, *one.consumed(alerts))
        self._make_live(setting, one)
        before = self._engine.engine_cpu()
        seconds = one.pass_seconds(alerts)
        return Cost(alerts, seconds, self._engine.engine_cpu() - before)

    def _make_live(self, setting: FilterSetting, one: Backlog) -> None:
        """Make the filters live, where they are not, and have them judge some alerts."""
        filters = setting.filters
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


TAKEN = "a plain librdkafka consumer that takes such a visit's bytes"
CROWD = f"as many librdkafka consumers of a topic, up to {CLIENTS}"
BYTES = "ready-made bytes through raw librdkafka to as many consumers"
PROCESSES = 5 * 10**9
"""Kafka, Spark, the sandbox and the gateway. [byte]"""
PER_CONSUMER = 120 * 10**6
"""A consumer's process. [byte]"""
STARTING = 40.0
"""Kafka, registry, engine, gateway. [s]"""
TIMES = 10
"""The largest visit, in usual ones."""
PER_ALERT = 0.001
"""An alert of a point and its baseline: made, sent twice, judged, consumed. [s]"""
PER_POINT = 2.0
"""Processes of a point, and filters that are made live. [s]"""


POINTS: Mapping[str, Mapping[str, Sequence[int]]] = {
    "quick": {
        "alerts": (100, 1_000, 10_000),
        "filters": (1, 10, 100),
        "subscribers": (1, 10, 100),
        "consumers": (1, 10),
    },
    "full": {
        "alerts": (100, 1_000, 10_000, 100_000),
        "filters": (1, 10, 100, 1_000),
        "subscribers": (1, 10, 100, 1_000),
        "consumers": (1, 10, 100),
    },
}
"""The points of each curve, by profile and by what is counted."""
WORDS = {
    "alerts": ("an alert", "the engine's", f"visits of {{}} alerts, judged by {FILTERS} filters", TAKEN),
    "filters": ("an alert", "the engine's", "{} filters", TAKEN),
    "subscribers": ("an event", "gateway's and Kafka's", "{} VTP subscribers of the gateway", CROWD),
    "consumers": ("an alert", "all consumers'", "{} consumers that decode everything", BYTES),
}
"""Of what each point is the cost, whose CPU time, what the point is, and its baseline."""


def figures_of(axis: str) -> Iterator[Figure]:
    """Yield the figures of one curve."""
    one, whose, words, baseline = WORDS[axis]
    group = f"Growth with {axis}"
    for count in POINTS["full"][axis]:
        many = words.format(f"{count:,}")
        yield Figure(f"{axis}_{count}_us", "µs", f"Time of {one}, {many}", baseline=baseline, group=group)
        yield Figure(
            f"{axis}_{count}_cpu_us",
            "µs",
            f"CPU time of {one}, {whose}, {many}",
            baseline=baseline,
            group=group,
        )
    yield Figure(
        f"{axis}_exponent", "1", f"Exponent of the time's growth with {axis}; 1 is linear",
        headline=True, group=group,
    )  # fmt: skip
    yield Figure(
        f"{axis}_cpu_exponent", "1", f"Exponent of the CPU time's growth with {axis}; 1 is linear",
        headline=True, group=group,
    )  # fmt: skip


class GrowthScenario(Scenario):
    """Curves ×10 of alerts, filters, subscribers and consumers."""

    name = "growth"
    title = "Ten times as many"
    measures = (
        "Time and CPU time of one alert (or VOEvent) at counts that are ten times as large each, and the "
        "exponent by which the cost grows: the slope in log-log by least squares, 1 where ten times as many "
        "cost ten times as much. *Alerts* and *filters*: a visit appears in Kafka at one moment, the engine "
        "judges it, sends copies and accounts for it; the exponent of alerts is that of the whole visit. "
        "*Subscribers*: authors send events through the gateway to VTP subscribers. *Consumers*: "
        "dictionaries through AlertWriter to processes that decode all of it. All processes share a machine."
    )
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=1_000, pairs=2, rate=1.0, profile="quick"),
        "full": Size(alerts=10_000, pairs=3, rate=1.0, profile="full"),
    }

    figures = tuple(one for axis in WORDS for one in figures_of(axis))

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""
        points = points_of(size)
        most = max(size.alerts, *points["alerts"])
        moved = sum(points["alerts"]) + size.alerts * (len(points["filters"]) + sum(points["consumers"]))
        return Needs(
            disk=round(2.5 * most * ON_DISK),
            memory=pool_memory(most) + PROCESSES + max(points["consumers"]) * PER_CONSUMER,
            seconds=STARTING
            + size.pairs * (moved * PER_ALERT + PER_POINT * 2 * sum(map(len, points.values()))),
        )

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Return the curves; those of the engine only where there is one."""
        self._context = context
        environment = self.closing(GrowthEnvironment(context))
        self._curves = list(curves(context, environment))
        return self._curves

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Draw the curves, and say what was reduced."""
        series = [one for curve in self._curves for one in curve.drawings(samples)]
        raw = [note for curve in self._curves if (note := curve.note(samples))]
        growth = [f"Exponents of the baselines' growth: {'; '.join(raw)}."] if raw else []
        return Outcome(series=series, notes=[*notes(self._context.size), *growth])


def points_of(size: Size) -> dict[str, Sequence[int]]:
    """Return the points of each curve; no visit has more than ten times the usual alerts."""
    points = dict(POINTS[size.profile])
    points["alerts"] = [count for count in points["alerts"] if count <= TIMES * size.alerts]
    return points


def curves(context: Context, environment: GrowthEnvironment) -> Iterator[Curve]:
    """Yield the curves, in the order in which they run."""
    points = points_of(context.size)
    if context.engine != "none":
        context.say("making the pool of alerts")
        visits = Visits(environment.engine, make_pool(min(POOL, context.size.alerts)))
        yield Alerts(context, points["alerts"], environment.engine, visits)
        yield Filters(context, points["filters"], environment.engine, visits)
    yield Subscribers(context, points["subscribers"], environment)
    yield Consumers(context, points["consumers"], environment)


def notes(size: Size) -> Iterator[str]:
    """Say how much was moved, and what was reduced."""
    yield (
        f"{size.alerts:,} alerts a visit, but where alerts are what grows ({size.profile} profile); "
        f"{size.pairs} pairs. A run measures all points of a curve; its baseline measures them all again."
    )
    yield (
        "The baseline of filters does not grow: it is one consumer of the same visit. More than "
        f"{CLIENTS} librdkafka clients in one process are not asked: each has threads of its own."
    )
    if size.profile == "quick":
        yield (
            "Reduced: the full profile goes on to 100,000 alerts, 1,000 filters, 1,000 subscribers and 100 "
            "consumers, with visits of 10,000 alerts."
        )
