"""Where a server of HTTP listens: at its usual address, and by TLS beside it."""

import asyncio
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import Response

from nightwire.schemas.serving.connections import BoundedProtocol
from nightwire.schemas.serving.tls import ServerTLS, TLSError

LAST_WORDS = 10
"""Longest wait at the end for requests that are being answered. [s]"""
MOST_OUTSIDE = 512
"""Most connections by TLS at once, a quarter of one client; the next one is answered 503."""


@dataclass(frozen=True)
class TLSDoor:
    """A second address, for other machines.

    Attributes:
        host: Where to listen.
        port: And at which port.
        certificate: What it shows, with the chain behind it (PEM).
        key: The private key; None: in the same file.
    """

    host: str
    port: int
    certificate: Path
    key: Path | None = None


def tls_door(address: str | None, certificate: Path | None, key: Path | None) -> TLSDoor | None:
    """Return the door that a verb's options ask for; None for none.

    Raises:
        TLSError: *address* is none, or there is no certificate.
    """
    if address is None:
        return None
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) >= 1 << 16:
        raise TLSError(f"--tls {address!r} is no HOST:PORT or [IPV6]:PORT")
    if certificate is None:
        raise TLSError("--tls needs --tls-cert FILE")
    return TLSDoor(host.strip("[]"), int(port), certificate, key)


def plain_server(app: Any, host: str, port: int) -> uvicorn.Server:
    """Return a server of *app*."""
    return uvicorn.Server(_config(app, host, port))


def tls_server(app: Any, door: TLSDoor) -> uvicorn.Server:
    """Return a server of *app* at *door*; a renewed certificate is used without a restart.

    Raises:
        TLSError: The certificate cannot be used.
    """
    config = _config(app, door.host, door.port, MOST_OUTSIDE)
    config.load()
    config.ssl = ServerTLS(door.certificate, door.key).following_context()
    return uvicorn.Server(config)


async def hung_up(_request: Request, _error: Exception) -> Response:
    """Return the answer that nobody hears: who asks is gone, which is not worth a traceback."""
    return Response(status_code=400)


def run(servers: list[uvicorn.Server]) -> None:
    """Run *servers* until a signal stops them: each hands it on to the one before.

    What stands behind this call is done after a signal, too.
    """
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _leave)

    async def serve() -> None:
        await asyncio.gather(*(server.serve() for server in servers))

    asyncio.run(serve())


def _leave(_number: int, _frame: object) -> None:
    """Do nothing: uvicorn stops by itself on a signal, and then raises the signal again."""


def _config(app: Any, host: str, port: int, most: int | None = None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host,
        port,
        http=BoundedProtocol,
        log_config=None,
        log_level="error",  # a stranger's broken request is no line of the log
        access_log=False,
        proxy_headers=False,  # limits are of the address that asks, not of one that it names
        limit_concurrency=most,
        timeout_graceful_shutdown=LAST_WORDS,
    )
