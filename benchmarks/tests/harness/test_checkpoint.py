"""A long benchmark that is interrupted goes on."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.tests.sample import BEGAN, SampleScenario, Steps, samples
from nightwire.benchmarks import Figures, Kind, Line, Outcome, Series
from nightwire.benchmarks.environment.processes import nightwire
from nightwire.benchmarks.harness.checkpoint import Checkpoint, CheckpointError, checkpoint_path, merged
from nightwire.benchmarks.harness.options import RunOptions
from nightwire.benchmarks.harness.run import run
from nightwire.benchmarks.model.sample import Sample

KEY = {"scenario": "sample", "size": {"alerts": 1}}


class Stopped(Steps):
    """An experiment of a name, during whose run number *at* somebody presses Ctrl-C."""

    def __init__(self, name: str, at: int | None = None) -> None:
        super().__init__()
        self.name, self._at = name, at

    def run_once(self, kind: Kind) -> Figures:
        found = super().run_once(kind)
        if len(done(self)) == self._at:
            raise KeyboardInterrupt
        return found


def sitting(path: Path, *experiments: Steps, fresh: bool = False) -> dict[str, Any]:
    with Checkpoint(path, KEY, fresh=fresh) as kept:
        result = run(SampleScenario(*experiments), RunOptions(pairs=2), lambda _text: None, kept)
        kept.remove()
    return result


def interrupted(path: Path, *experiments: Steps) -> None:
    with pytest.raises(KeyboardInterrupt):
        sitting(path, *experiments)


def runs(result: dict[str, Any]) -> list[tuple[str, int, str]]:
    return [(one["experiment"], one["pair"], one["kind"]) for one in result["samples"]]


def done(experiment: Steps) -> list[str]:
    return [step for step in experiment.said if step in tuple(Kind)]


WHOLE = [
    (name, pair, kind)
    for name in ("one", "two")
    for pair, kind in ((0, "subject"), (0, "baseline"), (1, "baseline"), (1, "subject"))
]


@pytest.mark.slow
@pytest.mark.parametrize("at", range(1, 9))
def test_wherever_it_is_interrupted_the_next_sitting_makes_it_whole(tmp_path: Path, at: int) -> None:
    path = tmp_path / "kept.jsonl"
    interrupted(path, Stopped("one", at if at <= 4 else None), Stopped("two", at - 4 if at > 4 else None))
    one, two = Stopped("one"), Stopped("two")
    result = sitting(path, one, two)
    assert runs(result) == WHOLE
    assert len(done(one)) + len(done(two)) < len(WHOLE) or at <= 2
    assert len(result["sittings"]) == 2
    assert any("2 sittings" in note for note in result["notes"])
    assert list(tmp_path.iterdir()) == []


def test_an_experiment_that_is_done_is_only_prepared_for_what_the_next_finds(tmp_path: Path) -> None:
    interrupted(tmp_path / "kept.jsonl", Stopped("one"), Stopped("two", 1))
    one, two = Stopped("one"), Stopped("two")
    sitting(tmp_path / "kept.jsonl", one, two)
    assert one.said == ["prepare", "tear down"]
    assert two.said[0] == "prepare"


def test_half_a_pair_is_measured_again(tmp_path: Path) -> None:
    interrupted(tmp_path / "kept.jsonl", Stopped("one", 4))
    one = Stopped("one")
    sitting(tmp_path / "kept.jsonl", one)
    assert done(one) == ["baseline", "subject"]


def test_it_may_be_interrupted_many_times(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    for _turn in range(3):
        interrupted(path, Stopped("one", 2))
    interrupted(path, Stopped("one", 4))
    assert len(sitting(path, Stopped("one"))["sittings"]) == 5


def test_fresh_begins_anew(tmp_path: Path) -> None:
    interrupted(tmp_path / "kept.jsonl", Stopped("one", 4))
    one = Stopped("one")
    assert len(sitting(tmp_path / "kept.jsonl", one, fresh=True)["sittings"]) == 1
    assert len(done(one)) == 4


def test_what_belongs_to_something_else_is_not_taken(tmp_path: Path) -> None:
    interrupted(tmp_path / "kept.jsonl", Stopped("one", 4))
    with Checkpoint(tmp_path / "kept.jsonl", {**KEY, "commit": "other"}) as other:
        assert (other.samples, other.sittings) == ([], [])


def written(path: Path, some: Sequence[Sample]) -> None:
    steps = Stopped("steps")
    with Checkpoint(path, KEY) as kept:
        kept.begin(BEGAN, [steps], 2)
        for one in some:
            kept.add(one)
        kept.finish(steps, lambda: SampleScenario().outcome([]))


def test_what_was_kept_comes_back_as_it_was(tmp_path: Path) -> None:
    some = samples((2.0, 1 / 3), others=0.2)
    written(tmp_path / "kept.jsonl", some)
    with Checkpoint(tmp_path / "kept.jsonl", KEY) as kept:
        kept.begin(datetime.now(UTC), [Stopped("steps")], 2)
        assert sorted(kept.samples, key=str) == sorted(some, key=str)
        assert kept.done == {"steps": SampleScenario().outcome([])}
        assert len(kept.sittings) == 2


def test_a_line_that_a_crash_cut_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    written(path, samples((2.0, 3.0)))
    *lines, _done, _end = path.read_text().split("\n")
    path.write_text("\n".join([*lines, lines[-1][:40]]))
    with Checkpoint(path, KEY) as kept:
        kept.begin(datetime.now(UTC), [Stopped("steps")], 2)
        # all its runs are there, but not what they had to show: the last pair is measured again
        assert {one.pair for one in kept.samples} == {0}
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_what_a_killed_sitting_left_on_the_disk_is_removed(tmp_path: Path) -> None:
    left, foreign = tmp_path / "nightwire-bench-x", tmp_path / "else"
    for folder in (left, foreign):
        (folder / "kafka").mkdir(parents=True)
        with Checkpoint(tmp_path / "kept.jsonl", KEY) as kept:
            kept.begin(BEGAN, [], 1, folder)
    with Checkpoint(tmp_path / "kept.jsonl", KEY) as kept:
        assert len(kept.sittings) == 2
    assert (left.exists(), foreign.exists()) == (False, True)


def test_two_runs_of_the_same_do_not_share_a_file(tmp_path: Path) -> None:
    with (
        Checkpoint(tmp_path / "kept.jsonl", KEY),
        pytest.raises(CheckpointError, match="written by another run"),
    ):
        Checkpoint(tmp_path / "kept.jsonl", KEY)
    Checkpoint(tmp_path / "kept.jsonl", KEY).close()
    assert list(tmp_path.iterdir()) == []


def test_its_name_depends_on_all_that_must_agree(tmp_path: Path) -> None:
    one = checkpoint_path(None, tmp_path, "codec", KEY)
    assert one != checkpoint_path(None, tmp_path, "codec", {**KEY, "commit": "other"})
    assert one == checkpoint_path(None, tmp_path, "codec", dict(reversed(KEY.items())))
    assert checkpoint_path(tmp_path / "a.json", tmp_path, "codec", KEY).name == "a.unfinished.jsonl"


def test_plots_of_three_sittings_come_together(tmp_path: Path) -> None:
    def point(x: float) -> Outcome:
        return Outcome([Series("curve", "x", "y", [Line("ours", [x], [10 * x])])])

    for turn, name in enumerate(("one", "two"), 1):
        with Checkpoint(tmp_path / "kept.jsonl", KEY) as kept:
            kept.begin(BEGAN, [], 2)
            kept.finish(Stopped(name), lambda x=float(turn): point(x))  # type: ignore[misc]
    with Checkpoint(tmp_path / "kept.jsonl", KEY) as kept:
        kept.begin(BEGAN, [], 2)
        assert kept.shown(point(3.0)).series[0].lines == [Line("ours", [1.0, 2.0, 3.0], [10.0, 20.0, 30.0])]


def test_two_sittings_show_their_plots_together() -> None:
    def outcome(title: str, x: list[float], y: list[float], note: str) -> Outcome:
        return Outcome([Series(title, "x", "y", [Line("ours", x, y)])], ["both", note], {note: 1})

    found = merged(outcome("curve", [1.0, 3.0], [10.0, 30.0], "a"), outcome("curve", [2.0], [20.0], "b"))
    assert found.series[0].lines == [Line("ours", [1.0, 2.0, 3.0], [10.0, 20.0, 30.0])]
    assert list(found.notes) == ["both", "b", "a"]
    assert found.open_messaging == {"a": 1, "b": 1}
    apart = merged(outcome("one", [1.0], [1.0], "a"), outcome("other", [1.0], [1.0], "b"))
    assert [one.title for one in apart.series] == ["one", "other"]


COUNT = 16
"""Runs of the scenario `codec`: two engines, each encoding and morphing, two pairs."""


@pytest.mark.slow
def test_a_benchmark_that_is_terminated_and_then_killed_gives_a_complete_result(tmp_path: Path) -> None:
    home = tmp_path / "results"
    out, kept = home / "codec.json", home / "codec.unfinished.jsonl"
    for number, least in ((signal.SIGTERM, 3), (signal.SIGKILL, 7)):
        with started(out) as process:
            await_runs(kept, least, process)
            process.send_signal(number)
            assert process.wait(60) != 0
        assert kept.exists()
        assert not out.exists()
    before = kept_runs(kept)
    with started(out) as process:
        said = process.communicate(timeout=300)[0]
    assert process.returncode == 0, said
    assert "going on with what was interrupted" in said
    result = json.loads(out.read_text())
    assert len(result["sittings"]) == 3
    assert result["failed"] == []
    expected = COUNT if len({one["experiment"] for one in result["samples"]}) == 4 else COUNT // 2
    assert len({(one["experiment"], one["pair"], one["kind"]) for one in result["samples"]}) == expected
    assert len(result["samples"]) == expected
    assert [entry["runs"] for entry in result["results"]] == [2] * len(result["results"])
    first = result["samples"][0]["figures"]
    assert first == pytest.approx(before[0]["figures"], rel=1e-4)  # it was not measured again
    assert list(home.iterdir()) == [out]
    assert list(tmp_path.iterdir()) == [home]  # what a killed one left on the disk is gone, too


def started(out: Path) -> "subprocess.Popen[str]":
    words = ["--profile", "full", "--alerts", "4", "--pairs", "2", "--no-record", "--out", str(out)]
    command = nightwire("bench", "run", "codec", *words)
    # whoever works in the clone meanwhile does not matter
    still = {**os.environ, "GIT_DIR": str(out.parent / "none"), "TMPDIR": str(out.parents[1])}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=still)


def await_runs(path: Path, least: int, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 120
    while len(kept_runs(path)) < least:
        assert process.poll() is None, "it ended before it could be interrupted"
        assert time.monotonic() < deadline
        time.sleep(0.01)  # polling a file, not hoping


def kept_runs(path: Path) -> list[dict[str, Any]]:
    return [row["sample"] for row in rows(path) if "sample" in row]


def rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            yield json.loads(line)
        except ValueError:
            return
