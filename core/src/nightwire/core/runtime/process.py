"""The life of a process: signals, logs, and its page of metrics."""

import ctypes
import gc
import logging
import os
import signal
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import (
    CollectorRegistry,
    disable_created_metrics,
    make_wsgi_app,
)

from nightwire.core.runtime.log_repeats import AggregatingHandler
from nightwire.schemas import MendableError
from nightwire.schemas.serving import ServerTLS, TLSError, serve_wsgi

# a series beside each counter that nobody reads
disable_created_metrics()  # type: ignore[no-untyped-call]


Stop = threading.Event
"""Is set where somebody asked this process to finish its batch and leave."""


@contextmanager
def stopping(longest: float | None = None) -> Iterator[Stop]:
    """Yield a `Stop` that SIGTERM and Ctrl-C set; a second Ctrl-C interrupts at once.

    Only the main thread may enter this.

    Args:
        longest: Time after the first signal at which the process ends as if it was killed, for
            those whose work is safe then. [s]
    """
    stop = Stop()
    end = threading.Timer(longest or 0.0, _end_at_once, [longest])
    end.daemon = True

    def asked(number: int, _frame: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        if longest is not None and not stop.is_set():
            end.start()
        stop.set()

    before = {number: signal.signal(number, asked) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        end.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_at_once(waited: float) -> None:
    logging.getLogger("nightwire").warning("not done %g s after the signal to stop: ending at once", waited)
    os._exit(1)


def setup_logging(name: str, level: str = "INFO") -> logging.Logger:
    """Send records to standard error, a line each, and return the logger *name*."""
    handler = AggregatingHandler()
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S%z")
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.getLogger("httpx").setLevel("WARNING")
    return logging.getLogger(name)


Page = Callable[[], tuple[str, bytes]]
"""Returns the type and the body of a page; called at each request, from another thread."""


_CAREFUL = [
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
]


TLS_SETTING = "NIGHTWIRE_METRICS_TLS"
"""What begins the names of the variables that open the page to other machines."""


class PageError(MendableError):
    """The page cannot be opened to other machines as it was asked for."""


def _metrics_tls() -> ssl.SSLContext:
    certificate, key, ca = (os.environ.get(f"{TLS_SETTING}_{name}") for name in ("CERT", "KEY", "CLIENT_CA"))
    if not certificate:
        raise PageError(
            f"{TLS_SETTING}_ADDRESS needs {TLS_SETTING}_CERT, a file of certificate and key (PEM)"
        )
    try:
        tls = ServerTLS(Path(certificate), Path(key) if key else None, Path(ca) if ca else None)
    except TLSError as error:
        raise PageError(f"{TLS_SETTING}: {error}") from error
    return tls.following_context()


class MetricsPage:
    """Serve ``/metrics`` for Prometheus and ``/health`` (200 or 503) for the supervisor.

    For a Prometheus on another machine ``NIGHTWIRE_METRICS_TLS_ADDRESS`` (``HOST:PORT``) has the
    same pages by TLS, with the certificate ``NIGHTWIRE_METRICS_TLS_CERT``, its key in the same
    file or in ``NIGHTWIRE_METRICS_TLS_KEY``; who asks has to show a certificate of
    ``NIGHTWIRE_METRICS_TLS_CLIENT_CA``, where that is set.

    Args:
        registry: The process's metrics.
        host: Address to listen on; else ``NIGHTWIRE_METRICS_HOST`` (in a container: 0.0.0.0), else
            127.0.0.1.
        port: Port to listen on; 0 takes a free one.
        healthy: Whether the process does its work; asked at each request, from another thread.
        about: What ``/health`` says beside, as whole lines; asked likewise.
        pages: Further pages, by their path.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        host: str | None = None,
        port: int = 0,
        healthy: Callable[[], bool] = lambda: True,
        about: Callable[[], str] = str,
        pages: Mapping[str, Page] | None = None,
    ) -> None:
        self._metrics = make_wsgi_app(registry)
        self._host = host or os.environ.get("NIGHTWIRE_METRICS_HOST", "127.0.0.1")
        self._port, self._pages = port, dict(pages or {})
        self._healthy, self._about = healthy, about
        self._servers: list[Any] = []

    def start(self) -> int:
        """Listen in threads of their own; return the port.

        Raises:
            OSError: A port is taken.
            PageError: The certificate cannot be used, or there is none.
        """
        self._servers.append(serve_wsgi(self._page, self._host, self._port))
        if address := os.environ.get(f"{TLS_SETTING}_ADDRESS"):
            host, _, port = address.rpartition(":")
            self._servers.append(serve_wsgi(self._page, host, int(port), _metrics_tls()))
        return int(self._servers[0].server_port)

    def stop(self) -> None:
        """Stop listening."""
        while self._servers:
            server = self._servers.pop()
            server.shutdown()
            server.server_close()

    def _page(self, environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        path = environ.get("PATH_INFO", "")
        if (page := self._pages.get(path)) is not None:
            kind, body = page()
            start_response("200 OK", [("Content-Type", kind), *_CAREFUL])
            return [body]
        if path != "/health":
            return self._metrics(environ, start_response)
        status = HTTPStatus.OK if self._healthy() else HTTPStatus.SERVICE_UNAVAILABLE
        start_response(f"{status.value} {status.phrase}", [("Content-Type", "text/plain")])
        return [f"{status.phrase}\n{self._about()}".encode()]


PR_SET_PDEATHSIG = 1  # prctl(2)


def tune_garbage_collector() -> None:
    """Let the garbage collector skip the objects that stay for good, and look less often."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return *environment* without our own settings, among which are passwords."""
    return {
        name: value for name, value in environment.items() if not name.startswith(("KAFKA_", "NIGHTWIRE_"))
    }


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent dies; called in the child, before exec."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Send *number* to *pid*, if it is there."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
