"""The scenario `filters`: its size, its experiments, and what they have to show."""

from collections.abc import Iterator, Mapping, Sequence

from nightwire.benchmarks.environment.alert_pool import ON_DISK, make_pool, pool_memory, ready_messages
from nightwire.benchmarks.environment.filter_engine import CAP, FilterEngine
from nightwire.benchmarks.model.drawing import Point, figure_line, plot
from nightwire.benchmarks.model.sample import Kind, Sample
from nightwire.benchmarks.model.scenario import (
    Context,
    Experiment,
    Needs,
    Outcome,
    Scenario,
    Series,
    Size,
)
from nightwire.benchmarks.scenarios.filters.alternatives import BesideFunctions, BesideQueries
from nightwire.benchmarks.scenarios.filters.backlog import WARM_UP, Backlog
from nightwire.benchmarks.scenarios.filters.burst import TIMES, Burst, Disturbed, Large
from nightwire.benchmarks.scenarios.filters.figures import COUNTS, FIGURES
from nightwire.benchmarks.scenarios.filters.first_alert import EngineStart, FilterChange
from nightwire.benchmarks.scenarios.filters.language import Language
from nightwire.benchmarks.scenarios.filters.visits import FilterSetting, Visits
from nightwire.benchmarks.scenarios.visit.latency import Latency

MIXTURES = {1: 0, 10: 2, 100: 20, 500: 35, 1_000: 50}
"""How many of so many filters cannot be compiled."""
VISIT = 39.0
"""Length of a visit at the steady rate: 10,000 alerts, as an observatory has them. [s]"""
SHARES = (0.1, 0.3)
"""Smaller visits of the curve, as shares of a whole one."""
PROCESSES = 6 * 10**9
"""Kafka, Spark, the sandbox, the consumer, and what is measured beside. [byte]"""
PER_ALERT = 0.0015
"""An alert of one run: made, encoded, sent, judged. [s]"""
AT_ONCE = 4
"""Visits that lie on the disk together: one that was judged is deleted, a while later."""
STARTING = 80.0
"""Kafka, registry, engine, topics. [s]"""


class FiltersScenario(Scenario):
    """Visits through a hundred and through a thousand filters."""

    name = "filters"
    title = "A hundred and a thousand filters"
    measures = (
        "The filters are a mixture of cuts, colours, light-curve features and SQL, each of which passes 0.3 "
        "to 5 %; 20 of 100 and 50 of 1,000 are code that cannot be compiled (a class, a try, a call of "
        "astropy) and run in the sandbox. *The pass*: a visit of alerts of real sizes is sent in one "
        "transaction, so that all of it appears at one moment; the engine judges it, sends each owner at "
        "most 20 and writes its accounts; a plain consumer of such a visit is the limit. *A burst*: the "
        "visit goes from dictionaries through the encoder into Kafka while the engine judges, and a second "
        "process reads all owners' topics. All processes share one machine."
    )
    figures = FIGURES
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=2_000, pairs=2, rate=256.0, profile="quick"),
        "full": Size(alerts=10_000, pairs=5, rate=256.0, profile="full"),
    }

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""
        full = size.profile == "full"
        passes, bursts = (len(COUNTS) + len(SHARES), 3) if full else (1, 2)
        runs = (passes + bursts + 1) * (2 * size.pairs + WARM_UP) + full * 2 * TIMES
        copies = (sum(COUNTS) if full else 100) * CAP * (size.pairs + WARM_UP)
        return Needs(
            disk=round(((AT_ONCE + full * TIMES) * size.alerts + copies) * ON_DISK),
            memory=pool_memory(size.alerts) + PROCESSES,
            seconds=STARTING + runs * (size.alerts * PER_ALERT + 3.0),
        )

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Make the pool; return the experiments."""
        context.say("making the pool of alerts")
        self._size, pool = context.size, make_pool(context.size.alerts)
        engine = FilterEngine(context)
        self.exits.callback(engine.close)
        visits, language = Visits(engine, pool), Language(context, pool)
        if context.engine == "none":
            return [language]
        settings = {
            count: FilterSetting(context, engine, visits, count, code) for count, code in MIXTURES.items()
        }
        # the curve ends with a hundred filters, and those that follow want just these
        chosen: list[Experiment] = [
            language,
            *backlogs(settings, context.size),
            Burst(settings[100]),
            Latency(context, engine, pool, ready_messages(pool), plain=False, visit=VISIT),
            FilterChange(settings[100]),
            Disturbed(settings[100]),
            EngineStart(settings[100]),
        ]
        if context.size.profile == "full":
            others = [BesideFunctions(settings[100]), BesideQueries(settings[10])]
            chosen += [Large(settings[100]), *others, Burst(settings[1_000])]
        return chosen

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Say how much was moved, what was left out, and draw the curves."""
        size = self._size
        notes = [f"{size.alerts:,} alerts a visit ({size.profile} profile), {size.pairs} pairs; cap {CAP}."]
        if size.profile == "quick":
            notes.append(
                "Reduced: a hundred filters only; the full profile has the curves, a thousand filters, and "
                "what others do beside it."
            )
        return Outcome(series=list(curves(size, samples)), notes=notes)


def backlogs(settings: Mapping[int, FilterSetting], size: Size) -> Iterator[Backlog]:
    """Yield the passes, in the full profile those of the curves; a hundred filters last."""
    if size.profile == "full":
        for count in sorted(COUNTS, reverse=True):
            if count != 100:
                yield Backlog(settings[count])
        for share in SHARES:
            yield Backlog(settings[100], round(share * size.alerts))
    yield Backlog(settings[100])


def curves(size: Size, samples: Sequence[Sample]) -> Iterator[Series]:
    """Yield how the pass grows with the number of filters, and of alerts."""
    by_count: list[Point] = [(count, f"pass_seconds_{count}_filters", Kind.SUBJECT) for count in COUNTS]
    shares = [round(share * size.alerts) for share in SHARES]
    by_alerts: list[Point] = [(count, f"pass_seconds_{count}_alerts", Kind.SUBJECT) for count in shares]
    by_alerts.append((size.alerts, "pass_seconds_100_filters", Kind.SUBJECT))
    for axis, points in (("filters", by_count), ("alerts", by_alerts)):
        line = figure_line("the pass", points, samples)
        if len(line.x) > 1:
            yield from plot(f"The pass, by the number of {axis}", (axis, "s"), [line])
