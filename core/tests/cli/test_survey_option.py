"""``--survey`` says at once which surveys there are."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from nightwire.core.cli.parameter_types import SurveyName
from nightwire.schemas import surveys


@click.command()
@click.option("--survey", required=True, type=SurveyName())
def verb(survey: str) -> None:
    """Say the survey."""
    click.echo(survey)


@pytest.mark.parametrize("words", [[], ["--survey", "none"]])
def test_who_names_no_survey_reads_which_there_are(words: list[str]) -> None:
    done = CliRunner().invoke(verb, words)
    assert done.exit_code == 2
    assert f"here are: {', '.join(surveys())}" in done.output


def test_a_survey_of_ones_own_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.toml").write_text("")
    monkeypatch.setenv("NIGHTWIRE_SURVEYS", str(tmp_path))
    assert CliRunner().invoke(verb, ["--survey", "mine"]).output == "mine\n"


def test_a_folder_of_surveys_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTWIRE_SURVEYS", "/nowhere")
    done = CliRunner().invoke(verb, ["--survey", "mine"])
    assert (done.exit_code, "NIGHTWIRE_SURVEYS=/nowhere: there is no such folder" in done.output) == (2, True)
