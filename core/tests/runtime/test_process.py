"""A process stops when asked, and its page tells the truth."""

import os
import signal

import httpx
from prometheus_client import CollectorRegistry, Counter

from nightwire.core.runtime import MetricsPage, stopping


def test_sigterm_asks_and_does_not_kill() -> None:
    with stopping() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(5)


def test_the_handlers_of_before_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stopping():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


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
