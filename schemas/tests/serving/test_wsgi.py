"""The page beside a process's work: strangers do not take it from others."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from wsgiref.simple_server import WSGIServer

import pytest

from nightwire.schemas.serving import serve_wsgi, wsgi


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[WSGIServer]:
    monkeypatch.setattr(wsgi._Quiet, "timeout", 2)

    def app(_environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"healthy"]

    server = serve_wsgi(app, "127.0.0.1", 0)
    yield server
    server.shutdown()
    server.server_close()


def connect(page: WSGIServer, host: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", page.server_port), 30, (host, 0))


def answer(page: WSGIServer, host: str) -> bytes:
    """Return the last bytes of what is answered; nothing if we are hung up on."""
    with connect(page, host) as peer:
        try:
            peer.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return b"".join(iter(lambda: peer.recv(1000), b""))[-7:]
        except ConnectionError:
            return b""


@pytest.mark.slow
def test_one_address_holds_so_many_places_and_each_for_so_long(page: WSGIServer) -> None:
    with ExitStack() as held:
        peers = [held.enter_context(connect(page, "127.0.0.2")) for _ in range(wsgi.MAX_PER_ADDRESS)]
        assert (answer(page, "127.0.0.2"), answer(page, "127.0.0.3")) == (b"", b"healthy")
        for peer in peers:
            assert peer.recv(10) == b""  # it said nothing for too long
    while answer(page, "127.0.0.2") != b"healthy":  # the last thread is still about to end
        pass
