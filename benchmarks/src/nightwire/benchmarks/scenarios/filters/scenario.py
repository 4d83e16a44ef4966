"""The scenario `filters`: its size, its experiments, and what they have to show."""

from collections.abc import Iterator, Mapping, Sequence

from nightwire.benchmarks import Better, Context, Experiment, Figure, Needs, Outcome, Scenario, Series, Size
from nightwire.benchmarks.environment.alert_pool import ON_DISK, make_pool, pool_memory
from nightwire.benchmarks.environment.filter_engine import CAP, EngineOptions, FilterEngine
from nightwire.benchmarks.model.drawing import PlotPoint, figure_line, plot
from nightwire.benchmarks.model.sample import Figures, Kind, Sample
from nightwire.benchmarks.scenarios.filters.backlog import (
    TIMES,
    WARM_UP,
    Backlog,
    BesideFunctions,
    BesideQueries,
    Large,
)
from nightwire.benchmarks.scenarios.filters.first_alert import EngineStart, FilterChange
from nightwire.benchmarks.scenarios.filters.language import Language
from nightwire.benchmarks.scenarios.filters.matching import ON_DISK as OBJECT_ON_DISK
from nightwire.benchmarks.scenarios.filters.matching import matchings
from nightwire.benchmarks.scenarios.filters.neighbours import Disturbed, SlowNeighbours
from nightwire.benchmarks.scenarios.filters.phases import phase_tables
from nightwire.benchmarks.scenarios.filters.visits import FilterSetting, Visits, topics_of
from nightwire.benchmarks.scenarios.visit.latency import LONGEST, Latency

RAW = "a plain librdkafka consumer that takes such a visit's bytes"
LIVE = "the same visit into a topic, and a plain librdkafka consumer"
PACED = "ready-made bytes through raw librdkafka at the same rate"
ALONE = "the same without the slow filters"
COUNTS = (1, 10, 100, 500, 1_000)
"""Numbers of filters of the curve."""
HEADLINES = (100, 1_000)
OWNERS, MANY_OWNERS, FEW_OWNERS = 6, 59, 10
"""Astronomers who have all notebooks of habits, a hundred or a thousand filters; and those who have
as many quick ones each."""


def quick_lane(label: str, filters: str) -> Figure:
    """Return the figure of the quick lane."""
    title = f"A visit that lies in Kafka: the quick lane is done with it, {filters}"
    return Figure(f"quick_lane_seconds_{label}", "s", title, baseline=RAW, headline=True)


def waits(whose: str, label: str, filters: str, baseline: str = "") -> Iterator[Figure]:
    """Yield the figures of owners' waits."""
    since = f"From when a visit lies in Kafka until the owner of a {whose} filter has its first {CAP}"
    name = f"{whose}_first20_{{}}_seconds_{label}".format
    yield Figure(name("mean"), "s", f"{since}, {filters}, mean", baseline=baseline, headline=bool(baseline))
    yield Figure(name("p99"), "s", "… 99 %", baseline=baseline, headline=bool(baseline))


def passed(count: int) -> Figure:
    """Return the figure of the pass alone."""
    return Figure(
        f"pass_seconds_{count}_filters",
        "s",
        f"A visit that lies in Kafka, judged by {count:,} filters, sent to its owners and accounted for",
        baseline=RAW,
        headline=count in HEADLINES,
    )


def judged(count: int) -> Figure:
    """Return the figure of the pass without its sending."""
    return Figure(
        f"pass_without_sending_seconds_{count}_filters",
        "s",
        f"The same, {count:,} filters, but for the time in which their copies are sent",
        baseline=RAW,
        headline=count == max(HEADLINES),
    )


def copied(count: int) -> Figure:
    """Return the figure of sending."""
    return Figure(
        f"copies_per_second_{count}_filters",
        "1/s",
        f"Copies that are sent, of a visit that {count:,} filters have judged",
        Better.HIGHER,
        baseline="raw librdkafka sends as many alerts to the same topics, and reads nothing",
        headline=count == max(HEADLINES),
    )


