"""Prometheus: its configuration, and running it where it is installed."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

HEADER = """\
global:
  scrape_interval: {interval}
  evaluation_interval: {interval}
rule_files: [{rules}]
"""
ALERTING = """\
alerting:
  alertmanagers:
    - static_configs: [{{targets: ["{target}"]}}]
"""
PAGES = """\
scrape_configs:
"""
PROCESSES = """\
  - job_name: nightwire
    static_configs:
"""
PROCESS = """\
      - {{targets: ["{target}"], labels: {{process: {name}}}}}
"""
DIRECTORY = """\
  - job_name: directory # which says of each page whose job it is
    http_sd_configs: [{{url: {url}, refresh_interval: 5s}}]
"""
JOB = """\
  - job_name: {name}
    metrics_path: {path}
    static_configs: [{{targets: [{targets}]}}]
"""


@dataclass(frozen=True)
class Job:
    """Pages that are not nightwire's.

    Attributes:
        targets: ``HOST:PORT`` of each.
        path: Where the page is there.
    """

    targets: Sequence[str]
    path: str = "/metrics"


def prometheus_config(
    targets: Mapping[str, str],
    rules: str,
    *,
    interval: str = "5s",
    alertmanager: str | None = None,
    jobs: Mapping[str, Job] | None = None,
    directory: str | None = None,
) -> str:
    """Return Prometheus' configuration, as YAML.

    Args:
        targets: ``HOST:PORT`` of each nightwire process's metrics page, by its name.
        rules: Path of the rules, as Prometheus sees it.
        interval: Time between scrapes.
        alertmanager: ``HOST:PORT`` that alerts are sent to.
        jobs: Pages that are not nightwire's, by job.
        directory: URL of the directory, by which all pages of a site are found.
    """
    parts = [HEADER.format(interval=interval, rules=rules)]
    if alertmanager:
        parts.append(ALERTING.format(target=alertmanager))
    parts.append(PAGES)
    if directory:
        parts.append(DIRECTORY.format(url=json.dumps(f"{directory}/http_sd")))
    parts += [PROCESSES] if targets else []
    parts += [PROCESS.format(name=name, target=target) for name, target in targets.items()]
    parts += [_job(name, job) for name, job in (jobs or {}).items()]
    return "".join(parts)


def _job(name: str, job: Job) -> str:
    return JOB.format(name=name, path=job.path, targets=", ".join(map(json.dumps, job.targets)))


def compose_config() -> str:
    """Return the configuration of the compose stack's Prometheus."""
    return "# Written by `nightwire dashboards build`.\n" + prometheus_config(
        {}, "/etc/prometheus/rules.yml", alertmanager="alertmanager:9093", directory="http://directory:8083"
    )


def rules() -> str:
    """Return the recording rules and alerts."""
    return (files("nightwire.monitoring") / "rules.yml").read_text()


def prepare_prometheus(
    state: Path,
    port: int,
    targets: Mapping[str, str],
    *,
    retention: str,
    interval: str = "5s",
    jobs: Mapping[str, Job] | None = None,
    alertmanager: str | None = None,
    directory: str | None = None,
) -> list[str] | None:
    """Write the configuration into *state* and return the command line that runs Prometheus on it.

    None where Prometheus is not installed; then nothing is written.

    Args:
        state: Folder for configuration and data.
        port: Where it listens, on 127.0.0.1.
        targets: ``HOST:PORT`` of each metrics page, by process.
        retention: Most disk for its data, as Prometheus writes it (``512MB``).
        interval: Time between scrapes, as Prometheus writes it.
        jobs: Pages that are not nightwire's, by job.
        alertmanager: ``HOST:PORT`` that alerts are sent to.
        directory: URL of the directory, by which all pages of a site are found.
    """
    binary = shutil.which("prometheus")
    if binary is None:
        return None
    state = state.resolve()
    state.mkdir(parents=True, exist_ok=True)
    (state / "rules.yml").write_text(rules())
    config = state / "prometheus.yml"
    config.write_text(
        prometheus_config(
            targets,
            str(state / "rules.yml"),
            interval=interval,
            alertmanager=alertmanager,
            jobs=jobs,
            directory=directory,
        )
    )
    return [
        binary,
        f"--config.file={config}",
        f"--storage.tsdb.path={state / 'data'}",
        f"--storage.tsdb.retention.size={retention}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]


def replace_process(command_line: list[str]) -> None:
    """Replace this process by *command_line*; does not return."""
    os.execv(command_line[0], command_line)  # noqa: S606  (no shell is meant)
