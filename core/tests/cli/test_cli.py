"""The command names its verbs without loading what they need."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, KafkaException

from nightwire.core.cli import verbs as cli
from nightwire.core.runtime import NoStackError
from nightwire.schemas import meant

HEAVY = {"pyspark", "astropy", "httpx", "pyarrow", "pandas", "matplotlib", "lxml", "numpy", "fastavro"}
VERBS = sorted(entry_points(group=cli.GROUP).names)


def test_help_lists_every_verb_and_loads_nothing_heavy() -> None:
    code = (
        "import sys, click.testing, nightwire.core.cli as c;"
        "print(click.testing.CliRunner().invoke(c.main, ['--help']).output);"
        "print('LOADED', *sys.modules)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    listing, loaded = output.split("LOADED")
    assert all(f"\n  {verb} " in listing for verb in VERBS)
    assert "not installed" not in listing
    assert HEAVY & set(loaded.split()) == set()


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    result = CliRunner().invoke(cli.main, [verb, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.output or "Commands:" in result.output


@pytest.mark.slow
def test_a_verb_whose_package_is_missing_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def judge() -> None:
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")

    monkeypatch.setattr(cli, "_load", lambda _entry: judge)
    result = CliRunner().invoke(cli.main, ["filter"])
    assert result.exit_code == 1
    assert "[filters]'" in result.output


def test_a_verb_that_is_not_there_is_answered_with_the_one_that_was_meant() -> None:
    result = CliRunner().invoke(cli.main, ["stauts"])
    assert result.exit_code == 2
    assert "Did you mean 'status'?" in result.output


def test_no_stack_is_one_line_of_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def read() -> None:
        raise NoStackError("no Kafka: start one with `nightwire up`")

    monkeypatch.setattr(cli, "_load", lambda _entry: read)
    result = CliRunner().invoke(cli.main, ["topics"])
    assert (result.exit_code, result.output) == (1, "Error: no Kafka: start one with `nightwire up`\n")


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "not yours"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "begin with your own"),
        (KafkaError._AUTHENTICATION, "KAFKA_SASL_PASSWORD"),
        (KafkaError._TRANSPORT, "nightwire up"),
    ],
)
def test_what_kafka_denies_is_one_line_of_advice(
    code: int, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command()
    def read() -> None:
        raise KafkaException(KafkaError(code))

    monkeypatch.setattr(cli, "_load", lambda _entry: read)
    result = CliRunner().invoke(cli.main, ["topics"])
    assert result.exit_code == 1
    assert advice in result.output


def test_an_unknown_verb_is_wrong_use() -> None:
    assert CliRunner().invoke(cli.main, ["fly"]).exit_code == 2


def test_a_file_that_cannot_be_written_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def read() -> None:
        Path("/proc/not/there.csv").write_text("")

    monkeypatch.setattr(cli, "_load", lambda _entry: read)
    result = CliRunner().invoke(cli.main, ["topics"])
    assert (result.exit_code, result.output) == (1, "Error: /proc/not/there.csv: No such file or directory\n")


def test_names_that_were_meant_are_named() -> None:
    assert meant("alerts.simm", ["alerts.lsst", "alerts.sim"]) == "; did you mean alerts.sim?"
    assert meant("zzz", ["alerts.lsst"]) == ""
    result = CliRunner().invoke(cli.main, ["replay", "--survey", "lst", "."])
    assert "did you mean lsst?" in result.output


def test_logs_without_a_stack_say_how_to_start_one(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli.main, ["logs", "--state", str(tmp_path / ".nightwire")])
    assert result.exit_code == 1
    assert "`nightwire up` starts one" in result.output
