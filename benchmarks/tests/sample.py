"""A scenario of no work, and its result, for tests."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from nightwire.benchmarks import (
    Better,
    Context,
    Experiment,
    Figure,
    Figures,
    Kind,
    Line,
    Needs,
    Outcome,
    Published,
    RunError,
    Scenario,
    Series,
    Size,
)
from nightwire.benchmarks.harness.result_files import Provenance, make_result
from nightwire.benchmarks.model.sample import ProcessUse, Sample, Use

BEGAN = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
MACHINE = {"cores": 2, "cpu": "Sample CPU", "memory_bytes": 8 * 10**9, "kernel": "6.1", "system": "Debian"}
VERSIONS: dict[str, Any] = dict.fromkeys(
    ("nightwire", "python", "kafka", "librdkafka", "confluent_kafka", "spark", "java"), "1.0"
) | {"commit": "0123456789ab", "dirty": False}


class Steps(Experiment):
    """An experiment that notes what is asked of it."""

    name = "steps"

    def __init__(self, fail_at: int | None = None) -> None:
        self.said: list[str] = []
        self._fail_at = fail_at

    def prepare(self) -> None:
        self.said.append("prepare")

    def run_once(self, kind: Kind) -> Figures:
        self.said.append(kind.value)
        if len(self.said) - 1 == self._fail_at:
            raise RunError("it broke")
        return {"walk_seconds": 2.0 if kind is Kind.SUBJECT else 1.0, "walks_per_second": 0.5}

    def tear_down(self) -> None:
        self.said.append("tear down")


class SampleScenario(Scenario):
    """A scenario of one experiment."""

    name = "sample"
    title = "A sample <walk> & more"
    measures = "How long a walk takes."
    figures: Sequence[Figure] = (
        Figure("walk_seconds", "s", "A walk", baseline="a run", headline=True),
        Figure(
            "share_of_a_run", "1", "Share", Better.HIGHER, "a run", share_of="walk_seconds", headline=True
        ),
        Figure(
            "walks_per_second", "1/s", "Walks", Better.HIGHER, published=Published(3.0, "Somebody", "a hill")
        ),
        Figure("never_measured", "s", "Never"),
    )
    standard: Mapping[str, Size] = {"quick": Size(10, 2, 5.0), "full": Size(100, 4, 5.0, "full")}

    def __init__(self, *experiments: Experiment) -> None:
        self._experiments = experiments or (Steps(),)
        self.torn_down = False

    def needs(self, size: Size) -> Needs:
        return Needs(0, 0, float(size.alerts))

    def experiments(self, context: Context) -> Sequence[Experiment]:
        context.say("making the sample")
        return self._experiments

    def tear_down(self) -> None:
        self.torn_down = True

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        lines = [Line("ours", [1.0, 10.0, 100.0], [0.0, 0.5, 1.0]), Line("theirs", [2.0, 3.0], [0.0, 1.0])]
        series = Series("Delay of a walk", "delay [ms]", "share", lines, log_x=True)
        return Outcome([series], ["10 alerts a run."], {"workload": "sample"})


class Pairwise(SampleScenario):
    """One whose pairs take 10 s by estimate; there are 2 of them, 4 in the profile `full`."""

    def needs(self, size: Size) -> Needs:
        return Needs(0, 0, 10.0 * size.pairs)


def samples(subject: Sequence[float] = (2.0, 2.2, 1.9), others: float = 0.01) -> list[Sample]:
    """Return pairs whose baseline always takes 1 s."""
    processes = [ProcessUse("producer", 1.5, 100_000_000), ProcessUse("kafka", 2.5, 400_000_000)]
    use = Use(3.0, others, processes)
    made = []
    for pair, seconds in enumerate(subject):
        ours = {"walk_seconds": seconds, "walks_per_second": 1 / seconds}
        made.append(Sample("steps", Kind.SUBJECT, pair, ours, use))
        made.append(Sample("steps", Kind.BASELINE, pair, {"walk_seconds": 1.0}, use))
    return made


def sample_result(**changes: Any) -> dict[str, Any]:
    """Return a result, with *changes* to its samples."""
    scenario, taken = SampleScenario(), samples(**changes)
    return make_result(
        scenario,
        scenario.standard["quick"],
        taken,
        scenario.outcome(taken),
        Provenance(MACHINE, VERSIONS, [BEGAN.isoformat()], BEGAN),
    )


def schema() -> dict[str, Any]:
    """Return the JSON schema of result files."""
    text = files("nightwire.benchmarks.harness").joinpath("result.schema.json").read_text(encoding="utf-8")
    parsed: dict[str, Any] = json.loads(text)
    return parsed
