"""A small page beside a process's work: WSGI in a thread of its own."""

import threading
from collections.abc import Callable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server


class _Server(ThreadingMixIn, WSGIServer):
    """Answers each request in a thread that the end of the process does not wait for."""

    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    """Logs no requests."""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def serve_wsgi(app: Callable[..., Any], host: str, port: int) -> WSGIServer:
    """Return a server that answers by *app* from its first request on.

    (`prometheus_client.start_http_server` answers every path, ``/health`` too, until it is given
    another app.)

    Raises:
        OSError: The port is taken.
    """
    server = make_server(host, port, app, _Server, _Quiet)
    threading.Thread(target=server.serve_forever, name="nightwire-page", daemon=True).start()
    return server
