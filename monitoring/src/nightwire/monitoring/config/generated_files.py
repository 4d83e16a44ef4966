"""The files that are written from code: dashboards, the compose stack's configuration."""

from pathlib import Path

from nightwire.monitoring.config.alertmanager import alertmanager_config
from nightwire.monitoring.config.prometheus import compose_config
from nightwire.monitoring.dashboards import PAGES, dashboard_json


def file_texts(webhook: str | None = None) -> dict[str, str]:
    """Return the text of each file, by its path below ``monitoring/``."""
    pages = {f"grafana/dashboards/{name}.json": dashboard_json(name) for name in PAGES}
    return pages | {
        "prometheus/prometheus.yml": compose_config(),
        "alertmanager/alertmanager.yml": alertmanager_config(webhook),
    }


def stale(folder: Path, webhook: str | None = None) -> list[Path]:
    """Return the files below *folder* that are missing or not what the code says."""
    wanted = {folder / name: text for name, text in file_texts(webhook).items()}
    return [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]


def write(folder: Path, webhook: str | None = None) -> None:
    """Write every file below *folder*."""
    for name, text in file_texts(webhook).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
