"""Connections of strangers are closed where they send no request, or are too many."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from nightwire.core.runtime import free_port
from nightwire.schemas.serving import connections, plain_server
from tests._serving import running

Connect = Callable[[], socket.socket]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connect]:
    """Yield what connects to a server that lets one client have three connections, of ten."""
    monkeypatch.setattr(connections, "HEADER_TIMEOUT", 0.5)
    monkeypatch.setattr(connections, "MAX_OF_ONE", 3)

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"7")]})
        await send({"type": "http.response.body", "body": b"healthy"})

    server = plain_server(app, "127.0.0.1", free_port())
    server.config.limit_concurrency = 10
    with running(server), ExitStack() as exits:
        at = ("127.0.0.1", server.config.port)
        yield lambda: exits.enter_context(socket.create_connection(at, 10))


def ask(peer: socket.socket) -> bytes:
    """Return the body of the answer to a request; nothing where we are hung up on."""
    peer.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
    heard = b""
    while not heard.endswith(b"healthy") and (more := peer.recv(1000)):
        heard += more
    return heard[-7:]


@pytest.mark.parametrize("sent", [b"", b"GET / HT"])
def test_who_sends_no_request_is_hung_up_on(connect: Connect, sent: bytes) -> None:
    first, second = connect(), connect()
    first.sendall(sent)
    assert first.recv(1000) == b""
    assert ask(connect()) == b"healthy"
    second.close()


def test_half_a_request_after_a_whole_one_is_waited_for_no_longer(connect: Connect) -> None:
    peer = connect()
    assert ask(peer) == b"healthy"
    peer.sendall(b"GET / HT")
    assert peer.recv(1000) == b""


def test_one_client_has_only_so_many_connections(connect: Connect) -> None:
    peers = [connect() for _ in range(4)]
    assert peers[-1].recv(1000) == b""
    assert [ask(peer) for peer in peers[:3]] == [b"healthy"] * 3
