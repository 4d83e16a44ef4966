"""Run one scenario: guard, experiments in pairs, result; everything that was started is ended."""

import logging
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from nightwire.benchmarks._children import ChildError
from nightwire.benchmarks._cpu import DISTURBED
from nightwire.benchmarks._guard import check, minutes
from nightwire.benchmarks._machine import machine, versions
from nightwire.benchmarks._pairs import Sample, order, run_pairs
from nightwire.benchmarks._results import Result, make_result
from nightwire.benchmarks._scenario import Context, RunError, Scenario, Size
from nightwire.benchmarks._watch import Watch
from nightwire.core.progress import progress
from nightwire.core.stack import BrokerError, JarError

log = logging.getLogger("nightwire.bench")

ROOT = Path(__file__).resolve().parents[4]
"""The clone, where this runs from one."""


FAILURES = (RunError, ChildError, BrokerError, JarError)
"""What ends an experiment, and no other."""


@dataclass(frozen=True)
class Wish:
    """What a person asked for; None leaves it to the scenario's profile."""

    profile: str = "quick"
    alerts: int | None = None
    pairs: int | None = None
    rate: float | None = None
    time_limit: float = 1800.0
    engine: str = "own"
    bootstrap: str | None = None


def size_of(scenario: Scenario, wish: Wish) -> Size:
    """Return the size that *wish* gives to *scenario*."""
    asked = {"alerts": wish.alerts, "pairs": wish.pairs, "rate": wish.rate}
    given = {name: value for name, value in asked.items() if value is not None}
    return replace(scenario.standard[wish.profile], **given)  # type: ignore[arg-type]


def run(scenario: Scenario, wish: Wish, say: Callable[[str], None]) -> Result:
    """Run *scenario* and return its result; what failed is named in it.

    Raises:
        RefusedError: The machine lacks disk, memory or time for it.
        RunError: All failed.
    """
    size = size_of(scenario, wish)
    needs = scenario.needs(size)
    with _terminable(), tempfile.TemporaryDirectory(prefix="nightwire-bench-") as name:
        check(scenario.name, needs, Path(name), wish.time_limit)
        say(
            f"{scenario.name}: {size.alerts:,} alerts, {size.pairs} pairs, about {minutes(needs.seconds)}, "
            f"up to {needs.disk / 1e9:.1f} GB in {name}"
        )
        began = datetime.now(UTC)
        watch = Watch()
        context = Context(Path(name), size, wish.bootstrap, wish.engine, watch.role, say)
        try:
            samples, failed = _measure(scenario, context, watch)
        finally:
            scenario.tear_down()
        return make_result(
            scenario,
            size,
            samples,
            scenario.outcome(),
            failed=failed,
            machine=machine(),
            versions=versions(ROOT, own_kafka=wish.bootstrap is None),
            began=began,
            ended=datetime.now(UTC),
        )


def _measure(scenario: Scenario, context: Context, watch: Watch) -> tuple[list[Sample], list[str]]:
    """Return all samples, and what failed: an experiment that does takes none of the others along."""
    experiments, pairs = scenario.experiments(context), context.size.pairs
    samples: list[Sample] = []
    failed: list[str] = []
    total = sum(len(list(order(pairs, one.at_most))) for one in experiments)
    with progress(total, f"bench {scenario.name}") as meter:
        for experiment in experiments:
            try:
                for sample in run_pairs(experiment, pairs, watch):
                    samples.append(sample)
                    meter.advance()
                    context.say(_line(sample))
            except FAILURES as error:
                failed.append(f"{experiment.name}: {error}")
                context.say(f"failed: {failed[-1]}")
    if not samples:
        raise RunError("; ".join(failed))
    return samples, failed


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
