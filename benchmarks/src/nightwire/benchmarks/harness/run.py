"""Run one scenario: check resources, run experiments in pairs, make a result, end processes."""

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

from nightwire.benchmarks import Context, Experiment, RunError, Sample, Scenario, Size
from nightwire.benchmarks.environment.machine import CLONE, changes, commit, machine, versions
from nightwire.benchmarks.environment.processes import ChildError
from nightwire.benchmarks.harness.checkpoint import PREFIX, Checkpoint
from nightwire.benchmarks.harness.options import RunOptions, declared_size, size_of
from nightwire.benchmarks.harness.pairs import order, run_pairs
from nightwire.benchmarks.harness.preflight import check_resources, minutes
from nightwire.benchmarks.harness.result_files import Provenance, Result, make_result
from nightwire.benchmarks.resources.cpu import DISTURBED
from nightwire.benchmarks.resources.monitor import ResourceMonitor
from nightwire.benchmarks.resources.recording import Recording
from nightwire.benchmarks.resources.time_series import Recorded
from nightwire.core.cli import Meter, progress
from nightwire.core.stack import BrokerError, JarError

FAILURES = (RunError, ChildError, BrokerError, JarError)
"""What ends an experiment, and no other."""
REPEATS = 2
"""How often a run of the profile `full` is repeated at most, while others disturb it."""


def first_of_each(experiments: Sequence[Experiment]) -> list[Experiment]:
    """Return the first experiment of each class: the others do the same with other numbers."""
    found: dict[type[Experiment], Experiment] = {}
    for one in experiments:
        found.setdefault(type(one), one)
    return list(found.values())


def run(
    scenario: Scenario, options: RunOptions, say: Callable[[str], None], checkpoint: Checkpoint | None = None
) -> Result:
    """Run *scenario* and return its result; what failed is named in it.

    Args:
        scenario: What to run.
        options: How much of it.
        say: Tells a person what goes on.
        checkpoint: What was measured before an interruption; runs are added to it.

    Raises:
        RefusedError: The machine lacks disk, memory or time for it.
        RunError: All failed.
    """
    size, checkpoint = size_of(scenario, options), checkpoint or Checkpoint()
    needs = scenario.needs(declared_size(size))
    with _terminable(), tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        check_resources(scenario.name, needs, Path(name), options.time_limit)
        say(
            f"{scenario.name}: {size.alerts:,} alerts, {size.pairs} pairs, about {minutes(needs.seconds)}, "
            f"up to {needs.disk / 1e9:.1f} GB in {name}"
        )
        monitor = ResourceMonitor()
        callbacks = (monitor.role, say, monitor.traffic)
        context = Context(Path(name), declared_size(size), options.bootstrap, options.engine, *callbacks)
        recording = Recording(monitor) if options.record else None
        try:
            failed = Sitting(scenario, context, monitor, checkpoint, options, recording).measure()
        finally:
            scenario.tear_down()
            recorded = None if recording is None else recording.end()
        return _result(scenario, size, options, checkpoint, failed, recorded)


def _result(
    scenario: Scenario,
    size: Size,
    options: RunOptions,
    checkpoint: Checkpoint,
    failed: list[str],
    recorded: Recorded | None,
) -> Result:
    outcome = checkpoint.shown(scenario.outcome(checkpoint.samples))
    return make_result(
        scenario,
        size,
        checkpoint.samples,
        replace(outcome, notes=[*_circumstances(size, checkpoint), *outcome.notes]),
        Provenance(
            machine(),
            versions(CLONE, own_kafka=options.bootstrap is None),
            checkpoint.sittings,
            datetime.now(UTC),
        ),
        failed=failed,
        recorded=recorded,
    )


def _circumstances(size: Size, checkpoint: Checkpoint) -> Iterator[str]:
    if size.profile == "smoke":
        yield (
            "Smoke profile: the first experiment of each kind, one pair, few alerts. It shows that all runs; "
            "the figures say nothing."
        )
    if len(checkpoint.sittings) > 1:
        yield (
            f"Measured in {len(checkpoint.sittings)} sittings, for it was interrupted: whole pairs were "
            "kept, the others measured again; plots of single delays show the last sitting's."
        )


