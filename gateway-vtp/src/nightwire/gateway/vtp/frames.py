"""Frames of the VOEvent Transport Protocol: a length in four bytes, then that many bytes of XML.

Pure: bytes in, messages out.  The length is unsigned and big-endian (VTP 2.0, section 3.2).
"""

import struct
from collections.abc import Iterator

_LENGTH = struct.Struct(">I")

MAX_FRAME = 1 << 20
"""Longest message of a peer. [byte]  A length in the wrong byte order is far above it."""

COMET_MAX_FRAME = 99_999
"""Longest message that Comet takes; a longer one makes it hang up. [byte]"""


class FrameError(Exception):
    """The framing is broken, and with it everything that follows on this connection.

    Attributes:
        length: What the frame announced, where that is the trouble. [byte]
    """

    def __init__(self, reason: str, length: int | None = None) -> None:
        super().__init__(reason)
        self.length = length


def encode_frame(message: bytes) -> bytes:
    """Put *message* into a frame."""
    return _LENGTH.pack(len(message)) + message


class FrameDecoder:
    """Turn what arrives on a connection into messages, wherever TCP cut it.

    Feed it with `receive`, then iterate: complete messages come out in order, also those that
    arrived together with a broken frame behind them.

    Args:
        max_length: Longest message to accept. [byte]
    """

    def __init__(self, *, max_length: int = MAX_FRAME) -> None:
        self._max_length = max_length
        self._received = bytearray()

    @property
    def partial(self) -> int:
        """How much of an incomplete frame is held. [byte]"""
        return len(self._received)

    @property
    def held(self) -> int:
        """How much memory an incomplete frame takes: more than has come. [byte]"""
        return self._received.__alloc__() if self._received else 0

    def receive(self, chunk: bytes | memoryview) -> None:
        """Add what was read from the connection."""
        self._received += chunk

    def __iter__(self) -> Iterator[bytes]:
        """Yield each complete message.

        Raises:
            FrameError: A frame is empty, or longer than *max_length*.
        """
        while (end := self._end_of_frame()) is not None:
            message = bytes(self._received[_LENGTH.size : end])
            del self._received[:end]
            yield message

    def close(self) -> None:
        """Note that the peer hung up.

        Raises:
            FrameError: In the middle of a frame.
        """
        if self._received:
            raise FrameError(f"the peer hung up {len(self._received)} bytes into a frame")

    def _end_of_frame(self) -> int | None:
        if len(self._received) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._received)
        if length == 0:
            raise FrameError("a frame of no bytes", 0)
        if length > self._max_length:
            raise FrameError(f"a frame of {length} bytes, the limit is {self._max_length}", length)
        end = _LENGTH.size + int(length)
        return end if len(self._received) >= end else None
