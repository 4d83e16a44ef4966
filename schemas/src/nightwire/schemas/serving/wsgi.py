"""A small page beside a process's work: WSGI in a thread of its own."""

import ssl
import sys
import threading
from collections import Counter
from collections.abc import Callable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

MAX_PER_ADDRESS = 32
"""Most requests at once from one address; each has a thread."""
TIMEOUT = 20.0
"""Longest silence within a request. [s]"""


class _Server(ThreadingMixIn, WSGIServer):
    """Answers each request in a thread that the end of the process does not wait for."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._open: Counter[str] = Counter()
        self._lock = threading.Lock()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Say whether one more from this address is answered."""
        with self._lock:
            taken = self._open[client_address[0]] < MAX_PER_ADDRESS
            self._open[client_address[0]] += taken
        return taken

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and count the request as over."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open -= Counter([client_address[0]])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what failed, unless the peer left or was silent."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Quiet(WSGIRequestHandler):
    """Logs no requests."""

    timeout = TIMEOUT

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def serve_wsgi(
    app: Callable[..., Any], host: str, port: int, context: ssl.SSLContext | None = None
) -> WSGIServer:
    """Return a server that answers by *app* from its first request on, by TLS with a *context*.

    (`prometheus_client.start_http_server` answers every path, ``/health`` too, until it is given
    another app.)

    Raises:
        OSError: The port is taken.
    """
    server = make_server(host, port, app, _Server, _Quiet)
    if context is not None:  # the greeting belongs to the request's thread, and its timeout
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, name="nightwire-page", daemon=True).start()
    return server
