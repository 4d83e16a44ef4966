"""Messages in, answers out in the same order, while earlier ones are still waiting for Kafka."""

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any

from nightwire.gateway.vtp.frames import FrameDecoder, encode_frame

AnswerCallback = Callable[[bytes | None], None]
"""Takes the answer to an event; None: there is none to give, and nothing after it can be said either."""


class AnswerQueue:
    """Collect answers and say them in order, those that are known at the same moment in one breath.

    Args:
        say: Takes the frames that may go out; and whether they end with an answer that cannot be given.

    Attributes:
        promised: How many were owed since the beginning.
    """

    def __init__(self, say: Callable[[bytes, bool], None]) -> None:
        self._say, self._loop = say, asyncio.get_running_loop()
        self._due: deque[list[bytes | None]] = deque()
        self._saying = False
        self.promised = 0

    def __len__(self) -> int:
        """Return how many are owed now."""
        return len(self._due)

    def owe(self) -> AnswerCallback:
        """Owe an answer; return what takes it."""
        slot: list[bytes | None] = []
        self._due.append(slot)
        self.promised += 1
        return partial(self._told, slot)

    def _told(self, slot: list[bytes | None], answer: bytes | None) -> None:
        slot.append(answer)
        if self._due[0] and not self._saying:
            self._saying = True
            self._loop.call_soon(self._say_what_is_due)

    def _say_what_is_due(self) -> None:
        self._saying = False
        frames = bytearray()
        while self._due and self._due[0]:
            (answer,) = self._due.popleft()
            if answer is None:
                self._say(bytes(frames), True)
                return
            frames += encode_frame(answer)
        self._say(bytes(frames), False)


WINDOW = 256
"""Most messages of one peer that are being dealt with at once."""
CHUNK = 1 << 16  # [byte]


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
) -> AsyncIterator[bytes]:
    """Yield the peer's messages until it hangs up.

    Args:
        reader: The connection.
        max_length: Longest message. [byte]
        timeout: Longest time from one message to the end of the next [s], however it trickles in.
        frame_timeout: Longest time from the first byte of a message to its last. [s]

    Raises:
        SilenceError: The next message took longer than *timeout*.
        SlownessError: It was begun, and took too long.
        FrameError: The framing is broken.
    """
    decoder = FrameDecoder(max_length=max_length)
    clock = asyncio.get_running_loop()
    patience = MessageDeadline(timeout, frame_timeout, clock.time())
    while True:
        try:
            async with asyncio.timeout_at(patience.until):
                chunk = await reader.read(CHUNK)
        except TimeoutError:
            patience.ended(clock.time(), partial=decoder.partial, owed=False)
        else:
            if not chunk:
                decoder.close()
                return
            decoder.receive(chunk)
            for message in decoder:
                yield message
                patience.heard(clock.time())
            patience.begun(clock.time(), partial=decoder.partial)


class MessageDeadline:
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


class PendingAnswers:
    """Send answers to a peer in the order in which they were promised, each a coroutine of its own.

    Args:
        writer: The connection.
    """

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer, self._order = writer, AnswerQueue(self._say)
        self._working: set[asyncio.Task[bytes]] = set()
        self._fewer = asyncio.Event()
        self._failure: BaseException | None = None
        self._ended: BaseException | None = None

    async def promise(self, answer: Coroutine[Any, Any, bytes]) -> None:
        """Begin to work on *answer*; wait while too many are being worked on.

        Raises:
            Exception: What one of them ended in, or `ConnectionError`: nothing can be sent any more.
        """
        task = asyncio.ensure_future(answer)
        self._working.add(task)
        task.add_done_callback(partial(self._done, self._order.owe()))
        await self._writer.drain()
        while self._ended is None and len(self._order) >= WINDOW:
            self._fewer.clear()
            await self._fewer.wait()
        if self._ended is not None:
            raise self._ended

    def cancel(self) -> None:
        """Send no more.  What is being worked on goes on."""
        self._ended = self._ended or ConnectionError("the conversation is over")

    def _done(self, tell: AnswerCallback, task: asyncio.Task[bytes]) -> None:
        self._working.discard(task)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        self._failure = self._failure or error
        tell(task.result() if error is None else None)

    def _say(self, frames: bytes, broken: bool) -> None:
        if self._ended is None:
            self._writer.write(frames)
            self._ended = self._failure if broken else None
        self._fewer.set()
