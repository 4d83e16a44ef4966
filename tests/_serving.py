"""What a test runs beside itself: verbs in processes of their own, servers in threads."""

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseServer
from typing import Any, TypeVar

import uvicorn

from tests._waiting import until

NIGHTWIRE = (sys.executable, "-m", "nightwire.core.cli")
"""The command, before its words."""

Server = TypeVar("Server", bound=BaseServer)


@contextmanager
def verb(log: Path, *words: str, port: int, **given: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a verb that listens on *port*, within the block, its output in *log*.

    Args:
        given: What `subprocess.Popen` takes, such as ``env``.
    """
    with log.open("ab") as out:
        child = subprocess.Popen([*NIGHTWIRE, *words], stdout=out, stderr=out, **given)
    try:
        await_port(port, lambda: child.poll() is None, log)
        yield child
    finally:
        child.terminate()
        child.wait(60)


def await_port(
    port: int, alive: Callable[[], bool], log: Path, timeout: float = 60.0, host: str = "127.0.0.1"
) -> None:
    """Wait until somebody listens on *port*; fail with the *log* when its process ends."""

    def listens() -> bool:
        assert alive(), f"nobody listens on {port}: {log.read_text()[-2000:]}"
        with suppress(OSError), socket.create_connection((host, port), timeout=1):
            return True
        return False

    until(listens, lambda: f"nobody listens on {port}: {log.read_text()[-2000:]}", timeout)


@contextmanager
def running(server: uvicorn.Server) -> Iterator[str]:
    """Run *server* in a thread within the block; yield its address, without ``http://``."""
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive(), "the server starts", tick=0.01)
        assert thread.is_alive(), "the server ended"
        yield f"{server.config.host}:{server.config.port}"
    finally:
        server.should_exit = True
        thread.join(30)


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Run a server of Python's own in a thread within the block."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(30)


@contextmanager
def answering(handler: type[BaseHTTPRequestHandler], port: int = 0) -> Iterator[str]:
    """Answer by *handler*, which logs nothing, on *port* or a free one; yield the URL."""
    quiet = type("Quiet", (handler,), {"log_message": lambda *_words: None})
    with serving(ThreadingHTTPServer(("127.0.0.1", port), quiet)) as server:
        yield f"http://127.0.0.1:{server.server_port}"
