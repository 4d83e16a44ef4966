"""Mutated HTTP requests: a door answers or hangs up, says nothing of it, and goes on.

10,000 go to each process through sockets (a proof: 100,000).  Many more (a proof: ten million, half
at each door) go to the same parser and the same application in this process.
"""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import h11
import httpx
import numpy as np
import psutil
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client import Counter as Counters
from starlette.applications import Starlette
from uvicorn.server import ServerState

from nightwire.core.kafka import environment
from nightwire.core.logins.server import Users
from nightwire.core.logins.server import application as users_application
from nightwire.core.stack import free_port
from nightwire.schemas.registry.api import Api
from nightwire.schemas.registry.kafka_log import KafkaLog
from nightwire.schemas.registry.server import Metrics, application, routes
from nightwire.schemas.registry.store import Store
from nightwire.schemas.serving import TRIES, Login, RefusedError, Tries, plain_server
from nightwire.schemas.serving.connections import BoundedProtocol
from tests._guarded_broker import guarded_broker
from tests._mutated import ROOM, most_memory, mutated
from tests._serving import verb
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

BY_SOCKETS = [4_000, pytest.param(100_000, marks=pytest.mark.proof)]
IN_PROCESS = [5_000, pytest.param(5_000_000, marks=[pytest.mark.proof, pytest.mark.timeout(0)])]
"""How many at each door in each run, and in a proof."""
AT_ONCE = 16
"""Connections at once."""
PATIENCE = 60.0
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


@pytest.mark.parametrize("count", BY_SOCKETS)
def test_the_registry(
    kafka: str, serve_registry: Callable[..., AbstractContextManager[str]], count: int
) -> None:
    with serve_registry(kafka) as url:
        httpx.get(f"{url}/subjects", timeout=60)
        check(int(url.rpartition(":")[2]), REGISTRY, count, "/subjects")


@pytest.mark.parametrize("count", BY_SOCKETS)
def test_where_passwords_are_given(tmp_path: Path, count: int) -> None:
    port = free_port()
    with guarded_broker(tmp_path / "kafka") as guarded:
        words = ["user", "serve", "--port", str(port), "--bootstrap", guarded.bootstrap]
        words += ["--token-key", str(tmp_path / "key.pem")]
        keys = os.environ | environment(guarded.keys)
        with verb(tmp_path / "log", *words, port=port, env=keys):
            check(port, USERS, count, "/jwks.json")


class Line(asyncio.Transport):
    """A connection without a socket, each from an address of its own.

    Args:
        peer: Who asks.
    """

    def __init__(self, peer: str) -> None:
        super().__init__({"peername": (peer, 1), "sockname": ("127.0.0.1", 80)})
        self.said, self.closed = b"", False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Take a part of the answer."""
        self.said += data

    def is_closing(self) -> bool:
        """Whether the door hung up."""
        return self.closed

    def close(self) -> None:
        """Hang up."""
        self.closed = True

    def pause_reading(self) -> None:
        """Do nothing: all has been sent."""

    resume_reading = pause_reading


class Door:
    """An application behind the parser that its server has.

    Args:
        app: The application.
    """

    def __init__(self, app: Starlette) -> None:
        self._config = plain_server(app, "127.0.0.1", 80).config
        self._config.load()
        assert self._config.http_protocol_class is BoundedProtocol

    async def answer(self, sent: bytes, peer: str) -> str:
        """Return the status of the answer; empty where the door hangs up or waits for more."""
        state, line = ServerState(), Line(peer)
        asked = BoundedProtocol(self._config, state, {}, asyncio.get_running_loop())
        asked.connection_made(line)
        asked.data_received(sent)
        if line.closed or asked.conn.their_state is h11.SEND_BODY:
            asked.connection_lost(None)
        for task in [*state.tasks]:
            await task
        asked.connection_lost(None)
        return line.said[9:12].decode()


async def statuses(door: Door, requests: Iterator[tuple[bytes, str]]) -> Counter[str]:
    """Return how often *door* answered with which status."""
    found: Counter[str] = Counter()

    async def one_after_another() -> None:
        for sent, peer in requests:
            found[await door.answer(sent, peer)] += 1

    await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))
    return found


def bombard(app: Starlette, templates: list[bytes], count: int) -> Counter[str]:
    """Ask *app* for *count* mutated requests; return its answers, none of which is an error's."""
    random, door = np.random.default_rng(20261124), Door(app)
    requests = (
        (mutated(random, templates[n % len(templates)]), f"127.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}")
        for n in range(count)
    )
    before = most_memory()
    found = asyncio.run(statuses(door, requests))
    assert sum(found.values()) == count
    assert [status for status in found if status.startswith("5")] == []
    assert most_memory() - before < ROOM
    return found


@pytest.mark.parametrize("count", IN_PROCESS)
def test_the_registrys_application(kafka: str, count: int, caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    log = KafkaLog(kafka, on_record=store.take, on_restart=store.restart, on_ready=store.end_of_log)
    log.start()
    try:
        until(lambda: store.ready, "the log is read")
        api = Api(store, log, lambda: log.cluster_id)
        found = bombard(application(routes(api), Metrics(CollectorRegistry())), REGISTRY, count)
    finally:
        log.stop()
    assert found["200"] > count / 50
    assert not caplog.records


class NobodyEnters(Users):
    """Users of whom Kafka believes none: it takes Kafka 30 ms to say so."""

    def _enter(self, _login: Login, address: str, refusal: str) -> None:
        self.tries.wrong(address)
        raise RefusedError(401, refusal)


@pytest.mark.parametrize("count", IN_PROCESS)
def test_the_application_that_gives_passwords(
    tmp_path: Path, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    users = NobodyEnters("127.0.0.1:1", tmp_path / "key.pem", Tries())
    collected = CollectorRegistry()
    answered = Counters("answers", "By path and status.", ["path", "status"], registry=collected)
    found = bombard(users_application(users, answered), USERS, count)
    assert found["401"] > count / 50
    assert not caplog.records
    assert len([*next(iter(collected.collect())).samples]) < 50, "whoever asks does not choose our labels"


def test_limits_are_of_the_address_that_asks_not_of_one_that_it_names(tmp_path: Path) -> None:
    users = NobodyEnters("127.0.0.1:1", tmp_path / "key.pem", Tries())
    answered = Counters("answers", "By path and status.", ["path", "status"], registry=CollectorRegistry())
    door = Door(users_application(users, answered))

    async def ask(times: int) -> list[str]:
        asked = (USERS[0].replace(b"Host", b"X-Forwarded-For: 10.0.0.%d\r\nHost" % n) for n in range(times))
        return [await door.answer(one, "127.0.0.1") for one in asked]

    assert asyncio.run(ask(TRIES + 1)) == [*["401"] * TRIES, "429"]
