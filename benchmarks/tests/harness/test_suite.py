"""All scenarios one after the other, and their smallest size."""

import json
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from benchmarks.tests.sample import Pairwise, SampleScenario, Steps, schema
from nightwire.benchmarks import Context, Experiment, Figures, Kind, Needs, Size
from nightwire.benchmarks.commands import bench
from nightwire.benchmarks.environment.processes import nightwire
from nightwire.benchmarks.harness.options import SMOKE, RunOptions, declared_size, size_of
from nightwire.benchmarks.harness.run import first_of_each, run
from nightwire.benchmarks.harness.suite import (
    ResultTarget,
    ScenarioEnd,
    endings,
    estimates,
    run_all,
    shortest_first,
)
from nightwire.benchmarks.scenarios.registry import names, scenario


class Named(SampleScenario):
    """A scenario of a name that needs so much time."""

    def __init__(self, name: str, *experiments: Experiment, seconds: float = 10.0) -> None:
        super().__init__(*experiments)
        self.name, self._seconds = name, seconds

    def needs(self, size: Size) -> Needs:
        return Needs(0, 0, self._seconds)


class Broken(Steps):
    """An experiment with an error in it."""

    def run_once(self, kind: Kind) -> Figures:
        raise ZeroDivisionError("nobody thought of it")


class Timed(Pairwise):
    """One of a name whose pairs take *slow* times as long as by estimate."""

    def __init__(self, name: str, clock: list[float], slow: float) -> None:
        super().__init__(_Taking(clock, 5 * slow))
        self.name = name


class _Taking(Steps):
    """An experiment whose runs take so many seconds of a clock that is not the machine's."""

    def __init__(self, clock: list[float], seconds: float) -> None:
        super().__init__()
        self._clock, self._seconds = clock, seconds

    def run_once(self, kind: Kind) -> Figures:
        self._clock[0] += self._seconds
        return super().run_once(kind)


def all_of(tmp_path: Path, *scenarios: Named, **wishes: Any) -> tuple[list[ScenarioEnd], list[str]]:
    shown: list[str] = []
    done = run_all(
        scenarios,
        RunOptions(**wishes),
        ResultTarget(tmp_path),
        lambda _text: None,
        lambda result, _path: shown.append(result["scenario"]),
    )
    return done, shown


def test_one_that_is_refused_or_fails_takes_no_other_along(tmp_path: Path) -> None:
    several = [
        Named("good"),
        Named("long", seconds=1e9),
        Named("broken", Broken()),
        Named("failing", Steps(fail_at=1)),
        Named("partly", Steps(fail_at=2), Steps()),
        Named("last"),
    ]
    done, shown = all_of(tmp_path, *several)
    assert shown == ["good", "partly", "last"]
    troubles = {one.name: one.trouble for one in done}
    assert list(troubles) == [one.name for one in several]
    assert troubles["good"] == troubles["last"] == ""
    assert "above the limit of 28 min" in troubles["long"]
    assert troubles["broken"] == "ZeroDivisionError: nobody thought of it"
    assert "it broke" in troubles["failing"]
    assert troubles["partly"].startswith("not all was measured")
    assert len(list(tmp_path.glob("*.json"))) == 3
    assert all(one.torn_down for one in several if one.name != "long")


def test_the_limit_is_for_all_together(tmp_path: Path) -> None:
    """The first takes its time; what is left is too little for the second's estimate."""
    done, shown = all_of(tmp_path, Named("one", seconds=1.0), Named("two"), time_limit=10.0)
    assert shown == ["one"]
    assert "above the limit" in done[1].trouble


def test_nothing_begins_after_the_limit_but_the_other_half_of_a_pair() -> None:
    wish = RunOptions(pairs=9, time_limit=0.06)
    result = run(Named("one", Slow(), Steps(), seconds=0.0), wish, lambda _text: None)
    assert result["failed"] == [
        "slow: 1 of 9 pairs, for the limit of 0 s was reached",
        "steps: not begun, for the limit of 0 s was reached",
    ]
    assert [one["kind"] for one in result["samples"]] == ["subject", "baseline"]


