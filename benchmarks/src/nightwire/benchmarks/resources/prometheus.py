"""Prometheus beside a benchmark: it scrapes every metrics page, and is queried at the end."""

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from nightwire.benchmarks.environment.processes import Child
from nightwire.core.stack import free_port

INTERVAL = 5
"""Time between two scrapes: pages of a thousand filters are long. [s]"""
NODE = "prometheus-node-exporter"
CONFIG = """\
global: {{scrape_interval: {interval}s, scrape_timeout: {interval}s}}
scrape_configs:
  - job_name: bench
    file_sd_configs: [{{files: ["{targets}"], refresh_interval: 1s}}]
"""
WANTED = (
    '{__name__=~"nightwire_.+|process_resident_memory_bytes|process_open_fds|node_load1|node_memory_MemAvailable_bytes'
    "|node_memory_Cached_bytes|node_disk_(read|written)_bytes_total|node_network_(receive|transmit)_bytes_total"
    '|node_context_switches_total|node_pressure_.+_total", __name__!~".+_(bucket|created|info)"}'
)
"""What is kept of all that is scraped; histograms as their sums and counts."""

Series = dict[str, Any]


class PrometheusScraper:
    """A Prometheus of a benchmark's own, and node-exporter where it is installed.

    Args:
        folder: For configuration and data.
        interval: Time between two scrapes. [s]
    """

    def __init__(self, folder: Path, interval: int = INTERVAL) -> None:
        self._folder, self._interval, self._exits = folder, interval, ExitStack()
        self._targets = folder / "targets.json"
        self._port, self._pages = free_port(), dict[int, str]()
        self.missing: list[str] = []

    def start(self) -> None:
        """Start what is installed; the rest is named in `missing`."""
        binary, node = shutil.which("prometheus"), shutil.which(NODE)
        if binary is None:
            self.missing.append("prometheus is not installed (apt-get install prometheus): no metrics pages")
            return
        config = self._folder / "prometheus.yml"
        config.write_text(CONFIG.format(interval=self._interval, targets=self._targets))
        self.scrape({})
        command = [binary, f"--config.file={config}", f"--storage.tsdb.path={self._folder / 'prometheus'}"]
        command += [f"--web.listen-address=127.0.0.1:{self._port}", "--log.level=error"]
        self._child(command, "prometheus")
        if node is None:
            self.missing.append(f"{NODE} is not installed: no pages of the machine")
            return
        port = free_port()
        self._child([node, f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"], "node-exporter")
        self.scrape({port: "machine"})

    def scrape(self, pages: Mapping[int, str]) -> None:
        """Scrape *pages* (process by port) from now on, beside those that were named before."""
        if not self._targets.exists() or pages.keys() - self._pages.keys():
            self._pages.update(pages)
            rows = [
                {"targets": [f"127.0.0.1:{port}"], "labels": {"process": name}}
                for port, name in self._pages.items()
            ]
            fresh = self._targets.with_suffix(".new")
            fresh.write_text(json.dumps(rows))
            fresh.rename(self._targets)

    def series(self, began: float, ended: float, step: float) -> list[Series]:
        """Return what was scraped between two moments (Unix time), a point each *step* [s]."""
        if "prometheus" in " ".join(self.missing[:1]):
            return []
        asked: dict[str, str | float] = {"query": WANTED, "start": began, "end": ended, "step": step}
        try:
            answer = httpx.get(
                f"http://127.0.0.1:{self._port}/api/v1/query_range", params=asked, timeout=30.0
            )
            found: Sequence[Series] = answer.raise_for_status().json()["data"]["result"]
        except (httpx.HTTPError, KeyError, ValueError) as error:
            self.missing.append(f"prometheus did not answer: {error}")
            return []
        return list(found)

    def close(self) -> None:
        """End both."""
        self._exits.close()

    def _child(self, command: Sequence[str], name: str) -> None:
        self._exits.enter_context(Child(command, self._folder / f"{name}.log", patience=5.0))
