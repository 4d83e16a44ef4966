"""A link of a given rate: a proxy for TCP, on this machine's own address."""

import socket
import threading
import time
from contextlib import suppress
from typing import Self

PIECE = 4096
"""What goes through at once. [byte]"""
BUFFER = 16 << 10
"""What the system may hold of a connection, beside the link. [byte]"""


class SlowLink:
    """Carries connections to *port*; answers come at *rate*, all connections together.

    Args:
        port: Where to, on 127.0.0.1.
        rate: Of answers, to be changed at any time. [byte/s]

    Attributes:
        port: Where it listens.
    """

    def __init__(self, port: int, rate: float) -> None:
        self._to, self.rate = port, rate
        self._free, self._lock = time.monotonic(), threading.Lock()
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self._open: list[socket.socket] = [self._door]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_failure: object) -> None:
        for one in [*self._open]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._door.accept()
                far = socket.socket()
                far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
                near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
                self._open += [near, far]
                far.connect(("127.0.0.1", self._to))
                for ends in ((near, far, False), (far, near, True)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, slowly: bool) -> None:
        with suppress(OSError):
            while piece := source.recv(PIECE):
                if slowly:
                    self._wait(len(piece))
                sink.sendall(piece)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _wait(self, size: int) -> None:
        """Wait for the turn of *size* bytes."""
        with self._lock:
            now = time.monotonic()
            self._free = max(now - 0.01, self._free) + size / self.rate
            wait = self._free - now
        if wait > 0:
            time.sleep(wait)
