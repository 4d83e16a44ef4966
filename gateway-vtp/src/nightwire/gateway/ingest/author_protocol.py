"""One author's connection: events in, answers out in the same order, while earlier ones wait for Kafka.

A protocol of the event loop, without a task or a stream of its own: an author takes a connection for each
event, so what a connection costs is what an event costs.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from nightwire.gateway.net.limits import MemoryBudget, MemoryExceededError
from nightwire.gateway.vtp.container import ContainerError, is_container
from nightwire.gateway.vtp.conversation import (
    CHUNK,
    WINDOW,
    AnswerCallback,
    AnswerQueue,
    MessageDeadline,
    SilenceError,
    SlownessError,
)
from nightwire.gateway.vtp.frames import FrameDecoder, FrameError

LINGER = 2.0
"""Longest time that a refused author is listened to, so that he reads why before the connection ends. [s]"""
CONTAINER_TIMEOUT = 200.0
"""Longest time that an author may take to read the answers to a container. [s]"""
_BUFFER = memoryview(bytearray(CHUNK))


class UnreadableDocument(NamedTuple):
    """What could not be read: why it is refused, in one word and in many."""

    reason: str
    words: str


class EventReceiver(Protocol):
    """What decides about events."""

    intake: MemoryBudget

    def decide(
        self, document: bytes | UnreadableDocument, host: str, tell: AnswerCallback, *, first: bool
    ) -> None:
        """Begin to deal with *document*, and *tell* the answer, now or later."""

    async def opened(self, container: bytes) -> Iterator[bytes]:
        """Unpack *container*; return its documents, each taken from it when asked for."""

    def dropped(self, peer: str, reason: str, why: Exception) -> None:
        """Note that the connection from *peer* is ended, and why."""


class AuthorProtocol(asyncio.BufferedProtocol):
    """Speak with one author until he hangs up or stops sending; several events may be on their way at once.

    Args:
        desk: Decides.
        patience: How long to wait for him.
        max_frame: Longest event. [byte]
        last_bytes: Longest time that he may take over what is left to be sent when we hang up. [s]
        left: Called when the connection is gone.
    """

    def __init__(
        self,
        desk: EventReceiver,
        patience: MessageDeadline,
        max_frame: int,
        last_bytes: float,
        left: Callable[[], None],
    ) -> None:
        self._desk, self._patience, self._left = desk, patience, left
        self._decoder, self._last_bytes = FrameDecoder(max_length=max_frame), last_bytes
        self._loop = asyncio.get_running_loop()
        self._queue: deque[bytes | UnreadableDocument] = deque()
        self._owed = AnswerQueue(self._say)
        self._afterwards: Callable[[], None] | None = None  # what is done when all is answered
        self._deaf = self._paused = self._blocked = False
        self._timer: asyncio.TimerHandle | None = None
        self._opening: asyncio.Task[Iterator[bytes]] | None = None
        self._container: Iterator[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to listen."""
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._host: str
        self._port: int
        self._host, self._port = (transport.get_extra_info("peername") or ("?", 0))[:2]
        self._watch()

    def secured(self, transport: asyncio.Transport) -> None:
        """Speak through TLS from now on."""
        if self._paused:
            self._transport.resume_reading()
            transport.pause_reading()
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to put what comes: one place for all lines, for each empties it at once."""
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        """Take what came."""
        if self._deaf:
            return
        self._decoder.receive(_BUFFER[:nbytes])
        try:
            self._read()
        except FrameError as error:
            self._refuse_rest(error, "too-large" if error.length else "invalid")
        except MemoryExceededError as error:
            self._drop("memory", error)
        self._go_on()

    def eof_received(self) -> bool:
        """Answer what is owed, and close."""
        self._afterwards = self.hang_up
        try:
            if not self._deaf:
                self._decoder.close()
        except FrameError as error:
            self._drop("frame", error)
        return self._busy and self._transport.can_write_eof()  # TLS says nothing after the end

    def pause_writing(self) -> None:
        """Take no more events from an author who does not read the answers."""
        self._blocked = True

    def resume_writing(self) -> None:
        """Go on."""
        self._blocked = False
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go.  What is being dealt with goes on."""
        self._forget()
        self._wake(None)
        if self._opening is not None:
            self._opening.cancel()
        self._left()

    def hang_up(self) -> None:
        """End the connection, once what was said is on its way."""
        self._forget()
        self._transport.close()
        if self._transport.get_write_buffer_size():
            self._loop.call_later(self._last_bytes, self._transport.abort)

    def _forget(self) -> None:
        """Drop what was not begun with."""
        self._close_ears()
        self._queue.clear()
        self._container = None

    @property
    def _busy(self) -> bool:
        return bool(self._owed or self._queue or self._opening or self._container)

    def _read(self) -> None:
        """Queue the messages that are complete.

        Raises:
            FrameError: The framing is broken.
            TooMuchUnfinishedError: There is no room for one that is not.
        """
        for message in self._decoder:
            self._patience.heard(self._loop.time())
            if is_container(message):
                self._open(message)
                return
            self._queue.append(message)
        self._desk.intake.unfinished(self, self._decoder.partial)
        if self._decoder.partial:
            self._patience.begun(self._loop.time(), partial=self._decoder.partial)
            self._watch()

    def _go_on(self) -> None:
        """Deal with what is queued, while there is room; read more when there is nothing left."""
        while len(self._owed) < WINDOW and not self._blocked and (document := self._next()) is not None:
            size = 0 if isinstance(document, UnreadableDocument) else len(document)
            if not self._desk.intake.has_room(size):
                self._desk.intake.wait(size, self._go_on)
                break
            self._desk.intake.enter(size)
            tell = self._counted(size, self._owed.owe())
            self._desk.decide(self._queue.popleft(), self._host, tell, first=self._owed.promised == 1)
        self._pace(wait=bool(self._queue) or self._blocked or len(self._owed) >= WINDOW)

    def _next(self) -> bytes | UnreadableDocument | None:
        """Return the first of the queue, where it is empty that of an open container."""
        try:
            if self._container is not None and not self._queue:
                self._queue.append(next(self._container))
        except StopIteration:
            self._container = None
            self._afterwards = self.hang_up
        except ContainerError as error:
            self._container = None
            self._refuse_rest(error, "invalid")
        return self._queue[0] if self._queue else None

    def _counted(self, size: int, tell: AnswerCallback) -> AnswerCallback:
        def told(answer: bytes | None) -> None:
            self._desk.intake.leave(size)
            tell(answer)

        return told

    def _say(self, frames: bytes, broken: bool) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(frames)
        if broken:
            self.hang_up()
        else:
            self._go_on_or_end()

    def _go_on_or_end(self) -> None:
        self._go_on()
        if self._afterwards is not None and not self._busy:
            self._afterwards()

    def _pace(self, *, wait: bool) -> None:
        """Read, or *wait* with it."""
        if wait == self._paused or self._transport.is_closing():
            return
        self._paused = wait
        if wait:
            self._transport.pause_reading()
        else:
            self._patience.heard(self._loop.time())  # it was we who were silent
            self._transport.resume_reading()

    def _watch(self) -> None:
        """See to it that we look when patience ends."""
        until = self._patience.until
        if until is None or (self._timer is not None and self._timer.when() <= until):
            return
        self._wake(self._loop.call_at(until, self._look))

    def _wake(self, timer: asyncio.TimerHandle | None) -> None:
        """Be woken by *timer*, and by no other."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = timer

    def _look(self) -> None:
        """End the connection where patience is at its end."""
        self._timer, now = None, self._loop.time()
        if self._deaf:
            return
        try:
            if self._paused:
                self._patience.heard(now)
            elif self._patience.until is not None and self._patience.until <= now:
                self._patience.ended(now, partial=self._decoder.partial, owed=self._busy)
        except SilenceError as error:
            self._drop("slow" if isinstance(error, SlownessError) else "silent", error)
        else:
            self._watch()

    def _drop(self, reason: str, why: Exception) -> None:
        self._desk.dropped(f"{self._host}:{self._port}", reason, why)
        self.hang_up()

    def _refuse_rest(self, why: Exception, reason: str) -> None:
        """Say why nothing more can be read on this connection."""
        self._close_ears()
        self._desk.dropped(f"{self._host}:{self._port}", "frame", why)
        self._queue.append(UnreadableDocument(reason, str(why)))
        self._afterwards = self._afterwards or self._linger

    def _linger(self) -> None:
        """Close once the author has read why: he may be sending still, and a reset would take it from him."""
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._afterwards = None
        self._loop.call_later(LINGER, self.hang_up)

    def _open(self, container: bytes) -> None:
        """Queue the events in *container*, the last message that is read on a connection."""
        self._close_ears()
        self._wake(self._loop.call_later(CONTAINER_TIMEOUT, self._late))
        self._opening = asyncio.ensure_future(self._desk.opened(container))
        self._opening.add_done_callback(self._opened)

    def _opened(self, opening: asyncio.Task[Iterator[bytes]]) -> None:
        self._opening = None
        if opening.cancelled() or self._transport.is_closing():
            return
        try:
            self._container = opening.result()
        except ContainerError as error:
            self._refuse_rest(error, "invalid")
        self._go_on_or_end()

    def _late(self) -> None:
        self._drop("slow", TimeoutError(f"the answers to a container took {CONTAINER_TIMEOUT:g} s"))

    def _close_ears(self) -> None:
        """Take nothing more from the connection."""
        if not self._deaf:
            self._deaf = True
            self._decoder = FrameDecoder()
            self._desk.intake.unfinished(self, 0)
