"""Those who get events outside Kafka, for tests: an HTTP server that answers as it is told."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver(ThreadingHTTPServer):
    """Notes what is posted; answers with *status*, and waits before while *hang* is set.

    With a *pace* [s] it waits so long before each byte of its answer.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.refused = 0
        self.status, self.location = 200, ""
        self.pace = 0.0
        self.hang = threading.Event()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://localhost:{self.server_port}/hook"

    @property
    def ids(self) -> list[str]:
        """The keys of what it took, in order."""
        return [headers["idempotency-key"] for headers, _ in self.got]


class Handler(BaseHTTPRequestHandler):
    """Answers."""

    server: Receiver

    def do_POST(self) -> None:
        """Take what is posted, where that is what it is told."""
        body = self.rfile.read(int(self.headers["content-length"]))
        while self.server.hang.is_set():
            time.sleep(0.05)
        if self.server.status == 200:
            self.server.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
        else:
            self.server.refused += 1
        for byte in b"HTTP/1.1 200 OK\r\n" if self.server.pace else b"":
            time.sleep(self.server.pace)
            with suppress(OSError):
                self.wfile.write(bytes([byte]))
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("location", self.server.location)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Run one until the block ends."""
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