class Slow(Steps):
    """An experiment that takes longer than the limit."""

    name = "slow"

    def run_once(self, kind: Kind) -> Figures:
        deadline = time.monotonic() + 0.05
        while time.monotonic() < deadline:
            pass
        return super().run_once(kind)


def test_estimates_come_before_and_times_after() -> None:
    said = list(
        estimates([Named("one", seconds=60.0), Named("two", seconds=90.0)], RunOptions(time_limit=100.0))
    )
    assert said[0].split() == ["one", "about", "60", "s"]
    assert "about 2 min, at most 100 s" in said[2]
    assert "fewer pairs" in said[3]
    assert len(list(estimates([Named("one")], RunOptions()))) == 2
    told = list(endings([ScenarioEnd("one", 30.0), ScenarioEnd("two", 40.0, "it broke\nin two lines")]))
    assert [" ".join(line.split()) for line in told] == ["one 30 s", "two 40 s it broke", "together 70 s"]


def test_the_shortest_come_first_so_that_most_fit() -> None:
    three = [Named("long", seconds=9.0), Named("short", seconds=1.0), Named("middle", seconds=5.0)]
    assert [one.name for one in shortest_first(three, RunOptions())] == ["short", "middle", "long"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("slow", "limit", "pairs"), [(0.5, 100.0, [3, 4, 4]), (1.0, 100.0, [3, 3, 4]), (2.0, 120.0, [4, 1, 1])]
)
def test_on_a_slow_machine_later_scenarios_have_fewer_pairs(
    slow: float, limit: float, pairs: list[int], tmp_path: Path
) -> None:
    clock = [0.0]
    several = [Timed(name, clock, slow) for name in ("one", "two", "three")]
    wish, home = RunOptions(pairs=4, time_limit=limit), ResultTarget(tmp_path)
    done = run_all(several, wish, home, lambda _said: None, lambda *_result: None, lambda: clock[0])
    assert [one.trouble for one in done] == ["", "", ""]
    assert [one.seconds / (10 * slow) for one in done] == pairs


def test_smoke_is_a_small_quick() -> None:
    for name in names():
        one = scenario(name)
        quick, small = one.standard["quick"], size_of(one, RunOptions(profile="smoke"))
        assert small == replace(quick, alerts=min(quick.alerts, SMOKE), pairs=1, profile="smoke")
        assert one.needs(declared_size(small)).seconds <= one.needs(quick).seconds


def test_smoke_has_the_first_experiment_of_each_kind() -> None:
    one, two, three = Steps(), Slow(), Steps()
    assert first_of_each([one, two, three]) == [one, two]
    assert first_of_each([]) == []


def test_a_scenario_knows_smoke_as_quick_and_the_result_as_smoke() -> None:
    seen: list[Size] = []

    class Looking(SampleScenario):
        def experiments(self, context: Context) -> list[Experiment]:
            seen.append(context.size)
            return [Steps(), Steps()]

    result = run(Looking(), RunOptions(profile="smoke"), lambda _text: None)
    assert (seen[0].profile, result["size"]["profile"]) == ("quick", "smoke")
    assert len(result["samples"]) == 2
    assert "the figures say nothing" in result["notes"][0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["codec"])
def test_a_steady_scenario_runs_from_the_command_line_to_its_result(name: str, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    command = nightwire("bench", "run", name, "--profile", "smoke", "--alerts", "4", "--out", str(out))
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"result: {out}" in done.stdout
    result = json.loads(out.read_text())
    jsonschema.validate(result, schema())
    assert result["size"]["profile"] == "smoke"
    assert all(entry["value"] > 0 for entry in result["results"])
    assert list(tmp_path.iterdir()) == [out]


def test_all_are_named_with_what_each_takes_and_why_it_was_refused() -> None:
    done = CliRunner().invoke(bench, ["run", "--all", "--time-limit", "1"])
    assert done.exit_code == 1
    assert all(f"{name}: {name} does not start" in done.output for name in names())
    assert {*names()} == {*done.output.rsplit("not all was measured: ", 1)[1].strip().split(", ")}
    assert "at most 1 s" in done.output
    assert "where time gets short there are fewer pairs" in done.output
