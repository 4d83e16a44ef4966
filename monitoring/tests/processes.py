"""Processes that run beside a test, and their metrics pages."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from conftest import PAGES


def await_observation(port: int, after: float, timeout: float = 90.0) -> float:
    """Wait until Kafka was observed later than *after*; return when it was."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        for line in page(port).splitlines():
            name, _, value = line.partition(" ")
            if name == "nightwire_exporter_last_look_timestamp_seconds" and float(value) > after:
                return float(value)
        time.sleep(0.1)  # polling a page, not hoping
    pytest.fail(f"Kafka was not observed within {timeout:g} s")


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
    deadline = time.monotonic() + timeout
    while not answered(port, query):
        assert time.monotonic() < deadline, f"no data for {query}"
        time.sleep(0.2)  # polling a page, not hoping


def answered(port: int, query: str) -> bool:
    try:
        response = PAGES.get(f"http://127.0.0.1:{port}/api/v1/query", params={"query": query})
    except httpx.TransportError:
        return False
    return response.status_code == httpx.codes.OK and bool(response.json()["data"]["result"])
