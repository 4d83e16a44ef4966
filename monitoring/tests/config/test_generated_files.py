"""Dashboards, rules and Prometheus' configuration as files."""

import json
import re
import subprocess
from collections.abc import Iterator
from importlib.metadata import entry_points
from itertools import product
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from nightwire.monitoring.commands import dashboards, prometheus
from nightwire.monitoring.config import Job, alertmanager_config, prepare_prometheus, prometheus_config, rules
from nightwire.monitoring.config.generated_files import stale
from nightwire.monitoring.dashboards import PAGES, queries

ROOM = Path(__file__).parents[2]
RULE_TESTS = ("rules", "hours", "nights")
"""Files of rule tests, by the time that passes in them: minutes, hours, nights."""
GUIDE = ROOM.parent / "docs" / "operator" / "trouble.md"
NO_AGENT = "Empty where Kafka's JMX agent does not run (`nightwire up --jmx`)."


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
def test_no_panel_lies_on_another(name: str) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in json.loads((ROOM / "grafana" / "dashboards" / f"{name}.json").read_text())["panels"]:
        at = panel["gridPos"]
        for spot in product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])):
            assert taken.setdefault(spot, panel["title"]) == panel["title"], spot


@each
def test_the_way_to_all_other_dashboards_is_on_each(name: str) -> None:
    page = json.loads((ROOM / "grafana" / "dashboards" / f"{name}.json").read_text())
    assert "nightwire" in page["tags"]
    assert [(link["type"], link["tags"]) for link in page["links"]] == [("dashboards", ["nightwire"])]


def test_the_night_opens_with_in_is_out_and_turns_red() -> None:
    first = panels("night")[0]
    assert [target["expr"] for target in first["targets"]] == ["nightwire:missing"]
    steps = first["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert [(step["value"], step["color"]) for step in steps] == [(None, "green"), (1, "red")]
    assert first["gridPos"] == {"x": 0, "y": 1, "w": 4, "h": 4}


def test_a_panel_that_may_be_empty_says_when() -> None:
    described = {panel["title"]: panel["description"] for panel in panels("kafka")}
    assert described["Between brokers"].endswith("Empty with one broker, which copies to nobody. " + NO_AGENT)
    assert described["Heap"].endswith(NO_AGENT)
    assert "Empty" not in described["Brokers"]


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


@pytest.mark.parametrize("word", ["kafka", "kafka=here", "=127.0.0.1:1"])
def test_a_job_without_a_name_or_a_port_is_refused(tmp_path: Path, word: str) -> None:
    words = ["--state", str(tmp_path), "--target", "gateway=127.0.0.1:1", "--job", word]
    result = CliRunner().invoke(prometheus, words)
    assert result.exit_code == 2
    assert "--job" in result.output


@pytest.mark.prometheus
def test_prometheus_takes_the_configuration(tmp_path: Path) -> None:
    jobs = {"kafka": Job(["127.0.0.1:9404"]), "spark": Job(["127.0.0.1:9402"], "/spark")}
    pages = {"gateway": "127.0.0.1:9401", "filters": "127.0.0.1:9402"}
    more = {"alertmanager": "127.0.0.1:9093", "directory": "http://127.0.0.1:8083"}
    line = prepare_prometheus(tmp_path, 9, pages, retention="64MB", jobs=jobs, **more)
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
@pytest.mark.parametrize("cases", RULE_TESTS)
def test_the_rules_fire_when_they_should_and_only_then(cases: str) -> None:
    promtool("test", "rules", str(Path(__file__).parent / f"{cases}.test.yml"))


def alert_texts() -> dict[str, str]:
    """Return what the rules say of each alert, by its name."""
    parts = re.split(r"- alert: (\w+)\n", re.sub(r"\n  - name: .*", "", rules()))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def verbs(command: click.Command, *words: str) -> Iterator[str]:
    """Yield every verb below *command*, as one types it."""
    yield " ".join(words)
    for name, one in getattr(command, "commands", {}).items():
        yield from verbs(one, *words, name)


def typed() -> set[str]:
    """Return every verb of `nightwire`, as one types it."""
    return {
        verb
        for point in entry_points(group="nightwire.commands")
        for verb in verbs(point.load(), "nightwire", point.name)
    }


def test_every_alert_says_what_it_is_how_bad_and_what_to_type() -> None:
    known = typed()
    assert "nightwire gateway status" in known
    for name, text in alert_texts().items():
        assert re.search(r"labels: \{severity: (critical|warning|info)\}", text), name
        assert "summary: " in text, name
        command = re.search(r'description: "`([^`]+)`', text)
        assert command, f"{name} does not begin with a command to type"
        words = command[1].split()
        assert words[0] in ("docker", "df") or {" ".join(words[:n]) for n in (2, 3)} & known, command[1]


def test_every_alert_has_its_paragraph_in_the_operators_guide() -> None:
    headings = re.findall(r"^## (\w+)\n\n(?=\w)", GUIDE.read_text(), re.MULTILINE)
    for name, text in alert_texts().items():
        assert f"runbook: docs/operator/trouble.md#{name.lower()}\n" in text
        assert name in headings, f"no paragraph on {name}"
    assert {name for name in headings if name in alert_texts()} == set(alert_texts())


def test_every_alert_is_seen_to_fire() -> None:
    tests = "".join((Path(__file__).parent / f"{name}.test.yml").read_text() for name in RULE_TESTS)
    fired = set(re.findall(r"alertname: (\w+)\n\s+exp_alerts:\n\s+- exp_labels", tests))
    assert fired == set(alert_texts())


@pytest.mark.prometheus
@pytest.mark.parametrize("webhook", [None, "http://127.0.0.1:9/a?b=c:d"])
def test_alertmanager_takes_the_configuration(tmp_path: Path, webhook: str | None) -> None:
    config = tmp_path / "alertmanager.yml"
    config.write_text(alertmanager_config(webhook))
    checked = subprocess.run(["amtool", "check-config", config], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.prometheus
@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ("alertname=InIsNotOut severity=critical", "operator"),
        ("alertname=FilterFaults severity=warning", "operator"),
        ("alertname=FilterPassesNothing severity=info", "digest"),
    ],
)
def test_alerts_go_to_whom_they_concern(labels: str, receiver: str) -> None:
    config = str(ROOM / "alertmanager" / "alertmanager.yml")
    route = ["amtool", "config", "routes", "test", f"--config.file={config}", *labels.split()]
    assert subprocess.run(route, capture_output=True, text=True, check=True).stdout.strip() == receiver


def test_a_webhook_is_written_where_it_is_named(tmp_path: Path) -> None:
    words = ["build", "--out", str(tmp_path), "--webhook", "http://127.0.0.1:9/hook"]
    assert CliRunner().invoke(dashboards, words).exit_code == 0
    written = (tmp_path / "alertmanager" / "alertmanager.yml").read_text()
    assert written.count('{url: "http://127.0.0.1:9/hook", send_resolved: true}') == 2


def test_targets_are_labelled_by_process() -> None:
    jobs = {"kafka": Job(["n:3", "n:4"]), "spark": Job(["h:1"], "/spark")}
    text = prometheus_config({"gateway": "h:1"}, "r.yml", alertmanager="a:2", jobs=jobs)
    assert '- {targets: ["h:1"], labels: {process: gateway}}' in text
    assert 'metrics_path: /metrics\n    static_configs: [{targets: ["n:3", "n:4"]}]' in text
    assert 'metrics_path: /spark\n    static_configs: [{targets: ["h:1"]}]' in text
    assert "a:2" in text


def promtool(*words: str) -> None:
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
