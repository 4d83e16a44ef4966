"""Scenarios one after the other, within one limit of time: none takes the others along."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nightwire.benchmarks import Scenario
from nightwire.benchmarks.harness.checkpoint import Checkpoint, CheckpointError, checkpoint_path
from nightwire.benchmarks.harness.options import RunOptions, estimate, size_of
from nightwire.benchmarks.harness.preflight import RefusedError, minutes
from nightwire.benchmarks.harness.result_files import Result, ResultError, default_path, write_result
from nightwire.benchmarks.harness.run import FAILURES, key_of, run


@dataclass
class EstimateRatio:
    """How long scenarios took beside their estimates. [s]"""

    taken: float = 0.0
    estimated: float = 0.0

    def learn(self, scenario: Scenario, options: RunOptions, seconds: float) -> None:
        """Take in that *scenario* took so long."""
        self.taken += seconds
        self.estimated += estimate(scenario, options)

    @property
    def factor(self) -> float:
        """By what estimates are multiplied."""
        return self.taken / self.estimated if self.estimated else 1.0


def fit_pairs(
    scenario: Scenario,
    later: Sequence[Scenario],
    options: RunOptions,
    pace: EstimateRatio,
    say: Callable[[str], None],
) -> RunOptions:
    """Return *options* with as many of its pairs as fit into *scenario*'s share of the time."""
    asked = size_of(scenario, options).pairs
    whole = estimate(scenario, options)
    share = options.time_limit * whole / (whole + sum(estimate(one, options) for one in later))
    choices = [replace(options, pairs=pairs) for pairs in range(asked, 0, -1)]
    fit = next((one for one in choices if estimate(scenario, one) * pace.factor <= share), choices[-1])
    if fit is not choices[0]:
        left = f"{minutes(options.time_limit)} are left for it and {len(later)} more"
        say(f"{scenario.name}: {fit.pairs} pairs instead of {asked}, for {left}")
    return fit


log = logging.getLogger("nightwire.bench")

EXPECTED_ERRORS = (RefusedError, CheckpointError, ResultError, *FAILURES)
"""What ends a scenario with a message for people."""

Say = Callable[[str], None]
Show = Callable[[Result, Path], None]


@dataclass(frozen=True)
class ResultTarget:
    """Where results are written: a folder, or the very file where there is one scenario."""

    folder: Path
    out: Path | None = None


@dataclass(frozen=True)
class ScenarioEnd:
    """How a scenario ended: after how long [s], and what was wrong, if anything was."""

    name: str
    seconds: float
    trouble: str = ""


def shortest_first(scenarios: Sequence[Scenario], options: RunOptions) -> list[Scenario]:
    """Return *scenarios* in the order in which most of them fit into a limit."""
    return sorted(scenarios, key=lambda one: estimate(one, options))


def estimates(scenarios: Sequence[Scenario], options: RunOptions) -> Iterator[str]:
    """Yield how long each of *scenarios* will take, and all together."""
    seconds = [estimate(one, options) for one in scenarios]
    for one, each in zip(scenarios, seconds, strict=True):
        yield f"{one.name:12} about {minutes(each)}"
    yield f"{'together':12} about {minutes(sum(seconds))}, at most {minutes(options.time_limit)}"
    if sum(seconds) > options.time_limit:
        yield "where time gets short there are fewer pairs; what does not fit then is refused"


def endings(done: Sequence[ScenarioEnd]) -> Iterator[str]:
    """Yield how long each took, how it ended, and how long all took."""
    for one in done:
        trouble = f"  {one.trouble.splitlines()[0]}" if one.trouble else ""
        yield f"{one.name:12} {minutes(one.seconds)}{trouble}"
    yield f"{'together':12} {minutes(sum(one.seconds for one in done))}"


def run_all(
    scenarios: Sequence[Scenario],
    options: RunOptions,
    target: ResultTarget,
    say: Say,
    show: Show,
    clock: Callable[[], float] = time.monotonic,
) -> list[ScenarioEnd]:
    """Run *scenarios* within one limit, write their results, and return how each ended.

    Args:
        scenarios: What to run, in this order.
        options: How much of them.
        target: Where results are written.
        say: Tells a person what goes on.
        show: Takes each result, and its file.
        clock: Tells the time. [s]
    """
    deadline, pace = clock() + options.time_limit, EstimateRatio()
    done: list[ScenarioEnd] = []
    for number, one in enumerate(scenarios, 1):
        began = clock()
        asked = replace(options, time_limit=max(0.0, deadline - began))
        if len(scenarios) > 1:
            asked = fit_pairs(one, scenarios[number:], asked, pace, say)
        trouble = _ended(one, asked, target, say, show)
        done.append(ScenarioEnd(one.name, clock() - began, trouble))
        if not trouble:
            pace.learn(one, asked, done[-1].seconds)
        elif len(scenarios) > 1:
            say(f"{one.name}: {trouble}")
    return done


def _ended(scenario: Scenario, options: RunOptions, target: ResultTarget, say: Say, show: Show) -> str:
    """Run one, and return what was wrong."""
    try:
        result, path = measured(scenario, options, target, say)
        show(result, path)
    except EXPECTED_ERRORS as error:
        return str(error)
    except Exception as error:  # one scenario's fault must not cost the others their turn
        log.exception("%s ended in an error that is no failure of a run", scenario.name)
        return f"{type(error).__name__}: {error}"
    return "\n".join(["not all was measured:", *result["failed"]]) if result["failed"] else ""


def measured(scenario: Scenario, options: RunOptions, target: ResultTarget, say: Say) -> tuple[Result, Path]:
    """Run one, from where it was interrupted; return its result and the file that it is in.

    Raises:
        RefusedError: The machine lacks something.
        RunError: Nothing was measured, or not all within the limit; then it is kept.
        CheckpointError: Another process measures the same.
        ResultError: The result is too large.
    """
    with _checkpoint(scenario, options, target) as checkpoint:
        try:
            result = run(scenario, options, say, checkpoint)
        except KeyboardInterrupt:
            if checkpoint.path is not None and checkpoint.samples:
                many = len(checkpoint.samples)
                say(f"{many} runs are kept in {checkpoint.path}: run the same again to go on")
            raise
        finally:
            if not checkpoint.samples:
                checkpoint.remove()
        path = target.out or default_path(result, target.folder)
        write_result(result, path)
        checkpoint.remove()
    return result, path


def _checkpoint(scenario: Scenario, options: RunOptions, target: ResultTarget) -> Checkpoint:
    """Return where runs are kept; those of small profiles are not worth it."""
    if options.profile != "full":
        return Checkpoint()
    key = key_of(scenario, options)
    return Checkpoint(
        checkpoint_path(target.out, target.folder, scenario.name, key), key, fresh=options.fresh
    )
