"""The scenario `filters`: its size, its experiments, and what they have to show."""

from collections.abc import Iterator, Mapping, Sequence

from nightwire.benchmarks.environment.alert_pool import ON_DISK, make_pool, pool_memory, ready_messages
from nightwire.benchmarks.environment.filter_engine import CAP, FilterEngine
from nightwire.benchmarks.model.drawing import PlotPoint, figure_line, plot
from nightwire.benchmarks.model.sample import Kind, Sample
from nightwire.benchmarks.model.scenario import (
    Context,
    Experiment,
    Figure,
    Needs,
    Outcome,
    Scenario,
    Series,
    Size,
)
from nightwire.benchmarks.scenarios.filters.backlog import WARM_UP, Backlog, BesideFunctions, BesideQueries
from nightwire.benchmarks.scenarios.filters.burst import TIMES, Burst, Disturbed, Large
from nightwire.benchmarks.scenarios.filters.first_alert import EngineStart, FilterChange
from nightwire.benchmarks.scenarios.filters.language import Language
from nightwire.benchmarks.scenarios.filters.visits import FilterSetting, Visits
from nightwire.benchmarks.scenarios.visit.latency import Latency

RAW = "a plain librdkafka consumer that takes such a visit's bytes"
LIVE = "the same visit into a topic, and a plain librdkafka consumer"
PACED = "ready-made bytes through raw librdkafka at the same rate"
COUNTS = (1, 10, 100, 500, 1_000)
"""Numbers of filters of the curve."""
HEADLINES = (100, 1_000)


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


def burst(count: int) -> list[Figure]:
    """Return the figures of a visit in one burst."""
    many = f"{count:,} filters"
    since = f"From the first send until an owner has the first {CAP} of a visit"
    return [
        Figure(f"first20_mean_seconds_{count}_filters", "s", f"{since}, {many}, mean", headline=True),
        Figure(f"first20_p99_seconds_{count}_filters", "s", f"{since}, {many}, 99 %", headline=True),
        Figure(
            f"visit_seconds_{count}_filters",
            "s",
            f"From the first send until a visit is accounted for, {many}",
            baseline=LIVE,
        ),
        Figure(f"copies_sent_{count}_filters", "1", f"Copies that were sent to owners, {many}"),
    ]


FIGURES = (
    *(figure(count) for count in COUNTS for figure in (passed, judged)),
    *(one for count in HEADLINES for one in burst(count)),
    Figure(
        "large_visit_seconds", "s",
        "From the first send until a visit ten times as large is accounted for, 100 filters",
        baseline=LIVE, headline=True,
    ),
    Figure(
        "filter_latency_p50_ms", "ms",
        "Due → owner's topic at a steady rate, 100 filters, visits of 39 s, median",
        baseline=PACED, headline=True,
    ),
    Figure(
        "filter_latency_p99_ms", "ms", "… 99 %",
        baseline=PACED, headline=True,
    ),
    Figure(
        "live_seconds", "s", "From when a filter is accepted, amid a visit, until its first alert is out",
        headline=True,
    ),
    Figure(
        "start_seconds", "s", "From the start of an engine that was killed until its first alert is out",
        headline=True,
    ),
    Figure("generator_behind_ms", "ms", "The generator's worst lag behind its schedule"),
    Figure(
        "disturbed_first20_mean_seconds", "s",
        f"An owner's first {CAP}, mean, while one filter loops for ever and one takes all memory",
        baseline="the same without the two", headline=True,
    ),
    Figure(
        "disturbed_first20_p99_seconds", "s", "… 99 %", baseline="the same without the two",
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
        "pass_beside_functions_seconds", "s", "The pass, 100 filters",
        baseline="a process that decodes each alert whole and calls 100 Python functions; nothing is sent",
    ),
    Figure(
        "pass_beside_queries_seconds", "s", "The pass, 10 filters",
        baseline="ten queries, one per user, over Spark's own Kafka source",
    ),
)  # fmt: skip


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
    by_count: list[PlotPoint] = [(count, f"pass_seconds_{count}_filters", Kind.SUBJECT) for count in COUNTS]
    shares = [round(share * size.alerts) for share in SHARES]
    by_alerts: list[PlotPoint] = [(count, f"pass_seconds_{count}_alerts", Kind.SUBJECT) for count in shares]
    by_alerts.append((size.alerts, "pass_seconds_100_filters", Kind.SUBJECT))
    for axis, points in (("filters", by_count), ("alerts", by_alerts)):
        line = figure_line("the pass", points, samples)
        if len(line.x) > 1:
            yield from plot(f"The pass, by the number of {axis}", (axis, "s"), [line])
