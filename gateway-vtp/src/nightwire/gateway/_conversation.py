"""Messages in, answers out in the same order, while earlier ones are still waiting for Kafka."""

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from nightwire.gateway._frames import FrameDecoder, encode_frame

WINDOW = 256
"""Most messages of one peer that are being dealt with at once."""
CHUNK = 1 << 16  # [byte]

NOTHING_TO_SAY = b""
"""An answer that is not sent."""


class SilenceError(Exception):
    """The peer did not finish a message in time."""


class SlownessError(SilenceError):
    """The peer began a message, and did not finish it in time."""


async def messages(
    reader: asyncio.StreamReader,
    *,
    max_length: int,
    timeout: float = math.inf,
    frame_timeout: float = math.inf,
    owed: Callable[[], bool] = lambda: False,
    unfinished: Callable[[int], None] = lambda _size: None,
) -> AsyncIterator[bytes]:
    """Yield the peer's messages until it hangs up.

    Args:
        reader: The connection.
        max_length: Longest message. [byte]
        timeout: Longest time from one message to the end of the next [s], however it trickles in.
        frame_timeout: Longest time from the first byte of a message to its last. [s]
        owed: Whether we owe the peer an answer: it may then be silent, between messages.
        unfinished: Told how much of an incomplete message is held [byte], 0 where none is; may refuse it.

    Raises:
        SilenceError: The next message took longer than *timeout*.
        SlownessError: It was begun, and took too long.
        FrameError: The framing is broken.
    """
    decoder = FrameDecoder(max_length=max_length)
    clock = asyncio.get_running_loop()
    patience = Patience(timeout, frame_timeout, clock.time())
    try:
        while True:
            try:
                async with asyncio.timeout_at(patience.until):
                    chunk = await reader.read(CHUNK)
            except TimeoutError:
                patience.ended(clock.time(), partial=decoder.partial, owed=owed())
                continue
            if not chunk:
                decoder.close()
                return
            decoder.receive(chunk)
            for message in decoder:
                yield message
                patience.heard(clock.time())
            patience.begun(clock.time(), partial=decoder.partial)
            unfinished(decoder.partial)
    finally:
        unfinished(0)


class Patience:
    """Until when a peer's next message must have come.

    Args:
        timeout: From one message to the end of the next. [s]
        frame_timeout: From its first byte to its last. [s]
        now: When listening begins. [s]
    """

    def __init__(self, timeout: float, frame_timeout: float, now: float) -> None:
        self._timeout, self._frame_timeout = timeout, frame_timeout
        self.heard(now)

    @property
    def until(self) -> float | None:
        """When patience ends [s]; None: never."""
        end = min(self._next, self._frame)
        return None if end == math.inf else end

    def heard(self, now: float) -> None:
        """Note that a message is complete."""
        self._next, self._frame = now + self._timeout, math.inf

    def begun(self, now: float, *, partial: int) -> None:
        """Note that there are so many bytes of an incomplete message. [byte]"""
        if partial and self._frame == math.inf:
            self._frame = now + self._frame_timeout

    def ended(self, now: float, *, partial: int, owed: bool) -> None:
        """Go on where we owe the peer an answer, and it has begun no message.

        Raises:
            SilenceError: Else.
        """
        if partial:
            raise SlownessError(f"{partial} bytes of a message came in time, and not the rest")
        if not owed:
            raise SilenceError(f"no message within {self._timeout:g} s")
        self.heard(now)


class Answers:
    """Send answers to a peer in the order in which they were promised.

    An answer is an awaitable of a message; None from it means that there is none to give, and the connection
    is closed.

    Args:
        writer: The connection.

    Attributes:
        promised: How many were promised.
    """

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._due: deque[asyncio.Future[bytes | None]] = deque()
        self._fewer = asyncio.Event()
        self._ended: BaseException | None = None
        self.promised = 0

    @property
    def owed(self) -> bool:
        """Say whether a promised answer is not sent yet."""
        return bool(self._due)

    async def promise(self, answer: Coroutine[Any, Any, bytes | None]) -> None:
        """Begin to work on *answer*; wait while too many are being worked on.

        Raises:
            ConnectionError: Nothing can be sent any more.
        """
        self.promised += 1
        task = asyncio.ensure_future(answer)
        self._due.append(task)
        task.add_done_callback(self._send)
        await self._writer.drain()
        await self._until(WINDOW)

    async def finish(self) -> None:
        """Send what is owed."""
        await self._until(1)
        await self._writer.drain()

    def cancel(self) -> None:
        """Send no more.  What is being worked on goes on."""
        self._ended = self._ended or ConnectionError("the conversation is over")

    async def _until(self, fewer: int) -> None:
        """Wait until *fewer* than so many answers are owed."""
        while self._ended is None and len(self._due) >= fewer:
            self._fewer.clear()
            await self._fewer.wait()
        if self._ended is not None:
            raise self._ended

    def _send(self, _done: asyncio.Future[bytes | None]) -> None:
        """Send what is due, the first promised first."""
        while self._ended is None and self._due and self._due[0].done():
            try:
                self._say(self._due.popleft().result())
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  (raised again by who waits)
                self._ended = error
        self._fewer.set()

    def _say(self, answer: bytes | None) -> None:
        if answer is None:
            self._writer.close()
            raise ConnectionError("there is an event that cannot be answered")
        if answer != NOTHING_TO_SAY:
            self._writer.write(encode_frame(answer))
