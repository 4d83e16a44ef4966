"""The scenario `night`: its size, its figures, and what they have to show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from nightwire.benchmarks.environment.alert_pool import ON_DISK, make_pool, pool_memory, ready_messages
from nightwire.benchmarks.environment.filter_engine import EngineOptions, FilterEngine
from nightwire.benchmarks.environment.filter_mixture import mixture
from nightwire.benchmarks.model.drawing import distribution
from nightwire.benchmarks.model.sample import Sample
from nightwire.benchmarks.model.scenario import (
    Better,
    Context,
    Experiment,
    Figure,
    Needs,
    Outcome,
    Published,
    Scenario,
    Size,
)
from nightwire.benchmarks.scenarios.night.experiment import Night, NightSetting
from nightwire.benchmarks.scenarios.night.observatory import Observatory
from nightwire.benchmarks.scenarios.night.schedule import Schedule
from nightwire.benchmarks.workers.alerts.due_times import SHARES

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
PROCESSES = 5 * 10**9
"""Kafka, Spark, the sandbox and readers. [byte]"""
STARTING = 30.0
"""Kafka, registry, engine, topics. [s]"""


def figures() -> Iterator[Figure]:
    """Yield the figures, in the order of the report."""
    for name, words in KINDS.items():
        group = words[0].upper() + words[1:]
        for key in SHARES:
            share = "median" if key == "p50" else f"{key[1:]} %"
            yield Figure(
                f"{name}_write_{key}_ms", "ms", f"Due for AlertWriter.write → reader, {words}, {share}",
                baseline=RAW, headline=key != "p95", group=group,
            )  # fmt: skip
        for key in SHARES:
            share = "median" if key == "p50" else f"{key[1:]} %"
            yield Figure(
                f"{name}_shutter_{key}_seconds", "s", f"Shutter → owner's reader, {words}, {share}",
                baseline=RAW, headline=key == "p99", group=group,
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
        engine = FilterEngine(context, EngineOptions(cap=0))
        self.exits.callback(engine.close)
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
