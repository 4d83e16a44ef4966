"""Sockets that never block, as authors and subscribers use them."""

import selectors
import socket

CHUNK = 1 << 18  # [byte]


def step(selector: selectors.BaseSelector, seconds: float) -> None:
    """Wait at most *seconds* for sockets that have something to do, and let their owners do it."""
    for key, events in selector.select(seconds):
        key.data.ready(events)


def connecting(port: int) -> socket.socket:
    """Return a socket that is on its way to *port* of this machine."""
    one = socket.socket()
    one.setblocking(False)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    one.connect_ex(("127.0.0.1", port))
    return one


class WriteBuffer:
    """What one socket still has to write; it is watched for room only where there is none.

    Args:
        selector: Watches the socket for reading already.
        connection: The socket.
        owner: What the selector gives back.
    """

    def __init__(self, selector: selectors.BaseSelector, connection: socket.socket, owner: object) -> None:
        self._selector, self._connection, self._owner = selector, connection, owner
        self._left = bytearray()

    def __len__(self) -> int:
        return len(self._left)

    def write(self, content: bytes) -> None:
        """Write *content*, now or later."""
        if self._left:
            self._left += content
            return
        sent = self._send(content)
        if sent < len(content):
            self._left += memoryview(content)[sent:]
            both = selectors.EVENT_READ | selectors.EVENT_WRITE
            self._selector.modify(self._connection, both, self._owner)

    def flush(self) -> None:
        """Go on where there was no room."""
        if self._left:
            del self._left[: self._send(self._left)]
            if not self._left:
                self._selector.modify(self._connection, selectors.EVENT_READ, self._owner)

    def _send(self, content: bytes | bytearray) -> int:
        try:
            return self._connection.send(content)
        except (BlockingIOError, InterruptedError):
            return 0
