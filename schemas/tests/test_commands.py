"""The verbs `nightwire schema list` and `show`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from nightwire.core.cli import main
from nightwire.schemas import SIM_ALERT_ID, records, sim_alert_schema


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the environment and a running stack out of these tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NIGHTWIRE_SCHEMA_REGISTRY", raising=False)
    monkeypatch.delenv("NIGHTWIRE_STATE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_our_own_schemas_are_shown_without_a_registry() -> None:
    result = CliRunner().invoke(main, ["schema", "show", str(SIM_ALERT_ID), "--json"])
    assert json.loads(result.output) == sim_alert_schema()


def test_fields_are_shown_with_unit_and_meaning() -> None:
    output = CliRunner(env={"COLUMNS": "160"}).invoke(main, ["schema", "show", "100003"]).output
    assert "params.ucd" in output
    assert "deg" in output
    assert "Radius of the error circle." in output


def test_without_a_registry_the_list_says_what_to_do() -> None:
    result = CliRunner().invoke(main, ["schema", "list"])
    assert result.exit_code == 1
    assert "name one with --registry" in result.output


@pytest.mark.slow
def test_the_embedded_stacks_registry_is_found(tmp_path: Path) -> None:
    (tmp_path / ".nightwire").mkdir()
    state = {"endpoints": {"schema_registry": "http://127.0.0.1:1"}}
    (tmp_path / ".nightwire" / "state.json").write_text(json.dumps(state))
    result = CliRunner().invoke(main, ["schema", "list"])
    assert "the registry at http://127.0.0.1:1 does not answer" in result.output


@pytest.mark.kafka
def test_a_registrys_subjects_are_listed(registry_url: str) -> None:
    listed = ["schema", "list", "--registry", registry_url]
    rows = json.loads(CliRunner().invoke(main, [*listed, "--json"]).output)
    ours = {row["subject"]: row for row in rows}
    assert ours["visits-value"]["id"] == records.VISIT.schema_id
    assert ours["visits-value"]["name"] == "nightwire.Visit"
    assert "alerts.sim-value" in CliRunner().invoke(main, listed).output


@pytest.mark.kafka
def test_an_unknown_subject_is_named(registry_url: str) -> None:
    result = CliRunner().invoke(main, ["schema", "show", "nonsense", "--registry", registry_url])
    assert result.exit_code == 1
    assert "nonsense" in result.output
