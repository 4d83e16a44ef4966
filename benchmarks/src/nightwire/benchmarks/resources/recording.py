"""The recorder beside a benchmark, as the harness sees it."""

import json
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from nightwire.benchmarks import Sample
from nightwire.benchmarks.environment.processes import Child, python
from nightwire.benchmarks.resources.monitor import ResourceMonitor
from nightwire.benchmarks.resources.process_stats import Reading
from nightwire.benchmarks.resources.prometheus import INTERVAL
from nightwire.benchmarks.resources.recorder import METRICS, READINGS
from nightwire.benchmarks.resources.time_series import Recorded, Span, reading_from, recorded

STARTING = 30.0
"""Longest wait for its first look. [s]"""
PATIENCE = 60.0
"""Longest wait for the recorder's end: it asks Prometheus for all it has. [s]"""


class Recording:
    """Records from its beginning to `end`.  It never fails a benchmark: what is missing is named.

    Args:
        monitor: Knows what processes are called.
        interval: Time between two scrapes of metrics pages. [s]
    """

    def __init__(self, monitor: ResourceMonitor, *, interval: int = INTERVAL) -> None:
        self._monitor, self._spans = monitor, list[Span]()
        # of a recorder that was killed Prometheus may write on for a moment
        self._folder = tempfile.TemporaryDirectory(prefix="nightwire-record-", ignore_cleanup_errors=True)
        command = python(
            "nightwire.benchmarks.resources.recorder", str(os.getpid()), self._folder.name, str(interval)
        )
        self._child = Child(command, self._path / "log", patience=PATIENCE)
        monitor.role(self._child.process.pid, "recorder")
        self._await_first_look()

    def ran(self, sample: Sample) -> None:
        """Note that *sample* was measured just now."""
        now = time.time()
        begin = now - sample.use.seconds
        self._spans.append(Span(sample.experiment, sample.kind.value, sample.pair, begin, now))

    def end(self) -> Recorded:
        """End the recorder, and return what is kept of what it saw."""
        self._child.end()
        try:
            return recorded(self._readings(), self._monitor.roles, self._metrics(), self._spans)
        finally:
            self._folder.cleanup()

    def _await_first_look(self) -> None:
        """Wait until it records; one that does not is no reason to wait for ever."""
        deadline, readings = time.monotonic() + STARTING, self._path / READINGS
        while not (readings.exists() and readings.stat().st_size) and time.monotonic() < deadline:
            if self._child.process.poll() is not None:
                return
            time.sleep(0.02)

    @property
    def _path(self) -> Path:
        return Path(self._folder.name)

    def _readings(self) -> list[Reading]:
        found: list[Reading] = []
        # it was killed in the midst of a line, or before the first
        with suppress(ValueError, OSError):
            for line in (self._path / READINGS).read_text(encoding="utf-8").splitlines():
                found.append(reading_from(line))
        return found

    def _metrics(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self._path / METRICS).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            lines = (self._path / "log").read_text(errors="replace").strip().splitlines()
            return {
                "missing": [f"the recorder did not end well: {lines[-1] if lines else 'it said nothing'}"]
            }
        return found