def key_of(scenario: Scenario, options: RunOptions) -> dict[str, Any]:
    """Return what runs have to agree in to belong to one result."""
    return {
        "scenario": scenario.name,
        "size": vars(size_of(scenario, options)),
        "engine": options.engine,
        "only": options.only,
        "bootstrap": options.bootstrap,
        "commit": commit(CLONE),
        "changes": changes(CLONE),
        "machine": machine(),
    }


@dataclass
class Sitting:
    """One sitting of a benchmark: from its beginning, or where it was interrupted, to its end."""

    scenario: Scenario
    context: Context
    monitor: ResourceMonitor
    checkpoint: Checkpoint
    options: RunOptions
    recording: Recording | None = None
    _done: frozenset[str] = frozenset()
    _known: Mapping[str, Container[int]] = field(default_factory=dict)
    _prepared: bool = False

    def measure(self) -> list[str]:
        """Measure what is missing; return what failed, which takes no other experiment along.

        Raises:
            RunError: Nothing was measured, or not all within the limit, and what there is was kept.
        """
        deadline = time.monotonic() + self.options.time_limit
        every = self.scenario.experiments(self.context)
        experiments = [one for one in every if self.options.only in one.name]
        if self.options.profile == "smoke":
            experiments = first_of_each(experiments)
        self._begin(experiments)
        total = sum(len(list(order(self._pairs, one.at_most))) for one in experiments)
        failed: list[str] = []
        with progress(total, f"bench {self.scenario.name}") as meter:
            meter.advance(len(self.checkpoint.samples))
            for before, experiment in zip([None, *experiments], experiments, strict=False):
                if experiment.name in self._done:
                    continue
                if (why := self._measured(before, experiment, meter, deadline)) is not None:
                    failed.append(f"{experiment.name}: {why}")
                    self.context.say(f"failed: {failed[-1]}")
        if not self.checkpoint.samples:
            raise RunError("; ".join(failed) or f"no experiment is called *{self.options.only}*")
        return failed

    @property
    def _pairs(self) -> int:
        return self.context.size.pairs

    def _begin(self, experiments: Sequence[Experiment]) -> None:
        self.checkpoint.begin(datetime.now(UTC), experiments, self._pairs, self.context.folder)
        self._done = frozenset(self.checkpoint.done)
        self._known = {one.name: {run.pair for run in self.checkpoint.of(one)} for one in experiments}
        if len(self.checkpoint.sittings) > 1:
            self.context.say(
                f"going on with what was interrupted: {len(self._done)} of {len(experiments)} experiments "
                f"are done, {len(self.checkpoint.samples)} runs are kept (--fresh begins anew)"
            )

    def _measured(
        self, before: Experiment | None, experiment: Experiment, meter: Meter, deadline: float
    ) -> str | None:
        """Measure what is missing of *experiment*; return why it failed, None where it did not."""
        if time.monotonic() > deadline:
            return self._late("not begun")
        try:
            self._prepare_earlier(before)
            if self._run(experiment, meter, deadline):
                self.checkpoint.finish(experiment, lambda: self.scenario.outcome(self.checkpoint.samples))
                return None
        except FAILURES as error:
            return str(error)
        pairs = len({one.pair for one in self.checkpoint.of(experiment)})
        return self._late(f"{pairs} of {self._pairs} pairs")

    def _run(self, experiment: Experiment, meter: Meter, deadline: float) -> bool:
        """Run what is missing of *experiment*; return False if time was up before its end."""
        known = self._known[experiment.name]
        repeats = REPEATS if self.options.profile == "full" else 0
        missing = [pair for pair, _kind in order(self._pairs, experiment.at_most) if pair not in known]
        with closing(
            run_pairs(experiment, self._pairs, self.monitor, repeats=repeats, known=known)
        ) as samples:
            for sample in samples:
                missing.remove(sample.pair)
                self.checkpoint.add(sample)
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
            RunError: Runs are kept.
        """
        limit = minutes(self.options.time_limit)
        if self.checkpoint.path is None:
            return f"{how_far}, for the limit of {limit} was reached"
        raise RunError(
            f"the limit of {limit} was reached with {len(self.checkpoint.done)} experiments done; they are "
            f"kept in {self.checkpoint.path}: run the same again to go on"
        )

    def _prepare_earlier(self, before: Experiment | None) -> None:
        """Prepare what an earlier sitting did: the next experiment may find what it left."""
        if not self._prepared and before is not None and before.name in self._done:
            self._prepared = True
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

    An interrupt inside C code may surface as another error (fastavro: `SystemError`); it is
    translated back.
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
