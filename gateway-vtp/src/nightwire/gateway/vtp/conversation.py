"""Messages of a connection, the deadline of the next one, and answers in their order."""

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any

from nightwire.gateway.vtp.frames import FrameDecoder, encode_frame

WINDOW = 256
"""Most messages of one peer that are being dealt with at once."""
CHUNK = 1 << 16  # [byte]

AnswerCallback = Callable[[bytes | None], None]
"""Takes the answer to an event; None: there is none, and no later one can be sent either."""


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
    hold: Callable[[int], None] = lambda _size: None,
) -> AsyncIterator[bytes]:
    """Yield the peer's messages until it hangs up.

    Args:
        reader: The connection.
        max_length: Longest message. [byte]
        timeout: Longest time from one message to the end of the next [s], however it trickles in.
        frame_timeout: Longest time from the first byte of a message to its last. [s]
        hold: Takes how much memory an incomplete message takes. [byte]

    Raises:
        SilenceError: The next message took longer than *timeout*.
        SlownessError: It was begun, and took too long.
        FrameError: The framing is broken.
    """
    decoder = FrameDecoder(max_length=max_length)
    clock = asyncio.get_running_loop()
    deadline = MessageDeadline(timeout, frame_timeout, clock.time())
    while True:
        try:
            async with asyncio.timeout_at(deadline.end):
                chunk = await reader.read(CHUNK)
        except TimeoutError:
            deadline.expired(clock.time(), partial=decoder.partial, answer_owed=False)
        else:
            if not chunk:
                decoder.close()
                return
            decoder.receive(chunk)
            for message in decoder:
                yield message
                deadline.message_complete(clock.time())
            hold(decoder.held)
            deadline.message_begun(clock.time(), partial=decoder.partial)


class MessageDeadline:
    """Until when a peer's next message must have arrived.

    Args:
        timeout: From one message to the end of the next. [s]
        frame_timeout: From the first byte of a message to its last. [s]
        now: When listening begins. [s]
    """

    def __init__(self, timeout: float, frame_timeout: float, now: float) -> None:
        self._timeout, self._frame_timeout = timeout, frame_timeout
        self.message_complete(now)

    @property
    def end(self) -> float | None:
        """When the peer's time is up [s]; None: never."""
        end = min(self._message_end, self._frame_end)
        return None if end == math.inf else end

    def message_complete(self, now: float) -> None:
        """Note that a message is complete."""
        self._message_end, self._frame_end = now + self._timeout, math.inf

    def message_begun(self, now: float, *, partial: int) -> None:
        """Note that *partial* bytes of an incomplete message are there."""
        if partial and self._frame_end == math.inf:
            self._frame_end = now + self._frame_timeout

    def unread_since(self, then: float, now: float) -> None:
        """Note that the peer takes no answers since *then*. [s]

        Raises:
            SlownessError: He had as long as for a message.
        """
        if now - then >= self._timeout:
            raise SlownessError(f"no answer was read within {self._timeout:g} s")

    def expired(self, now: float, *, partial: int, answer_owed: bool) -> None:
        """Begin anew where we owe the peer an answer, and it has begun no message.

        Raises:
            SilenceError: Otherwise.
        """
        if partial:
            raise SlownessError(f"{partial} bytes of a message came in time, and not the rest")
        if not answer_owed:
            raise SilenceError(f"no message within {self._timeout:g} s")
        self.message_complete(now)


class AnswerQueue:
    """Collect answers and send them in order, those that are known at the same moment together.

    Args:
        send: Takes the frames that may go out, and whether they end where an answer is missing.

    Attributes:
        promised: How many answers were promised since the beginning.
    """

    def __init__(self, send: Callable[[bytes, bool], None]) -> None:
        self._send, self._loop = send, asyncio.get_running_loop()
        self._due: deque[list[bytes | None]] = deque()
        self._send_scheduled = False
        self.promised = 0

    def __len__(self) -> int:
        """Return how many answers are owed now."""
        return len(self._due)

    def close(self) -> None:
        """Send no more."""
        self._send = lambda _frames, _broken: None

    def promise(self) -> AnswerCallback:
        """Promise an answer; return the callback that takes it."""
        slot: list[bytes | None] = []
        self._due.append(slot)
        self.promised += 1
        return partial(self._answered, slot)

    def _answered(self, slot: list[bytes | None], answer: bytes | None) -> None:
        slot.append(answer)
        if self._due[0] and not self._send_scheduled:
            self._send_scheduled = True
            self._loop.call_soon(self._send_due)

    def _send_due(self) -> None:
        self._send_scheduled = False
        frames = bytearray()
        while self._due and self._due[0]:
            (answer,) = self._due.popleft()
            if answer is None:
                self._send(bytes(frames), True)
                return
            frames += encode_frame(answer)
        self._send(bytes(frames), False)


class PendingAnswers:
    """Send answers to a peer in the order in which they were promised, each a coroutine of its own.

    Args:
        writer: The connection.
    """

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer, self._queue = writer, AnswerQueue(self._send)
        self._tasks: set[asyncio.Task[bytes]] = set()
        self._sent = asyncio.Event()
        self._failure: BaseException | None = None
        self._ended: BaseException | None = None

    async def promise(self, answer: Coroutine[Any, Any, bytes]) -> None:
        """Begin to work on *answer*; wait while too many are being worked on.

        Raises:
            Exception: What one of them raised, or `ConnectionError`: nothing can be sent any more.
        """
        task = asyncio.ensure_future(answer)
        self._tasks.add(task)
        task.add_done_callback(partial(self._done, self._queue.promise()))
        await self._writer.drain()
        while self._ended is None and len(self._queue) >= WINDOW:
            self._sent.clear()
            await self._sent.wait()
        if self._ended is not None:
            raise self._ended

    def cancel(self) -> None:
        """Send no more.  The work on answers goes on."""
        self._ended = self._ended or ConnectionError("the conversation is over")

    def _done(self, reply: AnswerCallback, task: asyncio.Task[bytes]) -> None:
        self._tasks.discard(task)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        self._failure = self._failure or error
        reply(task.result() if error is None else None)

    def _send(self, frames: bytes, broken: bool) -> None:
        if self._ended is None:
            self._writer.write(frames)
            self._ended = self._failure if broken else None
        self._sent.set()
