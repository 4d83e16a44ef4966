"""Processes that run beside a test, and their metrics pages."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from conftest import PAGES
from tests._waiting import until

LAST_LOOK = "nightwire_exporter_last_look_timestamp_seconds"


def await_observation(port: int, after: float, timeout: float = 90.0) -> float:
    """Wait until Kafka was observed later than *after*; return when it was."""

    def observed() -> float:
        rows = (line.partition(" ") for line in page(port).splitlines())
        looks = (float(value) for name, _, value in rows if name == LAST_LOOK)
        return next((at for at in looks if at > after), 0.0)

    return until(observed, "Kafka was not observed", timeout)


def page(port: int) -> str:
    try:
        return PAGES.get(f"http://127.0.0.1:{port}/metrics").text
    except httpx.TransportError:
        return ""


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a verb; it must end with 0 when it is asked to."""
    child = subprocess.Popen([sys.executable, "-m", "nightwire.core.cli", *words])
    try:
        yield child
        assert child.poll() is None, f"{words[0]} ended with {child.returncode}"
        child.terminate()
        assert child.wait(60) == 0
    finally:
        child.kill()
        child.wait()


@contextmanager
def exporting(kafka: str, port: int) -> Iterator[None]:
    with running("exporter", "--bootstrap", kafka, "--metrics-port", str(port), "--interval", "0.5"):
        yield


def await_answer(port: int, query: str, timeout: float = 60.0) -> None:
    """Wait until Prometheus has data for *query*."""
    until(lambda: answered(port, query), f"no data for {query}", timeout)


def answered(port: int, query: str) -> bool:
    response = PAGES.get(f"http://127.0.0.1:{port}/api/v1/query", params={"query": query})
    return response.status_code == httpx.codes.OK and bool(response.json()["data"]["result"])
