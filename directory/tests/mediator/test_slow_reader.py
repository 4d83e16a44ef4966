"""A reader that does not read costs little memory, and its records wait in Kafka."""

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from conftest import PAGES
from nightwire.core.kafka import admin, ensure_topics, producer
from nightwire.core.stack import free_port
from nightwire.schemas.topics import DIRECTORY, FILTERS, settings
from tests._serving import verb

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

MB = 1 << 20
RECORDS = 192


@pytest.fixture
def process(kafka: str, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str, str]]:
    """Yield a directory's process, its address and that of its page."""
    ensure_topics(kafka, [settings(DIRECTORY), settings(FILTERS)])
    port, page, log = free_port(), free_port(), tmp_path / "log"
    words = ["directory", "serve", "--bootstrap", kafka, "--port", str(port), "--metrics-port", str(page)]
    with verb(log, *words, port=port) as child:
        yield child, f"http://127.0.0.1:{port}", f"http://127.0.0.1:{page}/metrics"


def memory(child: subprocess.Popen[bytes]) -> int:
    """Return what a process holds. [byte]"""
    text = Path(f"/proc/{child.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", text)[1]) << 10  # type: ignore[index]


def sent(page: str) -> float:
    found = re.findall(r'mediator_records_total\{direction="out".*\} (\S+)', PAGES.get(page).text)
    return sum(map(float, found))


def test_one_that_does_not_read_holds_a_few_megabytes(
    process: tuple[subprocess.Popen[bytes], str, str], kafka: str, fresh_topic: Callable[..., str]
) -> None:
    child, address, page = process
    topic, writer = fresh_topic(), producer(kafka)
    for _ in range(RECORDS):
        writer.produce(topic, os.urandom(MB))
        assert writer.flush(60) == 0
    url, before = f"{address}/topics/{topic}/records?group=g{os.urandom(4).hex()}&as=raw", memory(child)
    accept = {"Accept": "text/event-stream"}
    with httpx.Client(timeout=60, trust_env=False) as http, http.stream("GET", url, headers=accept) as stream:
        last = -1.0
        while last != (last := sent(page)) or not last:
            time.sleep(0.5)  # until it stands still
        assert last < RECORDS / 4
        assert memory(child) - before < 96 * MB
        assert next(line for line in stream.iter_lines() if line.startswith("id")) == "id: 0:1"


def test_the_process_leaves_its_groups_when_it_ends(
    process: tuple[subprocess.Popen[bytes], str, str], kafka: str, fresh_topic: Callable[..., str]
) -> None:
    child, address, _ = process
    topic, groups = fresh_topic(), [f"g{os.urandom(4).hex()}" for _ in range(2)]
    writer, client = producer(kafka), admin(kafka)
    writer.produce(topic, b"x")
    assert writer.flush(60) == 0
    urls = [f"{address}/topics/{topic}/records?as=raw&group={group}" for group in groups]
    httpx.get(urls[0], timeout=60)
    accept = {"Accept": "text/event-stream"}
    with httpx.stream("GET", urls[1], headers=accept, timeout=60) as stream:
        lines = stream.iter_lines()
        next(line for line in lines if line.startswith("id"))
        child.terminate()
        assert not any(line.startswith("id") for line in lines)
    assert child.wait(60) == 0
    for found in client.describe_consumer_groups(groups).values():
        assert found.result(30).members == []
