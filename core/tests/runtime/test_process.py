"""A process stops when asked, and its page tells the truth."""

import os
import signal
import subprocess
import sys

import httpx
import pytest
from prometheus_client import CollectorRegistry, Counter

from nightwire.core.runtime import MetricsPage, stopping

UNACKNOWLEDGED = """
from confluent_kafka import Producer
from nightwire.core.runtime import stopping

with stopping(0.5):
    producer = Producer({"bootstrap.servers": "127.0.0.1:9", "log_level": 0})
    producer.produce("alerts.sim", b"alert")
    print("waits", flush=True)
    producer.flush(150)
"""


@pytest.mark.slow
def test_a_stop_waits_no_longer_than_it_was_told_for_a_kafka_that_is_gone() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", UNACKNOWLEDGED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "waits\n"
    child.terminate()
    _, err = child.communicate(timeout=60)
    assert child.returncode == 1
    assert "ending at once" in err


def test_sigterm_asks_and_does_not_kill() -> None:
    with stopping() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(60)


def test_the_handlers_of_before_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stopping():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow
def test_the_page_has_metrics_health_and_what_else_there_is() -> None:
    registry = CollectorRegistry()
    Counter("things", "Things.", registry=registry).inc(3)
    well = [True]
    more = {"/more": lambda: ("text/html", b"<p>more")}
    page = MetricsPage(registry, healthy=lambda: well[0], pages=more)
    port = page.start()
    try:
        metrics = httpx.get(f"http://127.0.0.1:{port}/metrics").text
        assert "things_total 3.0" in metrics
        assert "things_created" not in metrics  # a series more for each, which nobody asks for
        assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
        well[0] = False
        assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 503
        assert httpx.get(f"http://127.0.0.1:{port}/more").text == "<p>more"
    finally:
        page.stop()
