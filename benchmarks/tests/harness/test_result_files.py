"""What is in a result file."""

import json
import os
import signal
from pathlib import Path

import jsonschema
import pytest

from benchmarks.tests.sample import SampleScenario, Steps, sample_result, schema
from nightwire.benchmarks import Figures, Kind, RunError
from nightwire.benchmarks.harness.options import RunOptions, size_of
from nightwire.benchmarks.harness.result_files import (
    LARGEST,
    ResultError,
    default_path,
    latest,
    read_result,
    results_folder,
    write_result,
)
from nightwire.benchmarks.harness.run import run
from nightwire.benchmarks.scenarios.registry import UnknownScenarioError, names, scenario


def test_a_result_fits_its_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(json.loads(json.dumps(sample_result())), schema())


def test_a_real_run_of_a_scenario_gives_a_result_that_fits_the_schema() -> None:
    one, said = SampleScenario(), []
    result = run(one, RunOptions(pairs=1), said.append)
    jsonschema.validate(json.loads(json.dumps(result)), schema())
    assert one.torn_down
    assert "making the sample" in said
    assert result["machine"]["cores"] >= 1
    assert result["versions"]["librdkafka"][0].isdigit()
    assert len(result["versions"]["commit"]) == 12


def test_a_scenario_that_fails_is_torn_down() -> None:
    one = SampleScenario(Steps(fail_at=1))
    with pytest.raises(RunError, match="steps: it broke"):
        run(one, RunOptions(), lambda _text: None)
    assert one.torn_down


def test_an_experiment_that_fails_is_named_and_takes_no_other_along() -> None:
    result = run(SampleScenario(Steps(fail_at=2), Steps()), RunOptions(), lambda _text: None)
    assert result["failed"] == ["steps: it broke"]
    assert "Not measured to the end, for it failed: steps: it broke" in result["notes"]
    assert [one["kind"] for one in result["samples"]] == [
        "subject", *("subject", "baseline", "baseline", "subject")
    ]  # fmt: skip
    jsonschema.validate(json.loads(json.dumps(result)), schema())


def test_an_interrupt_that_c_code_turned_into_another_error_is_still_one() -> None:
    class Interrupted(Steps):
        def run_once(self, kind: Kind) -> Figures:
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                signal.sigtimedwait([], 5)
            except KeyboardInterrupt as error:
                raise SystemError("returned a result with an exception set") from error
            return {}

    one = SampleScenario(Interrupted())
    with pytest.raises(KeyboardInterrupt):
        run(one, RunOptions(), lambda _text: None)
    assert one.torn_down


def test_figures_come_with_baseline_ratio_and_spread() -> None:
    walk, share, walks = sample_result()["results"]
    assert (walk["name"], walk["value"], walk["unit"], walk["baseline"]) == ("walk_seconds", 2.0, "s", 1.0)
    assert walk["ratio"] == 2.0
    assert walk["spread"] == pytest.approx(0.075)
    assert not walk["unstable"]
    assert (share["name"], share["value"], share["baseline"], share["ratio"]) == (
        "share_of_a_run",
        2.0,
        1.0,
        2.0,
    )
    assert (walks["baseline"], walks["ratio"]) == (None, None)


def test_a_figure_that_varies_is_unstable() -> None:
    assert sample_result(subject=(1.0, 2.0, 3.0))["results"][0]["unstable"]


@pytest.mark.parametrize(("others", "disturbed"), [(0.05, False), (0.06, True)])
def test_a_run_in_which_others_took_much_is_marked(others: float, disturbed: bool) -> None:
    assert sample_result(others=others)["others"]["disturbed"] is disturbed


def test_its_name_has_scenario_date_and_commit(tmp_path: Path) -> None:
    assert default_path(sample_result(), tmp_path).name == "sample-20260102T0304Z-0123456789ab.json"


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_result(sample_result(), tmp_path / "one.json")
    assert read_result(tmp_path / "one.json") == json.loads(json.dumps(sample_result()))


def test_a_result_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="at most 2,000,000"):
        write_result(sample_result() | {"notes": ["x" * LARGEST]}, tmp_path / "one.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", '{"format": 0}'])
def test_a_file_that_is_no_result_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(ResultError, match=r"bad\.json"):
        latest(tmp_path)


def test_the_newest_of_each_scenario_is_reported(tmp_path: Path) -> None:
    for name, began, note in (("sample", "2026-01-03", "new"), ("sample", "2026-01-02", "old")):
        result = sample_result() | {"scenario": name, "beginTime": f"{began}T00:00:00+00:00", "notes": [note]}
        write_result(result, tmp_path / f"{note}.json")
    assert [one["notes"] for one in latest(tmp_path)] == [["new"]]


def test_a_smoke_run_is_not_reported(tmp_path: Path) -> None:
    small = sample_result() | {"size": {"alerts": 1, "pairs": 1, "rate": 1.0, "profile": "smoke"}}
    write_result(small | {"beginTime": "2026-02-01T00:00:00+00:00"}, tmp_path / "smoke.json")
    assert latest(tmp_path) == []
    write_result(sample_result(), tmp_path / "quick.json")
    assert [one["size"]["profile"] for one in latest(tmp_path)] == ["quick"]


@pytest.mark.slow
def test_results_that_are_kept_fit_the_schema() -> None:
    for path in results_folder().glob("*.json"):
        jsonschema.validate(read_result(path), schema())


def test_options_go_before_the_profile() -> None:
    one = SampleScenario()
    assert size_of(one, RunOptions()).alerts == 10
    assert size_of(one, RunOptions(profile="full")).pairs == 4
    assert size_of(one, RunOptions(alerts=7, pairs=1, rate=2.0)) == type(size_of(one, RunOptions()))(
        7, 1, 2.0
    )


def test_every_scenario_says_what_it_needs_and_has_both_profiles() -> None:
    for name in names():
        one = scenario(name)
        assert one.name == name
        quick, full = (one.needs(one.standard[profile]) for profile in ("quick", "full"))
        assert 0 < quick.seconds <= full.seconds
        assert 0 < quick.disk <= full.disk
        assert len({figure.name for figure in one.figures}) == len(one.figures)


def test_an_unknown_scenario_is_answered_with_those_there_are() -> None:
    with pytest.raises(UnknownScenarioError, match=r"there are: .*visit"):
        scenario("vist")
