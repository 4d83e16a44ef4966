"""Results beside each other: what became slower."""

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from benchmarks.tests.sample import sample_result
from nightwire.benchmarks.commands import bench
from nightwire.benchmarks.compare.comparison import CompareError, Comparison, compare
from nightwire.benchmarks.compare.significance import Verdict
from nightwire.benchmarks.harness.result_files import read_result, results_folder, write_result
from nightwire.schemas import Codec

STEADY = (2.0, 2.02, 1.99)
SLOWED = (4.0, 4.02, 3.99)
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a result and returns its file."""

    def make(name: str, subject: Sequence[float] = STEADY, **changes: Any) -> Path:
        path = tmp_path / f"{name}.json"
        write_result(sample_result(subject=subject) | changes, path)
        return path

    return make


def ask(*words: str | Path) -> Result:
    return CliRunner().invoke(bench, ["compare", *map(str, words)])


def became(one: Comparison) -> dict[str, Verdict]:
    return {change.name: change.verdict for change in one.changes}


def test_a_result_is_the_same_as_itself() -> None:
    one = sample_result(subject=STEADY)
    assert set(became(compare(one, one)).values()) == {Verdict.SAME}


def test_each_figure_is_judged_by_its_own_direction() -> None:
    found = compare(sample_result(subject=STEADY), sample_result(subject=SLOWED))
    assert became(found) == {
        "walk_seconds": Verdict.SLOWER,
        "share_of_a_run": Verdict.QUICKER,  # this one improves upwards
        "walks_per_second": Verdict.SLOWER,
    }
    back = compare(sample_result(subject=SLOWED), sample_result(subject=STEADY))
    assert set(became(back).values()) == {Verdict.SLOWER, Verdict.QUICKER}
    assert back.of(Verdict.SLOWER)[0].name == "share_of_a_run"


def test_a_baseline_cancels_a_slower_machine() -> None:
    """All takes twice as long, and the ratios do not change."""
    slow = sample_result(subject=STEADY)
    for one in slow["samples"]:
        one["figures"] = {name: 2 * value for name, value in one["figures"].items() if name == "walk_seconds"}
    slow["results"] = slow["results"][:1]
    found = compare(sample_result(subject=STEADY), slow)
    assert became(found) == {"walk_seconds": Verdict.SAME}
    assert found.changes[0].by == "ratio"
    assert set(found.missing) == {"share_of_a_run", "walks_per_second"}


def test_values_of_different_machines_are_not_compared() -> None:
    other = sample_result(subject=SLOWED)
    other["machine"] = other["machine"] | {"cores": 64}
    found = {one.name: one for one in compare(sample_result(subject=STEADY), other).changes}
    assert found["walk_seconds"].verdict is Verdict.SLOWER
    assert (found["walks_per_second"].verdict, found["walks_per_second"].why) == (
        Verdict.UNKNOWN,
        "another machine",
    )


def test_ratios_to_different_baselines_are_not_compared() -> None:
    other = copy.deepcopy(sample_result(subject=SLOWED))
    other["results"][0]["baseline_is"] = "a crawl"
    found = compare(sample_result(subject=STEADY), other)
    assert found.changes[0].why == "another baseline"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scenario": "other"}, "scenario sample, the other of other"),
        (
            {"size": {"alerts": 9, "pairs": 2, "rate": 5.0, "profile": "full"}},
            "alerts 10 and 9, profile quick and full",
        ),
    ],
)
def test_what_is_not_the_same_thing_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(CompareError, match=words):
        compare(sample_result(), sample_result() | changes)


def test_more_pairs_are_the_same_thing() -> None:
    found = compare(sample_result(subject=STEADY), sample_result(subject=(*STEADY, *STEADY)))
    assert found.changes[0].runs == (3, 6)


def test_the_verb_says_what_became_slower_and_how_many_did_not(write: Write) -> None:
    done = ask(write("before"), write("after", SLOWED))
    assert done.exit_code == 1, done.output
    assert "slower" in done.output
    assert "2 slower, 1 quicker, 0 same, 0 cannot be said" in done.output
    assert ask(write("before"), write("after")).exit_code == 0


def test_figures_that_did_not_change_are_shown_when_asked_for(write: Write) -> None:
    before, after = write("before"), write("after")
    assert "walk_seconds" not in ask(before, after).output
    assert "walk_seconds" in ask(before, after, "--all").output


def test_programs_get_json(write: Write) -> None:
    done = ask(write("before"), write("after", SLOWED), "--json")
    (one,) = json.loads(done.output)["comparisons"]
    assert {figure["name"]: figure["verdict"] for figure in one["figures"]}["walk_seconds"] == "slower"
    assert one["before"]["file"].endswith("before.json")


def test_without_b_the_newest_is_compared(write: Write, tmp_path: Path) -> None:
    old = write("old")
    write("newer", STEADY, beginTime="2026-02-01T00:00:00+00:00")
    write("newest", SLOWED, beginTime="2026-03-01T00:00:00+00:00")
    write(
        "other-size", size={"alerts": 1, "pairs": 1, "rate": 5.0, "profile": "quick"}, beginTime="2026-04-01"
    )
    done = ask(old, "--results", tmp_path)
    assert done.exit_code == 1
    assert "newest.json" in done.output


def test_a_commit_names_its_results(write: Write, tmp_path: Path) -> None:
    versions = sample_result()["versions"]
    write("one")
    write("two", SLOWED, versions=versions | {"commit": "fedcba987654"})
    done = ask("01234567", "fedc", "--results", tmp_path)
    assert done.exit_code == 1
    assert "0123456789ab" in done.output


def test_folders_are_compared_scenario_by_scenario(tmp_path: Path) -> None:
    for folder, subject, names in (("a", STEADY, ("one", "two")), ("b", SLOWED, ("two", "three"))):
        for name in names:
            result = sample_result(subject=subject) | {"scenario": name}
            write_result(result, tmp_path / folder / f"{name}.json")
    done = ask(tmp_path / "a", tmp_path / "b")
    assert done.exit_code == 1
    assert "one: only one of the two has it" in done.output
    assert "three: only one of the two has it" in done.output


@pytest.mark.parametrize(
    ("text", "words"), [('{"format": 0}', "broken.json is no result of format 1"), ("<html>", "broken.json")]
)
def test_a_file_of_another_format_is_named_and_is_not_taken_for_slower(
    write: Write, tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "broken.json").write_text(text)
    done = ask(write("good"), tmp_path / "broken.json")
    assert done.exit_code == 2
    assert words in done.output


def test_a_name_of_nothing_is_answered_with_what_there_is(write: Write, tmp_path: Path) -> None:
    write("one")
    done = ask("nothing", "--results", tmp_path)
    assert done.exit_code == 2
    assert "there are results of: 0123456789ab" in done.output


def test_kept_results_are_the_same_as_themselves() -> None:
    for path in results_folder().glob("*.json"):
        one = read_result(path)
        assert {change.verdict for change in compare(one, one).changes} <= {Verdict.SAME, Verdict.UNKNOWN}


SLOWER_BY = 50
"""The encoder's work is done so often."""


