"""Run one scenario: guard, experiments in pairs, result; everything that was started is ended."""

import logging
import signal
import tempfile
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from nightwire.benchmarks.environment.machine import CLONE, changes, commit, machine, versions
from nightwire.benchmarks.environment.processes import ChildError
from nightwire.benchmarks.harness.checkpoint import PREFIX, Checkpoint
from nightwire.benchmarks.harness.pairs import order, run_pairs
from nightwire.benchmarks.harness.preflight import check_resources, minutes
from nightwire.benchmarks.harness.result_files import Result, make_result
from nightwire.benchmarks.model.sample import Sample
from nightwire.benchmarks.model.scenario import Context, Experiment, RunError, Scenario, Size
from nightwire.benchmarks.resources.cpu import DISTURBED
from nightwire.benchmarks.resources.monitor import ResourceMonitor
from nightwire.benchmarks.resources.recording import Recording
from nightwire.benchmarks.resources.time_series import Recorded
from nightwire.core.cli import Meter, progress
from nightwire.core.stack import BrokerError, JarError

log = logging.getLogger("nightwire.bench")

FAILURES = (RunError, ChildError, BrokerError, JarError)
"""What ends an experiment, and no other."""
LIMIT = 1680.0
"""Longest time of all scenarios together. [s]  With the report it is half an hour."""
FULL_LIMIT = 48 * 3600.0
"""The same in the profile `full`. [s]"""
SMOKE = 200
"""Most alerts of a run of the profile `smoke`."""
REPEATS = 2
"""How often a run of the profile `full` is repeated at most, while others disturb it."""


@dataclass(frozen=True)
class RunOptions:
    """What a person asked for; None leaves it to the scenario's profile."""

    profile: str = "quick"
    alerts: int | None = None
    pairs: int | None = None
    rate: float | None = None
    time_limit: float = LIMIT
    engine: str = "own"
    bootstrap: str | None = None
    fresh: bool = False
    record: bool = False


def size_of(scenario: Scenario, wish: RunOptions) -> Size:
    """Return the size that *wish* gives to *scenario*."""
    asked = {"alerts": wish.alerts, "pairs": wish.pairs, "rate": wish.rate}
    given = {name: value for name, value in asked.items() if value is not None}
    usual = smoke(scenario.standard["quick"]) if wish.profile == "smoke" else scenario.standard[wish.profile]
    return replace(usual, **given)  # type: ignore[arg-type]


def smoke(quick: Size) -> Size:
    """Return the smallest size that still goes through everything: one pair, few alerts."""
    return replace(quick, alerts=min(quick.alerts, SMOKE), pairs=1, profile="smoke")


def declared_size(size: Size) -> Size:
    """Return *size* as scenarios know it, which have two profiles: smoke is a small `quick`."""
    return replace(size, profile="quick") if size.profile == "smoke" else size


def first_of_each(experiments: Sequence[Experiment]) -> list[Experiment]:
    """Return the first experiment of each class: the others do the same with other numbers."""
    found: dict[type[Experiment], Experiment] = {}
    for one in experiments:
        found.setdefault(type(one), one)
    return list(found.values())


def run(
    scenario: Scenario, wish: RunOptions, say: Callable[[str], None], kept: Checkpoint | None = None
) -> Result:
    """Run *scenario* and return its result; what failed is named in it.

    Args:
        scenario: What to run.
        wish: How much of it.
        say: Tells a person what goes on.
        kept: What was measured before an interruption; runs are added to it.

    Raises:
        RefusedError: The machine lacks disk, memory or time for it.
        RunError: All failed.
    """
    size, kept = size_of(scenario, wish), kept or Checkpoint()
    needs = scenario.needs(declared_size(size))
    with _terminable(), tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        check_resources(scenario.name, needs, Path(name), wish.time_limit)
        say(
            f"{scenario.name}: {size.alerts:,} alerts, {size.pairs} pairs, about {minutes(needs.seconds)}, "
            f"up to {needs.disk / 1e9:.1f} GB in {name}"
        )
        watch = ResourceMonitor()
        told = (watch.role, say, watch.traffic)
        context = Context(Path(name), declared_size(size), wish.bootstrap, wish.engine, *told)
        recording = Recording(watch) if wish.record else None
        try:
            failed = _Sitting(scenario, context, watch, kept, wish, recording).measure()
        finally:
            scenario.tear_down()
            recorded = None if recording is None else recording.end()
        return _result(scenario, size, wish, kept, failed, recorded)


def _result(
    scenario: Scenario,
    size: Size,
    wish: RunOptions,
    kept: Checkpoint,
    failed: list[str],
    recorded: Recorded | None,
) -> Result:
    outcome = kept.shown(scenario.outcome(kept.samples))
    return make_result(
        scenario,
        size,
        kept.samples,
        replace(outcome, notes=[*_circumstances(size, kept), *outcome.notes]),
        failed=failed,
        machine=machine(),
        versions=versions(CLONE, own_kafka=wish.bootstrap is None),
        sittings=kept.sittings,
        ended=datetime.now(UTC),
        recorded=recorded,
    )


def _circumstances(size: Size, kept: Checkpoint) -> Iterator[str]:
    if size.profile == "smoke":
        yield (
            "Smoke profile: the first experiment of each kind, one pair, few alerts. It shows that all runs; "
            "the figures say nothing."
        )
    if len(kept.sittings) > 1:
        yield (
            f"Measured in {len(kept.sittings)} sittings, for it was interrupted: whole pairs were kept, the "
            "others measured again; plots of single delays show the last sitting's."
        )


