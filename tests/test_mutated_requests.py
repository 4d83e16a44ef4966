"""100,000 mutated HTTP requests (a proof: ten million): a door answers or hangs up, and goes on."""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest

from nightwire.core.kafka import environment
from nightwire.core.stack import free_port
from tests._guarded_broker import guarded_broker
from tests._mutated import COUNTS, ROOM, mutated
from tests.test_stack import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

AT_ONCE = 16
"""Connections at once."""
PATIENCE = 10.0
"""Longest wait for an answer. [s]"""


def request(method: str, path: str, body: bytes = b"", header: str = "") -> bytes:
    """Return the bytes of a request after which the connection ends."""
    head = f"{method} {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n{header}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


RECORD = {"type": "record", "name": "a", "fields": [{"name": "x", "type": "int"}]}
AVRO = json.dumps({"schema": json.dumps(RECORD)}).encode()
REGISTRY = [
    request("GET", "/subjects"),
    request("GET", "/schemas/ids/100000/versions?deleted=true"),
    request("GET", "/subjects/alerts.sim-value/versions/latest"),
    request("POST", "/subjects/a-value", AVRO),
    request("POST", "/compatibility/subjects/a-value/versions/latest?verbose=true", AVRO),
    request("PUT", "/config/a-value", b'{"compatibility": "BACKWARD"}'),
    request("GET", "/mode", header="Authorization: Basic YW5uOng=\r\nTransfer-Encoding: chunked\r\n"),
]
USERS = [
    request("POST", "/invitations/accept", b'{"code": "ann.1796061695.abc", "password": "12345678901234"}'),
    request("POST", "/password", b'{"password": "12345678901234"}', "Authorization: Bearer a.b.c\r\n"),
    request("POST", "/tokens", b'{"seconds": 1e3}', "Authorization: Basic Onh4\r\n"),
    request("GET", "/jwks.json"),
]


async def asked(port: int, requests: Iterator[bytes]) -> Counter[str]:
    """Return how often each status came back; empty: the door hung up."""
    found: Counter[str] = Counter()

    async def one_after_another() -> None:
        for sent in requests:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with suppress(ConnectionError):
                writer.write(sent)
                writer.write_eof()
                answer = await asyncio.wait_for(reader.read(), PATIENCE)
                found[answer[9:12].decode()] += 1
            writer.close()

    await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))
    return found


def process_at(port: int) -> psutil.Process:
    """Return the process that listens at *port*."""
    listening = (one for one in psutil.net_connections("tcp4") if one.status == psutil.CONN_LISTEN)
    return psutil.Process(next(one.pid for one in listening if one.laddr[1:] == (port,)))


def check(port: int, templates: list[bytes], count: int, sound: str) -> None:
    """Ask *count* mutated requests; then the door has little memory, and answers *sound*."""
    random = np.random.default_rng(20261123)
    process = process_at(port)
    asyncio.run(asked(port, iter(templates * 50)))
    before = process.memory_info().rss
    requests = (mutated(random, templates[number % len(templates)]) for number in range(count))
    found = asyncio.run(asked(port, requests))
    assert sum(found.values()) > count * 0.9
    assert [status for status in found if status.startswith("5")] == []
    assert (process.memory_info().rss - before) / 2**20 < ROOM
    assert httpx.get(f"http://127.0.0.1:{port}{sound}", timeout=PATIENCE).status_code == 200


@pytest.mark.parametrize("count", COUNTS)
def test_the_registry(
    kafka: str, serve_registry: Callable[..., AbstractContextManager[str]], count: int
) -> None:
    with serve_registry(kafka) as url:
        httpx.get(f"{url}/subjects", timeout=60)
        check(int(url.rpartition(":")[2]), REGISTRY, count, "/subjects")


@pytest.mark.parametrize("count", COUNTS)
def test_where_passwords_are_given(tmp_path: Path, count: int) -> None:
    port = free_port()
    serve = [sys.executable, "-m", "nightwire.core.cli", "user", "serve", "--port", str(port)]
    with guarded_broker(tmp_path / "kafka") as guarded:
        keys = os.environ | environment(guarded.keys)
        words = [*serve, "--bootstrap", guarded.bootstrap, "--token-key", str(tmp_path / "key.pem")]
        with subprocess.Popen(words, env=keys) as child:
            until(lambda: answers(port), "it listens")
            check(port, USERS, count, "/jwks.json")
            child.terminate()


def answers(port: int) -> bool:
    """Whether somebody answers at *port*."""
    with suppress(httpx.HTTPError):
        return httpx.get(f"http://127.0.0.1:{port}/jwks.json").status_code == 200
    return False
