"""Scenarios one after the other, within one limit of time: none takes the others along."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nightwire.benchmarks.harness.checkpoint import Checkpoint, CheckpointError, checkpoint_path
from nightwire.benchmarks.harness.preflight import RefusedError, minutes
from nightwire.benchmarks.harness.result_files import Result, ResultError, default_path, write_result
from nightwire.benchmarks.harness.run import FAILURES, RunOptions, key_of, run
from nightwire.benchmarks.harness.time_budget import EstimateRatio, estimate, fit_pairs
from nightwire.benchmarks.model.scenario import Scenario

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


def shortest_first(scenarios: Sequence[Scenario], wish: RunOptions) -> list[Scenario]:
    """Return *scenarios* in the order in which most of them fit into a limit."""
    return sorted(scenarios, key=lambda one: estimate(one, wish))


def estimates(scenarios: Sequence[Scenario], wish: RunOptions) -> Iterator[str]:
    """Yield how long each of *scenarios* will take, and all together."""
    seconds = [estimate(one, wish) for one in scenarios]
    for one, each in zip(scenarios, seconds, strict=True):
        yield f"{one.name:12} about {minutes(each)}"
    yield f"{'together':12} about {minutes(sum(seconds))}, at most {minutes(wish.time_limit)}"
    if sum(seconds) > wish.time_limit:
        yield "where time gets short there are fewer pairs; what does not fit then is refused"


def endings(done: Sequence[ScenarioEnd]) -> Iterator[str]:
    """Yield how long each took, how it ended, and how long all took."""
    for one in done:
        trouble = f"  {one.trouble.splitlines()[0]}" if one.trouble else ""
        yield f"{one.name:12} {minutes(one.seconds)}{trouble}"
    yield f"{'together':12} {minutes(sum(one.seconds for one in done))}"


def run_all(
    scenarios: Sequence[Scenario],
    wish: RunOptions,
    home: ResultTarget,
    say: Say,
    show: Show,
    clock: Callable[[], float] = time.monotonic,
) -> list[ScenarioEnd]:
    """Run *scenarios*, write their results, and return how each ended; the limit is for all of them.

    Args:
        scenarios: What to run, in this order.
        wish: How much of them.
        home: Where results are written.
        say: Tells a person what goes on.
        show: Takes each result, and its file.
        clock: Tells the time. [s]
    """
    deadline, pace = clock() + wish.time_limit, EstimateRatio()
    done: list[ScenarioEnd] = []
    for number, one in enumerate(scenarios, 1):
        began = clock()
        asked = replace(wish, time_limit=max(0.0, deadline - began))
        if len(scenarios) > 1:
            asked = fit_pairs(one, scenarios[number:], asked, pace, say)
        trouble = _ended(one, asked, home, say, show)
        done.append(ScenarioEnd(one.name, clock() - began, trouble))
        if not trouble:
            pace.learn(one, asked, done[-1].seconds)
        elif len(scenarios) > 1:
            say(f"{one.name}: {trouble}")
    return done


def _ended(scenario: Scenario, wish: RunOptions, home: ResultTarget, say: Say, show: Show) -> str:
    """Run one, and return what was wrong."""
    try:
        result, path = measured(scenario, wish, home, say)
        show(result, path)
    except EXPECTED_ERRORS as error:
        return str(error)
    except Exception as error:  # one scenario's fault must not cost the others their turn
        log.exception("%s ended in an error that is no failure of a run", scenario.name)
        return f"{type(error).__name__}: {error}"
    return "\n".join(["not all was measured:", *result["failed"]]) if result["failed"] else ""


def measured(scenario: Scenario, wish: RunOptions, home: ResultTarget, say: Say) -> tuple[Result, Path]:
    """Run one, go on with it where it was interrupted, and return its result and the file that it is in.

    Raises:
        RefusedError: The machine lacks something.
        RunError: Nothing was measured, or not all within the limit; then it is kept.
        KeptError: Another process measures the same.
        ResultError: The result is too large.
    """
    with _checkpoint(scenario, wish, home) as kept:
        try:
            result = run(scenario, wish, say, kept)
        except KeyboardInterrupt:
            if kept.path is not None and kept.samples:
                say(f"{len(kept.samples)} runs are kept in {kept.path}: run the same again to go on")
            raise
        finally:
            if not kept.samples:
                kept.remove()
        path = home.out or default_path(result, home.folder)
        write_result(result, path)
        kept.remove()
    return result, path


def _checkpoint(scenario: Scenario, wish: RunOptions, home: ResultTarget) -> Checkpoint:
    """Return where runs are kept; those of small profiles are not worth it."""
    if wish.profile != "full":
        return Checkpoint()
    key = key_of(scenario, wish)
    return Checkpoint(checkpoint_path(home.out, home.folder, scenario.name, key), key, fresh=wish.fresh)
