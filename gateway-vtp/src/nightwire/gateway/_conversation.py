"""Messages in, answers out in the same order, while earlier ones are still waiting for Kafka."""

import asyncio
import math
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


async def messages(
    reader: asyncio.StreamReader,
    *,
    max_length: int,
    timeout: float = math.inf,
    owed: Callable[[], bool] = lambda: False,
) -> AsyncIterator[bytes]:
    """Yield the peer's messages until it hangs up.

    Args:
        reader: The connection.
        max_length: Longest message. [byte]
        timeout: Longest time from one message to the end of the next [s], however it trickles in.
        owed: Whether we owe the peer an answer: it may then be silent, between messages.

    Raises:
        SilenceError: The next message took longer than *timeout*.
        FrameError: The framing is broken.
    """
    decoder = FrameDecoder(max_length=max_length)
    clock = asyncio.get_running_loop()
    deadline = clock.time() + timeout
    while True:
        try:
            async with asyncio.timeout_at(None if timeout == math.inf else deadline):
                chunk = await reader.read(CHUNK)
        except TimeoutError:
            if not owed() or decoder.partial:
                raise SilenceError(f"no message within {timeout:g} s") from None
            deadline = clock.time() + timeout
            continue
        if not chunk:
            decoder.close()
            return
        decoder.receive(chunk)
        for message in decoder:
            yield message
            deadline = clock.time() + timeout


class Answers:
    """Send answers to a peer in the order in which they were promised.

    An answer is an awaitable of a message; None from it means that there is none to give, and the connection
    is closed.

    Args:
        writer: The connection.
    """

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._due: asyncio.Queue[asyncio.Future[bytes | None] | None] = asyncio.Queue(WINDOW)
        self._unsent = 0
        self._sender = asyncio.create_task(self._send())

    @property
    def owed(self) -> bool:
        """Say whether a promised answer is not sent yet."""
        return self._unsent > 0

    async def promise(self, answer: Coroutine[Any, Any, bytes | None]) -> None:
        """Begin to work on *answer*; wait while too many are being worked on.

        Raises:
            ConnectionError: Nothing can be sent any more.
        """
        self._unsent += 1
        await self._put(asyncio.ensure_future(answer))

    async def finish(self) -> None:
        """Send what is owed."""
        if not self._sender.done():
            await self._put(None)
        await self._sender

    def cancel(self) -> None:
        """Send no more.  What is being worked on goes on."""
        self._sender.cancel()

    async def _put(self, due: asyncio.Future[bytes | None] | None) -> None:
        putting = asyncio.ensure_future(self._due.put(due))
        if self._due.full():
            await asyncio.wait({putting, self._sender}, return_when=asyncio.FIRST_COMPLETED)
            if not putting.done():
                putting.cancel()
                raise ConnectionError("the peer takes no more answers")
        await putting

    async def _send(self) -> None:
        while (due := await self._due.get()) is not None:
            answer = await due
            self._unsent -= 1
            if answer is None:
                self._writer.close()
                return
            if answer != NOTHING_TO_SAY:
                self._writer.write(encode_frame(answer))
                await self._writer.drain()
