"""Delays from when alerts were due."""

import pytest

from nightwire.benchmarks.scenarios.visit.scenario import aggregated
from nightwire.benchmarks.workers.alerts.due_times import percentiles


def test_percentiles_are_in_milliseconds() -> None:
    figures = percentiles("latency", [number / 1000 for number in range(101)])
    assert figures["latency_p50_ms"] == pytest.approx(50)
    assert figures["latency_p99_ms"] == pytest.approx(99)
    assert figures["latency_max_ms"] == pytest.approx(100)
    assert aggregated("EndToEndLatency", [0.001, 0.003])["aggregatedEndToEndLatency50pct"] == 2.0
