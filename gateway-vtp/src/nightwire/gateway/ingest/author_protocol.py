"""The connection of an author: events in, answers out in the order of the events.

A protocol of the event loop, without a task or a stream of its own: an author takes a connection
for each event, so the cost of a connection is the cost of an event.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from functools import cached_property, partial
from typing import NamedTuple, Protocol

from nightwire.gateway.net.limits import FloodError, TokenBucket
from nightwire.gateway.net.memory import MemoryBudget, Sender
from nightwire.gateway.vtp.container import Container, ContainerError, is_container
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
from nightwire.gateway.vtp.transport import begins_transport

LINGER = 2.0
"""Longest time that a refused author is listened to, so that he reads why before the end. [s]"""
CONTAINER_TIMEOUT = 200.0
"""Longest time that an author may take to read the answers to a container. [s]"""
_BUFFER = memoryview(bytearray(CHUNK))

ConnectionCallback = Callable[["AuthorProtocol"], None]
"""Called with a connection that is there, or gone."""


class UnreadableDocument(NamedTuple):
    """A document that could not be read: the reason as metrics name it, and for the author."""

    reason: str
    explanation: str


class EventReceiver(Protocol):
    """Takes the documents of a connection and answers them.

    Attributes:
        memory: Bounds the memory for events.
    """

    memory: MemoryBudget

    def submit(
        self, document: bytes | UnreadableDocument, host: str, reply: AnswerCallback, *, first: bool
    ) -> None:
        """Begin to deal with *document*; *reply* takes the answer, now or later."""

    async def unpack(self, container: bytes) -> Container:
        """Unpack *container*."""

    def disconnected(self, peer: str, reason: str, error: Exception) -> None:
        """Note that the connection from *peer* is ended, and why."""


class AuthorProtocol(asyncio.BufferedProtocol):
    """Speak with one author until he hangs up or stops sending; several events may be on their way.

    Args:
        receiver: Takes the documents.
        deadline: How long to wait for the author.
        max_frame: Longest event. [byte]
        last_bytes: Longest time that he may take over what is left to be sent at the end. [s]
        on_open: Called when the connection is there.
        on_close: Called when it is gone.

    Attributes:
        host: The author's address.
        transport: The connection.
    """

    def __init__(
        self,
        receiver: EventReceiver,
        deadline: MessageDeadline,
        max_frame: int,
        last_bytes: float,
        on_open: ConnectionCallback,
        on_close: ConnectionCallback,
    ) -> None:
        self._receiver, self._deadline = receiver, deadline
        self._on_open, self._on_close = on_open, on_close
        self._decoder, self._last_bytes = FrameDecoder(max_length=max_frame), last_bytes
        self._loop = asyncio.get_running_loop()
        self._documents: deque[bytes | UnreadableDocument] = deque()
        self._answers = AnswerQueue(self._send)
        self._when_answered: Callable[[], None] | None = None
        self._input_closed = self._reading_paused = False
        self._writing_paused_at: float | None = None
        self._container_end = math.inf
        self._unpacking: asyncio.Task[Container] | None = None
        self._container: Container | None = None
        self._packed = self._held = 0
        self._unasked = TokenBucket()

    @cached_property
    def _sender(self) -> Sender:
        """The author, to the memory budget."""
        return Sender(self.host, partial(self._disconnect, "memory"))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to listen."""
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        peer = transport.get_extra_info("peername") or ("?", 0)
        self.host, self._port = str(peer[0]), int(peer[1])
        self._on_open(self)

    def secured(self, transport: asyncio.Transport) -> None:
        """Speak through TLS from now on."""
        if self._reading_paused:
            self.transport.resume_reading()
            transport.pause_reading()
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer that all connections share: each empties it at once."""
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        """Take the bytes that arrived."""
        if self._input_closed:
            return
        self._decoder.receive(_BUFFER[:nbytes])
        try:
            self._read_messages()
        except FrameError as error:
            self._refuse_rest(error, "too-large" if error.length else "invalid")
        except FloodError as error:
            self._disconnect("flood", error)
        self._process()

    def eof_received(self) -> bool:
        """Answer what is owed, and close."""
        self._when_answered = self.hang_up
        try:
            if not self._input_closed:
                self._decoder.close()
        except FrameError as error:
            self._disconnect("frame", error)
        return self._busy and self.transport.can_write_eof()  # TLS cannot write after its end

    def pause_writing(self) -> None:
        """Take no more events from an author who does not read the answers."""
        self._writing_paused_at = self._loop.time()

    def resume_writing(self) -> None:
        """Go on."""
        self._writing_paused_at = None
        self._process()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go.  Events that were submitted go on."""
        self._discard_input()
        self._answers.close()
        self._when_answered = None
        if self._unpacking is not None:
            self._unpacking.cancel()
        self._on_close(self)

    def hang_up(self) -> None:
        """End the connection, once the last answers are on their way."""
        self._discard_input()
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self._loop.call_later(self._last_bytes, self.transport.abort)

    def check_deadline(self) -> None:
        """End the connection where the author's time is up."""
        try:
            if not self.transport.is_closing():
                self._check_deadline(self._loop.time())
        except SilenceError as error:
            self._disconnect("slow" if isinstance(error, SlownessError) else "silent", error)

    def _check_deadline(self, now: float) -> None:
        """Look whether his time is up.

        Raises:
            SilenceError: It is.
        """
        if self._container_end <= now:
            raise SlownessError(f"the answers to a container took {CONTAINER_TIMEOUT:g} s")
        if self._writing_paused_at is not None:
            self._deadline.unread_since(self._writing_paused_at, now)
        elif self._reading_paused:
            self._deadline.message_complete(now)
        elif not self._input_closed and self._deadline.end is not None and self._deadline.end <= now:
            self._deadline.expired(now, partial=self._decoder.partial, answer_owed=self._busy)

    def _discard_input(self) -> None:
        """Drop the documents that were not submitted."""
        self._close_input()
        self._documents.clear()
        self._container = None
        self._hold()

    @property
    def _busy(self) -> bool:
        return bool(self._answers or self._documents or self._unpacking or self._container)

    def _read_messages(self) -> None:
        """Queue the messages that are complete.

        Raises:
            FrameError: The framing is broken.
            FloodError: They are messages of a subscriber, and too many.
        """
        for message in self._decoder:
            self._deadline.message_complete(self._loop.time())
            if is_container(message):
                self._unpack(message)
                return
            if begins_transport(message):
                self._unasked.take(len(message), self._loop.time())
            self._documents.append(message)
        if self._decoder.partial:
            self._deadline.message_begun(self._loop.time(), partial=self._decoder.partial)

    def _process(self) -> None:
        """Submit documents while there is room; read more when there is none left."""
        memory = self._receiver.memory
        while len(self._answers) < WINDOW and self._writing_paused_at is None:
            if (document := self._next_document()) is None:
                break
            size = 0 if isinstance(document, UnreadableDocument) else len(document)
            if not memory.has_room(size):
                memory.when_room(size, self._process)
                break
            memory.reserve(size)
            reply = partial(self._reply, size, self._answers.promise())
            first = self._answers.promised == 1
            self._receiver.submit(self._documents.popleft(), self.host, reply, first=first)
        full = self._writing_paused_at is not None or len(self._answers) >= WINDOW
        self._pause_reading(full or bool(self._documents))
        self._hold()

    def _hold(self) -> None:
        """Say how much is held of what is incomplete, or waits."""
        held = self._decoder.held + sum(map(len, self._documents))
        if self._unpacking is not None or self._container is not None:
            held += self._packed if self._container is None else self._container.size
        if held != self._held:
            self._held = held
            self._receiver.memory.hold_incomplete(self._sender, held)

    def _next_document(self) -> bytes | UnreadableDocument | None:
        """Return the first of the queue; where it is empty, the next one of an open container."""
        try:
            if self._container is not None and not self._documents:
                self._documents.append(next(self._container))
        except StopIteration:
            self._container = None
            self._when_answered = self.hang_up
        except ContainerError as error:
            self._container = None
            self._refuse_rest(error, "invalid")
        return self._documents[0] if self._documents else None

    def _reply(self, size: int, reply: AnswerCallback, answer: bytes | None) -> None:
        """Release *size* [byte] of memory, and answer."""
        self._receiver.memory.release(size)
        reply(answer)

    def _send(self, frames: bytes, broken: bool) -> None:
        if self.transport.is_closing():
            return
        self.transport.write(frames)
        if broken:
            self.hang_up()
        else:
            self._process_or_end()

    def _process_or_end(self) -> None:
        self._process()
        if self._when_answered is not None and not self._busy:
            self._when_answered()

    def _pause_reading(self, pause: bool) -> None:
        if pause == self._reading_paused or self.transport.is_closing():
            return
        self._reading_paused = pause
        if pause:
            self.transport.pause_reading()
        else:
            self._deadline.message_complete(self._loop.time())  # it was we who were silent
            self.transport.resume_reading()

    def _disconnect(self, reason: str, error: Exception) -> None:
        self._receiver.disconnected(f"{self.host}:{self._port}", reason, error)
        self.hang_up()

    def _refuse_rest(self, error: Exception, reason: str) -> None:
        """Answer why nothing more can be read on this connection."""
        self._close_input()
        self._receiver.disconnected(f"{self.host}:{self._port}", "frame", error)
        self._documents.append(UnreadableDocument(reason, str(error)))
        self._when_answered = self._when_answered or self._linger

    def _linger(self) -> None:
        """Close once the author has read the answer: a reset, while he sends, would drop it."""
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._when_answered = None
        self._loop.call_later(LINGER, self.hang_up)

    def _unpack(self, container: bytes) -> None:
        """Queue the events in *container*, the last message that is read on a connection."""
        self._close_input()
        self._container_end = self._loop.time() + CONTAINER_TIMEOUT
        self._packed = len(container)
        self._unpacking = asyncio.ensure_future(self._receiver.unpack(container))
        self._unpacking.add_done_callback(self._unpacked)

    def _unpacked(self, unpacking: asyncio.Task[Container]) -> None:
        self._unpacking = None
        if unpacking.cancelled() or self.transport.is_closing():
            self._hold()
            return
        try:
            self._container = unpacking.result()
        except ContainerError as error:
            self._refuse_rest(error, "invalid")
        self._process_or_end()

    def _close_input(self) -> None:
        """Take nothing more from the connection."""
        if not self._input_closed:
            self._input_closed = True
            self._decoder = FrameDecoder()
