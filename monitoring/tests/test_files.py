"""Dashboards, rules and Prometheus' configuration as files."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nightwire.monitoring._dashboards import PAGES
from nightwire.monitoring._files import stale
from nightwire.monitoring._panel import queries
from nightwire.monitoring._prometheus import command, prometheus_config, rules
from nightwire.monitoring.commands import dashboards, prometheus

ROOM = Path(__file__).parents[1]


def panels(name: str) -> list[dict[str, Any]]:
    page = json.loads((ROOM / "grafana" / "dashboards" / f"{name}.json").read_text())
    return [panel for panel in page["panels"] if panel["type"] != "row"]


each = pytest.mark.parametrize("name", PAGES)


def test_the_files_are_what_the_code_says() -> None:
    assert stale(ROOM) == []  # else: nightwire dashboards build


def test_a_file_that_was_changed_by_hand_is_noticed(tmp_path: Path) -> None:
    run = CliRunner()
    assert run.invoke(dashboards, ["build", "--out", str(tmp_path)]).exit_code == 0
    assert run.invoke(dashboards, ["build", "--check", "--out", str(tmp_path)]).exit_code == 0
    (tmp_path / "grafana" / "dashboards" / "night.json").write_text("{}")
    assert run.invoke(dashboards, ["build", "--check", "--out", str(tmp_path)]).exit_code == 1


@each
def test_no_panel_reaches_beyond_the_page(name: str) -> None:
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels(name))


@each
def test_every_panel_says_what_it_means_and_asks_something(name: str) -> None:
    assert len(panels(name)) == sum(len(row.panels) for row in PAGES[name].rows)
    for panel in panels(name):
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert all(target["expr"] for target in panel["targets"])
        assert panel["datasource"] == {"type": "prometheus", "uid": "prometheus"}
    assert len({panel["title"] for panel in panels(name)}) == len(panels(name))


@each
def test_the_dashboard_asks_what_the_table_lists(name: str) -> None:
    asked = [target["expr"] for panel in panels(name) for target in panel["targets"]]
    assert asked == queries(PAGES[name].rows)


def test_without_prometheus_the_verb_says_how_to_get_it(tmp_path: Path) -> None:
    words = ["--state", str(tmp_path / "state"), "--target", "gateway=127.0.0.1:1"]
    result = CliRunner().invoke(prometheus, words, env={"PATH": ""})
    assert result.exit_code == 3
    assert "apt-get install prometheus" in result.output
    assert not (tmp_path / "state").exists()


def test_a_target_without_a_name_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(prometheus, ["--state", str(tmp_path), "--target", "127.0.0.1:1"])
    assert result.exit_code == 2
    assert "is not NAME=HOST:PORT" in result.output


@pytest.mark.prometheus
def test_prometheus_takes_the_configuration(tmp_path: Path) -> None:
    line = command(tmp_path, 9, {"gateway": "127.0.0.1:9401", "filters": "127.0.0.1:9402"}, retention="64MB")
    assert line is not None
    promtool("check", "config", str(tmp_path / "prometheus.yml"))


@pytest.mark.prometheus
def test_prometheus_takes_the_compose_stacks_configuration(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(rules())
    text = (ROOM / "prometheus" / "prometheus.yml").read_text()
    config = tmp_path / "prometheus.yml"
    config.write_text(text.replace("/etc/prometheus/rules.yml", str(tmp_path / "rules.yml")))
    promtool("check", "config", str(config))


@pytest.mark.prometheus
@pytest.mark.parametrize("cases", ["rules", "nights"])
def test_the_rules_fire_when_they_should_and_only_then(cases: str) -> None:
    promtool("test", "rules", str(Path(__file__).parent / f"{cases}.test.yml"))


def test_every_alert_is_in_the_operators_guide() -> None:
    guide = (ROOM.parent / "docs" / "user" / "operator.md").read_text()
    alerts = [line.split(": ")[1] for line in rules().splitlines() if "- alert: " in line]
    assert alerts
    assert [name for name in alerts if f"`{name}`" not in guide] == []


def test_targets_are_labelled_by_process() -> None:
    text = prometheus_config({"gateway": "h:1"}, "r.yml", alertmanager="a:2", jobs={"node": "n:3"})
    assert '- {targets: ["h:1"], labels: {process: gateway}}' in text
    assert 'static_configs: [{targets: ["n:3"]}]' in text
    assert "a:2" in text


def promtool(*words: str) -> None:
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