@pytest.fixture
def measure(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that runs the scenario `codec`, small, and returns its result."""

    def run(name: str) -> Path:
        out = tmp_path / f"{name}.json"
        done = CliRunner().invoke(
            bench, ["run", "codec", "--alerts", "1", "--pairs", "5", "--no-record", "--out", str(out)]
        )
        assert done.exit_code == 0, done.output
        return out

    return run


@pytest.mark.slow
def test_a_slowed_codec_is_seen_and_nothing_else(
    measure: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, again = measure("before"), measure("again")
    encode = Codec.encode

    def slowed(self: Codec, alert: Any) -> bytes:
        for _turn in range(SLOWER_BY - 1 if self.engine == "python" else 0):
            encode(self, alert)
        return encode(self, alert)

    monkeypatch.setattr(Codec, "encode", slowed)
    after = measure("after")
    # of runs that take a millisecond, on a machine that does much else, only what is plain is asked
    assert slower(before, after) == ["python_encode_us"]
    assert slower(before, again) == slower(again, before) == []


def slower(before: Path, after: Path) -> list[str]:
    """Return the figures that the verb calls slower; its exit status has to agree."""
    done = ask(before, after, "--least", "90", "--json")
    (one,) = json.loads(done.output)["comparisons"]
    found = [figure["name"] for figure in one["figures"] if figure["verdict"] == "slower"]
    assert done.exit_code == bool(found)
    return found