def key_of(scenario: Scenario, wish: RunOptions) -> dict[str, Any]:
    """Return what runs have to agree in to belong to one result."""
    return {
        "scenario": scenario.name,
        "size": vars(size_of(scenario, wish)),
        "engine": wish.engine,
        "bootstrap": wish.bootstrap,
        "commit": commit(CLONE),
        "changes": changes(CLONE),
        "machine": machine(),
    }


@dataclass
class _Sitting:
    """One sitting of a benchmark: from its beginning, or from where it was interrupted, to its end."""

    scenario: Scenario
    context: Context
    watch: ResourceMonitor
    kept: Checkpoint
    wish: RunOptions
    recording: Recording | None = None
    _done: frozenset[str] = frozenset()
    _there: Mapping[str, Container[int]] = field(default_factory=dict)
    _staged: bool = False

    def measure(self) -> list[str]:
        """Measure what is missing; return what failed, which takes no other experiment along.

        Raises:
            RunError: Nothing was measured, or not all within the limit and what there is was kept.
        """
        deadline = time.monotonic() + self.wish.time_limit
        experiments = list(self.scenario.experiments(self.context))
        if self.wish.profile == "smoke":
            experiments = first_of_each(experiments)
        self._begin(experiments)
        total = sum(len(list(order(self._pairs, one.at_most))) for one in experiments)
        failed: list[str] = []
        with progress(total, f"bench {self.scenario.name}") as meter:
            meter.advance(len(self.kept.samples))
            for before, experiment in zip([None, *experiments], experiments, strict=False):
                if experiment.name in self._done:
                    continue
                if (why := self._measured(before, experiment, meter, deadline)) is not None:
                    failed.append(f"{experiment.name}: {why}")
                    self.context.say(f"failed: {failed[-1]}")
        if not self.kept.samples:
            raise RunError("; ".join(failed))
        return failed

    @property
    def _pairs(self) -> int:
        return self.context.size.pairs

    def _begin(self, experiments: Sequence[Experiment]) -> None:
        self.kept.begin(datetime.now(UTC), experiments, self._pairs, self.context.folder)
        self._done = frozenset(self.kept.done)
        self._there = {one.name: {run.pair for run in self.kept.of(one)} for one in experiments}
        if len(self.kept.sittings) > 1:
            self.context.say(
                f"going on with what was interrupted: {len(self._done)} of {len(experiments)} experiments "
                f"are done, {len(self.kept.samples)} runs are kept (--fresh begins anew)"
            )

    def _measured(
        self, before: Experiment | None, experiment: Experiment, meter: Meter, deadline: float
    ) -> str | None:
        """Measure what is missing of *experiment*; return why it failed, None where it did not."""
        if time.monotonic() > deadline:
            return self._late("not begun")
        try:
            self._set_the_stage(before)
            if self._run(experiment, meter, deadline):
                self.kept.finish(experiment, lambda: self.scenario.outcome(self.kept.samples))
                return None
        except FAILURES as error:
            return str(error)
        pairs = len({one.pair for one in self.kept.of(experiment)})
        return self._late(f"{pairs} of {self._pairs} pairs")

    def _run(self, experiment: Experiment, meter: Meter, deadline: float) -> bool:
        """Run what is missing of *experiment*; return False where time was up before its last pair."""
        there = self._there[experiment.name]
        repeats = REPEATS if self.wish.profile == "full" else 0
        missing = [pair for pair, _kind in order(self._pairs, experiment.at_most) if pair not in there]
        with closing(run_pairs(experiment, self._pairs, self.watch, repeats=repeats, there=there)) as samples:
            for sample in samples:
                missing.remove(sample.pair)
                self.kept.add(sample)
                if self.recording is not None:
                    self.recording.ran(sample)
                meter.advance()
                self.context.say(_line(sample))
                if missing and sample.pair not in missing and time.monotonic() > deadline:
                    return False
        return True

    def _late(self, how_far: str) -> str:
        """Say that time is up; where runs are kept, the rest is for another sitting.

        Raises:
            RunError: They are kept.
        """
        limit = minutes(self.wish.time_limit)
        if self.kept.path is None:
            return f"{how_far}, for the limit of {limit} was reached"
        raise RunError(
            f"the limit of {limit} was reached with {len(self.kept.done)} experiments done; they are kept in "
            f"{self.kept.path}: run the same again to go on"
        )

    def _set_the_stage(self, before: Experiment | None) -> None:
        """Prepare an experiment that was done in an earlier sitting: the next may find what it left."""
        if not self._staged and before is not None and before.name in self._done:
            self._staged = True
            try:
                before.prepare()
            finally:
                before.tear_down()


def _line(sample: Sample) -> str:
    figures = ", ".join(f"{name} {value:.4g}" for name, value in [*sample.figures.items()][:1])
    disturbed = f"  (others took {sample.use.others:.0%})" if sample.use.others > DISTURBED else ""
    return (
        f"{sample.experiment} {sample.pair + 1} {sample.kind.value}: {figures or 'no figure'}, "
        f"run of {sample.use.seconds:.1f} s{disturbed}"
    )


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM unwind as Ctrl-C does, so that every child is ended.

    An interrupt inside C code may surface as another error (fastavro: `SystemError`); it is translated back.
    """
    asked: list[int] = []

    def leave(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except Exception as error:
        if asked:
            raise KeyboardInterrupt from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
