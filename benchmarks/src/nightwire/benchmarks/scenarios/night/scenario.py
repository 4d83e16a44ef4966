"""The scenario `night`: its size, its figures, and what they have to show."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from nightwire.benchmarks import (
    Better,
    Context,
    Experiment,
    Figure,
    Needs,
    Outcome,
    Published,
    RunError,
    Scenario,
    Size,
)
from nightwire.benchmarks.environment.alert_pool import (
    ON_DISK,
    ReadyMessage,
    make_pool,
    pool_memory,
    ready_messages,
)
from nightwire.benchmarks.environment.filter_engine import ALERTS, EngineOptions, FilterEngine
from nightwire.benchmarks.environment.filter_mixture import MixedFilter, mixture
from nightwire.benchmarks.model.drawing import distribution
from nightwire.benchmarks.model.sample import Figures, Kind, Sample
from nightwire.benchmarks.scenarios.night.observatory import Observatory
from nightwire.benchmarks.scenarios.night.schedule import Delays, Schedule
from nightwire.benchmarks.workers.alerts.due_times import SHARES, check_complete
from nightwire.benchmarks.workers.arrivals import await_arrivals
from nightwire.benchmarks.workers.client import OWNER, reader_process, worker_process
from nightwire.core.kafka import end_offsets_at

PATIENCE = 60.0
"""Longest wait for the next copy. [s]"""
OURS, RAW_KAFKA = "nightwire", "raw librdkafka"


@dataclass(frozen=True)
class NightSetting:
    """What a run has.

    Attributes:
        context: Of the run.
        engine: The filter engine.
        observatory: Who sends.
        ready: Messages for the baseline.
        filters: That are live.
    """

    context: Context
    engine: FilterEngine
    observatory: Observatory
    ready: Sequence[ReadyMessage]
    filters: Sequence[MixedFilter]


class Night(Experiment):
    """Visits through the engine to an owner's `AlertReader`; the baseline is raw librdkafka.

    Args:
        name: In the names of figures.
        setting: What is measured.
        schedule: When shutters close and alerts are due.
    """

    def __init__(self, name: str, setting: NightSetting, schedule: Schedule) -> None:
        self.name, self._setting, self._schedule = name, setting, schedule
        self._turn = 0
        self.delays: dict[str, list[float]] = {}

    def prepare(self) -> None:
        """Make the filters live, and let one visit through, both ways."""
        self._setting.engine.live(self._setting.filters)
        one = Schedule(1, min(self._schedule.alerts, 200), 1.0, 1.0)
        self._observed(one)
        self._sent(one)

    def run_once(self, kind: Kind) -> Figures:
        """Send the visits, and return the delays.

        Raises:
            RunError: An alert was not judged, or a copy did not come.
        """
        self._setting.observatory.behind = 0.0
        ours = kind is Kind.SUBJECT
        delays = (self._observed if ours else self._sent)(self._schedule)
        self.delays.setdefault(OURS if ours else RAW_KAFKA, []).extend(delays.shutter)
        figures = delays.figures(self.name)
        if ours:
            figures[f"{self.name}_copies"] = float(len(delays.due))
            figures["generator_behind_ms"] = self._setting.observatory.behind * 1e3
        return figures

    def _observed(self, schedule: Schedule) -> Delays:
        """Send visits through the engine; return how long each copy took to its owner."""
        engine, owned = self._setting.engine, list(self._setting.engine.filters.values())
        before = copies(engine.bootstrap, owned)
        with engine.coverage() as coverage, self._owner(owned) as notes:
            due = self._setting.observatory.observe(engine.bootstrap, ALERTS, schedule)
            ends = {part: end for (_, part), end in end_offsets_at(engine.bootstrap, [ALERTS]).items()}
            coverage.await_ends(ends)
            check_evaluated(coverage.evaluated, engine.filters, schedule.count)
            arrived = self._arrived(notes, copies(engine.bootstrap, owned) - before)
        engine.forget(ends)
        return Delays([when - due[name] for name, _, when in arrived], [age for _, age, _ in arrived])

    @contextmanager
    def _owner(self, owned: Sequence[str]) -> Iterator[Path]:
        """Let an owner read, and yield the file of what comes."""
        self._turn += 1
        log = self._setting.context.folder / f"{self.name}-{self._turn}.arrivals"
        order = {"bootstrap": self._setting.engine.bootstrap, "topics": owned, "into": str(log)}
        with worker_process(self._setting.context, OWNER, order, role="owner") as owner:
            owner.await_ready()
            yield log

    def _arrived(self, notes: Path, wanted: int) -> list[tuple[str, float, float]]:
        """Return id, age [s] and moment [s] of all copies.

        Raises:
            RunError: Fewer came than were sent.
        """
        found = await_arrivals(notes, lambda found: len(found) >= wanted, PATIENCE)
        if len(found) < wanted:
            raise RunError(f"{len(found)} of {wanted} copies came to their owner")
        if not wanted:
            raise RunError(f"none of {self._schedule.count:,} alerts passed a filter")
        named = ((name.split("\t"), when) for name, when in found)
        return [(name, float(age), when) for (name, age), when in named]

    def _sent(self, schedule: Schedule) -> Delays:
        """Send the bytes of such visits to a plain consumer; return how long each took."""
        context, bootstrap = self._setting.context, self._setting.engine.bootstrap
        with (
            self._setting.engine.topic("raw") as topic,
            reader_process(context, bootstrap, [topic], "bytes", note=True) as reader,
        ):
            due, shutters = self._setting.observatory.send(bootstrap, topic, schedule, self._setting.ready)
            arrivals = reader.findings()["arrivals"]
        delays = Delays(due.delays(arrivals, topic), shutters.delays(arrivals, topic))
        check_complete(len(delays.due), schedule.count)
        return delays


def check_evaluated(evaluated: dict[str, int], filters: Iterable[str], count: int) -> None:
    """Raise unless each of *filters* has judged *count* alerts.

    Raises:
        RunError: One has not; the message names it.
    """
    short = [
        f"{name} judged {evaluated.get(name, 0):,}" for name in filters if evaluated.get(name, 0) != count
    ]
    if short:
        raise RunError(f"of {count:,} alerts " + ", ".join(short))


def copies(bootstrap: str, names: Sequence[str]) -> int:
    """Return how many records were ever written to topics."""
    return sum(end_offsets_at(bootstrap, names).values())


RAW = "a plain librdkafka producer and consumer, the same bytes at the same times"
RUBIN = Published(0.98, "Rubin's requirement (DMTN-102)", "of 10,000 alerts a visit, within 60 s of readout")
FILTERS, CODE = 10, 2
"""Live filters, and how many of them cannot be compiled."""
VISITS = {"quick": 2, "full": 5}
"""Visits of a run."""
INTERVAL = 39.0
"""From one visit of LSST to the next, as DMTN-028 has it. [s]"""
QUICK_INTERVAL = 13.0
KINDS = {"even": "alerts spread evenly over the visit", "burst": "all alerts due at the shutter"}
WAYS = (
    ("{}_write_{}_ms", "ms", "Due for AlertWriter.write → reader", ("p50", "p99")),
    ("{}_shutter_{}_seconds", "s", "Shutter → owner's reader", ("p99",)),
)
"""What is timed: name of the figure, unit, words, and the shares that open the report."""
PROCESSES = 5 * 10**9
"""Kafka, Spark, the sandbox and readers. [byte]"""
STARTING = 30.0
"""Kafka, registry, engine, topics. [s]"""


def figures() -> Iterator[Figure]:
    """Yield the figures, in the order of the report."""
    for name, words in KINDS.items():
        group = words[0].upper() + words[1:]
        for (figure, unit, way, shown), key in product(WAYS, SHARES):
            share = "median" if key == "p50" else f"{key[1:]} %"
            yield Figure(
                figure.format(name, key), unit, f"{way}, {words}, {share}",
                baseline=RAW, headline=key in shown, group=group,
            )  # fmt: skip
        yield Figure(
            f"{name}_within_60_seconds", "1", f"Share that is read within 60 s of the shutter, {words}",
            Better.HIGHER, RAW, headline=True, published=RUBIN, group=group,
        )  # fmt: skip
        yield Figure(f"{name}_copies", "1", "Copies that came to the owner", Better.HIGHER, group=group)
    yield Figure("generator_behind_ms", "ms", "The generator's worst lag behind its schedule")


class NightScenario(Scenario):
    """From `AlertWriter.write` and from the shutter to the reader of a filter's owner."""

    name = "night"
    title = "A night: from the shutter to the reader"
    measures = (
        "Visits at a steady interval, in an open loop: a delay counts from when an alert was due, also "
        "where the sender is late. The simulator dates each visit, in TAI, at the moment at which its "
        "shutter closes, and `AlertWriter` writes its alerts; the filter engine judges them by ten filters; "
        "an owner's `AlertReader` reads what passed, takes the time of observation from the alert, turns it "
        "into UTC by the table of leap seconds, and compares it with the clock. Once the alerts of a visit "
        "are spread evenly over it, once all are due at the shutter. Filters have no cap here: with one, "
        "only the first seconds of a visit would be seen. What a survey needs to find sources in its images "
        "comes on top."
    )
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=1_000, pairs=2, rate=1_000 / QUICK_INTERVAL, profile="quick"),
        "full": Size(alerts=10_000, pairs=3, rate=10_000 / INTERVAL, profile="full"),
    }

    figures = tuple(figures())

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""
        visits = VISITS[size.profile]
        return Needs(
            disk=3 * (visits + 1) * size.alerts * ON_DISK,
            memory=pool_memory(size.alerts) + PROCESSES,
            seconds=STARTING + 2 * len(KINDS) * size.pairs * (visits * size.alerts / size.rate + 5.0),
        )

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Make the pool; return the nights, none where there is no engine."""
        self._context, self._nights = context, list[Night]()
        if context.engine == "none":
            return []
        context.say("making the pool of alerts")
        pool = make_pool(context.size.alerts)
        engine = self.closing(FilterEngine(context, EngineOptions(cap=0)))
        filters = mixture(FILTERS, CODE, pool)
        setting = NightSetting(context, engine, Observatory(pool), ready_messages(pool), filters)
        self._nights = [Night(name, setting, one) for name, one in schedules(context.size).items()]
        return self._nights

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Return the distributions of delays, and say what was reduced."""
        series = [
            replace(distribution(night.delays), title=f"From the shutter to the reader: {KINDS[night.name]}")
            for night in self._nights
            if night.delays
        ]
        return Outcome(series=series, notes=list(notes(self._context.size)))


def schedules(size: Size) -> dict[str, Schedule]:
    """Return the schedules of a run of *size*, by name."""
    interval = size.alerts / size.rate
    spreads = {"even": interval, "burst": 0.0}
    return {
        name: Schedule(VISITS[size.profile], size.alerts, interval, spread)
        for name, spread in spreads.items()
    }


def notes(size: Size) -> Iterator[str]:
    """Say how much was sent, and what was reduced."""
    visits, interval = VISITS[size.profile], size.alerts / size.rate
    yield (
        f"{visits} visits of {size.alerts:,} alerts a run, one every {interval:.1f} s ({size.profile} "
        f"profile), {size.pairs} pairs; {FILTERS} filters, {CODE} of them in the sandbox."
    )
    yield (
        "The exposure has no length here: the simulator dates an alert at the middle of its exposure, and "
        "that is the moment of the shutter. DMTN-028 asks for alerts within 60 s of observation, DMTN-102 "
        "for 98 % of them within 60 s of readout, image processing included; ours is the way of the alerts."
    )
    if size.profile == "quick":
        yield f"Reduced: the full profile has 5 visits of 10,000 alerts, one every {INTERVAL:g} s."