HABITS, MANY, FEW = "102 filters of habits", "1,003 filters of habits", "100 quick filters of ten owners"
FIGURES = (
    quick_lane("102_habits", HABITS),
    Figure("pass_seconds_102_habits", "s", "… all lanes are done with it", baseline=RAW),
    *waits("quick", "102_habits", HABITS, ALONE),
    Figure("quick_lane_102_habits", "1", "Of 102 filters, those in the quick lane"),
    *waits("slow", "102_habits", HABITS),
    Figure(
        "quick_latency_p50_ms", "ms",
        f"Due → topic of a quick filter at a steady rate, {HABITS}, visits of 39 s, median",
        baseline=PACED, headline=True,
    ),
    Figure("quick_latency_p99_ms", "ms", "… 99 %", baseline=PACED, headline=True),
    Figure(
        "restart_seconds", "s",
        f"From the start of an engine that was killed until its first alert is out, {HABITS}",
        headline=True,
    ),
    quick_lane("100_quick_habits", FEW),
    quick_lane("1003_habits", MANY),
    *waits("quick", "1003_habits", MANY, ALONE),
    *(figure(count) for count in COUNTS for figure in (passed, judged)),
    *map(copied, HEADLINES),
    Figure(
        "large_visit_seconds", "s",
        "From the first send until a visit ten times as large is accounted for, 100 filters",
        baseline=LIVE, headline=True,
    ),
    Figure(
        "live_seconds", "s", "From when a filter is accepted, amid a visit, until its first alert is out",
        headline=True,
    ),
    Figure("generator_behind_ms", "ms", "The generator's worst lag behind its schedule"),
    Figure(
        "disturbed_first20_mean_seconds_100_filters", "s",
        f"An owner's first {CAP}, mean, while one filter loops for ever and one takes all memory",
        baseline="the same without the two", headline=True,
    ),
    Figure(
        "disturbed_first20_p99_seconds_100_filters", "s", "… 99 %", baseline="the same without the two",
    ),
    Figure(
        "compile_us", "us", "Compiling a filter to the closed language, mean",
        baseline="Python's own compile of the same source", headline=True,
    ),
    Figure("compile_p90_us", "us", "… 90 %", baseline="Python's own compile of the same source"),
    Figure(
        "evaluate_simple_us", "us", "Evaluating a simple filter over columns, an alert",
        baseline="the function, called for each alert", headline=True,
    ),
    Figure(
        "match_us_million", "us", "Matching an alert with a catalogue of a million objects, 2,500 at once",
        baseline="SciPy's k-d tree of the same objects, in memory", headline=True,
    ),
    Figure("match_us_hundred_million", "us", "… of 10⁸ objects, on disk"),
    Figure(
        "pass_beside_functions_seconds", "s", "The pass, 100 filters",
        baseline="a process that decodes each alert whole and calls 100 Python functions; nothing is sent",
    ),
    Figure(
        "pass_beside_queries_seconds", "s", "The pass, 10 filters",
        baseline="ten queries, one per user, over Spark's own Kafka source",
    ),
)  # fmt: skip


VISIT = 39.0
"""Length of a visit at the steady rate: 10,000 alerts, as an observatory has them. [s]"""
SHARES = (0.1, 0.3)
"""Smaller visits of the curve, as shares of a whole one."""
PROCESSES = 6 * 10**9
"""Kafka, Spark, the consumer, and what is measured beside. [byte]"""
PER_OWNER = 150 * 10**6
"""The sandbox of an owner whose filters bring pandas and astropy. [byte]"""
PER_ALERT = 0.0015
"""An alert of one run: made, encoded, sent, judged. [s]"""
PER_SLOW_ALERT = 0.01
"""An alert that six owners' slow filters judge. [s]"""
ADDING = 240.0
"""Of a catalogue of 10⁸ objects. [s]"""
AT_ONCE = 4
"""Visits that lie on the disk together: one that was judged is deleted, a while later."""
KEPT = 8 << 20
"""Of the copies of one filter: those of two visits. [byte]"""
STARTING = 80.0
"""Kafka, registry, engine, topics. [s]"""


class Steady(Latency):
    """Alerts at a steady rate → the topics of quick filters, while slow ones are live, too."""

    name = "steady-habits"

    def __init__(self, setting: FilterSetting) -> None:
        self._setting, visits = setting, setting.visits
        super().__init__(
            setting.context, setting.engine, [*visits.pool], visits.ready, plain=False, visit=VISIT
        )

    def prepare(self) -> None:
        """Make the filters live, and let one second of alerts through."""
        self._setting.engine.live(self._setting.filters)
        super().prepare()

    def run_once(self, kind: Kind) -> Figures:
        """Send at the steady rate, and return percentiles of the delays. [ms]"""
        return {
            name.replace("filter_latency", "quick_latency"): value
            for name, value in super().run_once(kind).items()
        }

    def _owned(self) -> list[str]:
        return topics_of(self._setting.quick_ones)


