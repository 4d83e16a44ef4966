"""The verb `nightwire bench`."""

from click.testing import CliRunner

from nightwire.benchmarks.commands import bench


def test_the_verbs_refuse_what_cannot_be() -> None:
    for words, said in (
        (["run"], "name scenarios, or --all; there are: "),
        (["run", "vist"], "no scenario 'vist'"),
        (["run", "visit", "--time-limit", "2"], "above the limit of 2 s"),
        (["run", "visit", "--alerts", "1000000000", "--time-limit", "1e12"], "GB"),
    ):
        done = CliRunner().invoke(bench, words)
        assert done.exit_code in (1, 2)
        assert said in done.output


def test_scenarios_are_listed() -> None:
    assert "visit" in CliRunner().invoke(bench, ["list"]).output
