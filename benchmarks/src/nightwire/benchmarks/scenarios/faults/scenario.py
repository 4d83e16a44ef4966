"""The scenario `faults`: who is killed, the figures that come of it, and what it takes."""

from collections.abc import Iterator, Mapping, Sequence

from nightwire.benchmarks import (
    Better,
    Context,
    Experiment,
    Figure,
    Line,
    Needs,
    Outcome,
    Sample,
    Scenario,
    Series,
    Size,
)
from nightwire.benchmarks.environment.alert_pool import ON_DISK, make_pool
from nightwire.benchmarks.model.statistics import rounded
from nightwire.benchmarks.scenarios.faults.environment import CODE, OTHERS, FaultsEnvironment
from nightwire.benchmarks.scenarios.faults.fault import VICTIMS, Fault, Timing, Victim
from nightwire.benchmarks.scenarios.faults.streams import ALERT, EVENTS_A_SECOND, PER_VISIT, Streams

CALM = "the same stream without the fault"
POOL = 250
"""Distinct alerts; beyond them stamps and histories repeat, ids, times and positions do not."""
COPIES = 3
"""The alert, its copy in the filter's topic, and what is not deleted yet."""
PROCESSES = 5 * 10**9
"""Kafka, Spark, the gateway, senders and readers. [byte]"""
STARTING = 40.0
"""Kafka, registry, engine, gateway, and a first run. [s]"""
PER_PAIR = 12.0
"""What a pair takes beside its streams: processes, a restart, and what waited. [s]"""
DRAWN = 200
"""Most points of a line."""
OUTAGE = 40.0
"""Time that is added to a run by its fault, at most. [s]"""
WORDS = {ALERT: "alert", "events": "VOEvent"}


def figures_of(victim: Victim) -> Iterator[Figure]:
    """Yield the figures of one fault."""
    name, group = victim.name, f"{victim.title[0].upper()}{victim.title[1:]} is killed"
    for stream in victim.strikes:
        what, start = WORDS[stream], f"{name}_{stream}"
        since = f"From the restart of {victim.title}"
        yield Figure(
            f"{start}_first_seconds", "s", f"{since} until the first {what} comes that was due later",
            headline=True, group=group,
        )  # fmt: skip
        yield Figure(
            f"{start}_backlog_seconds", "s", f"{since} until no {what} waits longer than before the fault",
            headline=True, group=group,
        )  # fmt: skip
        yield Figure(
            f"{start}_gap_seconds", "s", f"Longest time in which no {what} comes",
            baseline=CALM, group=group,
        )  # fmt: skip
    yield Figure(
        f"{name}_lost",
        "1",
        f"Alerts and VOEvents lost, while {victim.title} is killed",
        headline=True,
        group=group,
    )
    yield Figure(f"{name}_twice", "1", "… delivered once more", group=group)
    yield Figure(f"{name}_sent", "1", "… sent", Better.HIGHER, group=group)


class FaultsScenario(Scenario):
    """Engine, gateway, Kafka and consumer, each killed with -9 under load."""

    name = "faults"
    title = "Faults under load"
    measures = (
        "Two streams run at a steady rate, in an open loop: alerts through the filter engine, one of whose "
        "filters passes all of them, to its owner's reader; VOEvents from authors through the gateway to a "
        "subscriber. Senders and readers are processes of their own. One process is killed with -9 and "
        "started again at once, on the data that it had. Each line of a reader's notes is on disk before the "
        "next alert or event is asked for. What was sent and what was read must be equal as sets, and the "
        "accounts of engine and gateway must prove that in = out; else the run fails and names what is lost."
    )
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=225, pairs=2, rate=25.0, profile="quick"),
        "full": Size(alerts=5_000, pairs=5, rate=100.0, profile="full"),
    }

    figures = tuple(figure for victim in VICTIMS for figure in figures_of(victim))

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""
        alerts = size.alerts + OUTAGE * size.rate
        lasting = PER_PAIR + 2 * size.alerts / size.rate
        return Needs(
            disk=round(COPIES * alerts * ON_DISK),
            memory=PROCESSES,
            seconds=STARTING + size.pairs * len(VICTIMS) * lasting,
        )

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Return a fault for each victim that we may kill."""
        context.say("making the pool of alerts")
        self._context = context
        environment = self.closing(FaultsEnvironment(context, make_pool(POOL)))
        streams, timing = Streams(environment), Timing.of(context.size)
        self._faults = [Fault(streams, victim, timing) for victim in VICTIMS if may_die(victim, context)]
        return self._faults

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Return the delays around each fault, and say what was reduced."""
        return Outcome(series=list(drawings(self._faults)), notes=list(notes(self._context)))


def may_die(victim: Victim, context: Context) -> bool:
    """Return whether *victim* is ours to kill, and there is a stream that it carries."""
    if victim.name == "kafka":
        return context.bootstrap is None
    if victim.name == "engine":
        return context.engine == "own"
    return context.engine != "none" or ALERT not in victim.strikes


def drawings(faults: Sequence[Fault]) -> Iterator[Series]:
    """Yield the delay of each thing over when it was due, around each fault that was made."""
    for fault in faults:
        lines = [
            Line(WORDS[name] + "s", *zip(*map(_rounded, thinned(points)), strict=True))
            for name, points in fault.delays.items()
        ]
        if lines:
            yield Series(
                f"Delays around the fault: {fault.name}", "due after the fault [s]", "delay [s]", lines
            )


def _rounded(point: tuple[float, float]) -> tuple[float, float]:
    return rounded(point[0]), rounded(point[1])


def thinned(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """Return at most `DRAWN` of *points*, evenly."""
    step = max(1, -(-len(points) // DRAWN))
    return points[::step]


def notes(context: Context) -> Iterator[str]:
    """Say how much ran, what was reduced, and what was left out."""
    size, timing = context.size, Timing.of(context.size)
    yield (
        f"{size.rate:g} alerts and {EVENTS_A_SECOND:g} VOEvents a second ({size.profile} profile), "
        f"{size.pairs} pairs; {timing.lead:.0f} s before the fault, {timing.tail:.0f} s after the restart. "
        f"Visits of {PER_VISIT} alerts, so that no cap cuts any off; {OTHERS} filters beside, {CODE} of them "
        "in the sandbox."
    )
    if size.profile == "quick":
        yield "Reduced: the full profile has 100 alerts a second, 20 s before and 30 s after, and five pairs."
    left = [victim.title for victim in VICTIMS if not may_die(victim, context)]
    if context.bootstrap is not None:
        yield "Kafka was there already: accounts are others' too, so only sent and read ids are compared."
    if left:
        yield f"Left out, for they are not ours to kill: {', '.join(left)}."