class FiltersScenario(Scenario):
    """Visits through a hundred and through a thousand filters."""

    name = "filters"
    title = "A hundred and a thousand filters"
    measures = (
        "*Habits* are seventeen notebooks as astronomers write them, live for six owners (102 filters) and "
        "for 59; four of them cost more than 50 µs an alert and are the slow ones. The other filters are a "
        "mixture of cuts, colours, light-curve features and SQL, each of which passes 0.3 to 5 %; 20 of "
        "100 and 50 of 1,000 are code that cannot be compiled (a class, a try, a call of astropy). *The "
        "pass*: a visit of alerts of real sizes is sent in one transaction, so that all of it appears at "
        "one moment; the engine judges it, sends each owner at most 20 and writes its accounts; a plain "
        "consumer of such a visit is the limit. *Owners' waits*: a second process reads all owners' topics "
        "meanwhile. All processes share one machine."
    )
    figures = FIGURES
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=2_000, pairs=2, rate=256.0, profile="quick"),
        "full": Size(alerts=10_000, pairs=5, rate=256.0, profile="full"),
    }

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""
        full = size.profile == "full"
        passes = len(COUNTS) + len(SHARES) + 4 if full else 3
        runs = (passes + 3) * (2 * size.pairs + WARM_UP) + full * 2 * TIMES
        slow = size.pairs * (2 * size.alerts + min(size.alerts, LONGEST * size.rate) + 2_500)
        filters = sum(COUNTS) + 17 * (OWNERS + MANY_OWNERS) if full else 300
        return Needs(
            disk=(AT_ONCE + full * TIMES) * size.alerts * ON_DISK
            + filters * KEPT
            + (10**8 if full else 10**6) * OBJECT_ON_DISK,
            memory=pool_memory(size.alerts) + PROCESSES + PER_OWNER * (MANY_OWNERS if full else OWNERS),
            seconds=STARTING
            + runs * (size.alerts * PER_ALERT + 3.0)
            + slow * PER_SLOW_ALERT
            + (ADDING if full else 5.0),
        )

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Make the pool; return the experiments."""
        context.say("making the pool of alerts")
        self._size, pool = context.size, make_pool(context.size.alerts)
        engine = self.closing(FilterEngine(context, EngineOptions(keeps=KEPT)))
        visits, language = Visits(engine, pool), Language(context, pool)
        if context.engine == "none":
            return [language, *matchings(context)]
        place = (context, engine, visits)
        mixed, six = FilterSetting.mixed(*place, 100), FilterSetting.habits(*place, OWNERS)
        chosen: list[Experiment] = [
            *(Backlog(six), SlowNeighbours(six), Steady(six), EngineStart(six)),
            Backlog(FilterSetting.quick(*place, FEW_OWNERS)),
            *(language, *matchings(context), Backlog(mixed), FilterChange(mixed), Disturbed(mixed)),
        ]
        return [*chosen, *more(place, mixed)] if context.size.profile == "full" else chosen

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Say how much was moved, what was left out, and draw the curves."""
        size = self._size
        notes = [f"{size.alerts:,} alerts a visit ({size.profile} profile), {size.pairs} pairs; cap {CAP}."]
        if size.profile == "quick":
            notes.append(
                "Reduced: a hundred filters only; the full profile has the curves, a thousand filters, and "
                "what others do beside it."
            )
        return Outcome(series=list(curves(size, samples)), notes=notes, tables=phase_tables(samples))


def more(place: tuple[Context, FilterEngine, Visits], mixed: FilterSetting) -> Iterator[Experiment]:
    """Yield what the full profile has beside, the more filters the later: their topics stay."""
    for share in SHARES:
        yield Backlog(mixed, round(share * mixed.context.size.alerts))
    yield from (Large(mixed), BesideFunctions(mixed), BesideQueries(FilterSetting.mixed(*place, 10)))
    for count in COUNTS:
        if count != mixed.count:
            yield Backlog(FilterSetting.mixed(*place, count))
    many = FilterSetting.habits(*place, MANY_OWNERS)
    yield from (Backlog(many), SlowNeighbours(many))


def curves(size: Size, samples: Sequence[Sample]) -> Iterator[Series]:
    """Yield how the pass grows with the number of filters, and of alerts."""
    by_count: list[PlotPoint] = [(count, f"pass_seconds_{count}_filters", Kind.SUBJECT) for count in COUNTS]
    shares = [round(share * size.alerts) for share in SHARES]
    by_alerts: list[PlotPoint] = [(count, f"pass_seconds_{count}_alerts", Kind.SUBJECT) for count in shares]
    by_alerts.append((size.alerts, "pass_seconds_100_filters", Kind.SUBJECT))
    for axis, points in (("filters", by_count), ("alerts", by_alerts)):
        line = figure_line("the pass", points, samples)
        if len(line.x) > 1:
            yield from plot(f"The pass, by the number of {axis}", (axis, "s"), [line])
