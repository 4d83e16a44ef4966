"""An author of many events: several connections, each with as many in flight as allowed."""

import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from threading import Lock, Thread

from nightwire.gateway.client.author import MAX_ANSWERLESS, Author, NoAnswerError
from nightwire.gateway.net.connect import connect
from nightwire.gateway.signing.signing_key import SigningError
from nightwire.gateway.voevent.xml import XMLRefusedError
from nightwire.gateway.vtp.bulk import WINDOW, BulkSession, InFlight
from nightwire.gateway.vtp.frames import FrameError
from nightwire.gateway.vtp.submission import FAILED, Receipt, Submission

CHUNK = 1 << 16
MAX_UNSENT = 1 << 18
"""Most bytes that wait for the socket. [byte]"""


def send_bulk(
    author: Author, submissions: Iterable[Submission], connections: int, window: int = WINDOW
) -> Iterator[Receipt]:
    """Send *submissions* over so many *connections*; yield a receipt each, as they come.

    A document that was sent and not answered when its connection was lost is sent again: safe,
    because a broker recognises its events.  A broker that takes one event per connection gets one
    per connection.

    Raises:
        Exception: What *submissions* raised, after the earlier ones are answered.
    """
    source = _SubmissionSource(submissions)
    receipts: SimpleQueue[Receipt | Exception | None] = SimpleQueue()
    for _ in range(connections):
        connection = _Connection(author, source, window)
        Thread(target=_work, args=(connection, receipts), daemon=True).start()
    while connections:
        match receipts.get():
            case None:
                connections -= 1
            case Exception() as error:
                raise error
            case receipt:
                yield receipt
    if source.failure is not None:
        raise source.failure


def _work(connection: "_Connection", receipts: "SimpleQueue[Receipt | Exception | None]") -> None:
    try:
        for receipt in connection.run():
            receipts.put(receipt)
    except Exception as error:  # noqa: BLE001  (raised where the receipts are taken)
        receipts.put(error)
    else:
        receipts.put(None)


class _SubmissionSource:
    """Documents that several connections take from.  One that cannot be read is the last."""

    def __init__(self, submissions: Iterable[Submission]) -> None:
        self._submissions, self._lock = iter(submissions), Lock()
        self.failure: Exception | None = None

    def take(self) -> Submission | None:
        with self._lock:
            try:
                return next(self._submissions, None)
            except Exception as error:  # noqa: BLE001  (raised when the earlier ones are answered)
                self._submissions, self.failure = iter(()), error
                return None


@dataclass
class _Connection:
    """One connection at a time, made again as often as needed."""

    author: Author
    source: _SubmissionSource
    window: int
    again: deque[InFlight] = field(default_factory=deque)
    answerless: int = 0

    def run(self) -> Iterator[Receipt]:
        backoff, until = self.author.backoff(), time.monotonic() + self.author.patience
        while (event := self._take()) is not None:
            self.again.appendleft(event)
            session = BulkSession(self.window)
            try:
                yield from self._converse(session)
            except (OSError, NoAnswerError, XMLRefusedError, FrameError) as error:
                self.again.extendleft(reversed(session.unanswered))
                yield from self._failed(error, answered=session.answers)
                if session.answers:
                    backoff.reset()
                    until = time.monotonic() + self.author.patience
                pause = backoff.next()
                if not session.answers and time.monotonic() + pause > until:
                    yield from self._give_up(f"{self.author.broker}: {error}")
                time.sleep(pause)
            else:
                backoff.reset()
                until = time.monotonic() + self.author.patience

    def _converse(self, session: BulkSession) -> Iterator[Receipt]:
        """Send until nothing is left or the broker takes no more; yield receipts of its answers."""
        unsent = bytearray()
        with connect(self.author.broker, self.author.timeout, self.author.tls) as connection:
            connection.setblocking(False)
            while True:
                yield from self._fill(unsent, session)
                if session.over or session.idle:
                    return
                if self._wait(connection, writing=bool(unsent)):
                    yield from session.receive(_read(connection))
                if unsent:
                    del unsent[: _write(connection, unsent)]

    def _fill(self, unsent: bytearray, session: BulkSession) -> Iterator[Receipt]:
        """Put frames into *unsent* while there is room; yield receipts of failed signing."""
        while session.room and len(unsent) < MAX_UNSENT and (event := self._take()) is not None:
            try:
                unsent += session.send(self._signed(event))
            except SigningError as error:
                yield _lost(event, str(error))

    def _wait(self, connection: socket.socket, *, writing: bool) -> bool:
        """Wait until *connection* can be used; say whether there may be something to read."""
        if isinstance(connection, ssl.SSLSocket) and connection.pending():
            return True
        readable, writable, _ = select.select(
            [connection], [connection] if writing else [], [], self.author.timeout
        )
        if not readable and not writable:
            raise TimeoutError(f"no answer within {self.author.timeout:g} s")
        return bool(readable)

    def _signed(self, event: InFlight) -> InFlight:
        if event.attempts:
            return event
        return replace(event, submission=self.author.signed(event.submission))

    def _take(self) -> InFlight | None:
        if self.again:
            return self.again.popleft()
        submission = self.source.take()
        return None if submission is None else InFlight(submission)

    def _failed(self, error: Exception, *, answered: bool) -> Iterator[Receipt]:
        """Give up the event at which the broker hangs up again and again, or answers nonsense."""
        nonsense = isinstance(error, (XMLRefusedError, FrameError))
        hung_up = isinstance(error, NoAnswerError)
        self.answerless = 0 if answered else self.answerless + hung_up
        if nonsense or self.answerless == MAX_ANSWERLESS:
            self.answerless = 0
            if self.again:
                reason = f"{self.author.broker}{' answered nonsense' * nonsense}: {error}"
                yield _lost(self.again.popleft(), reason)

    def _give_up(self, reason: str) -> Iterator[Receipt]:
        while (event := self._take()) is not None:
            yield _lost(event, reason)


def _lost(event: InFlight, reason: str) -> Receipt:
    return Receipt(event.submission.name, FAILED, None, reason, event.attempts)


def _read(connection: socket.socket) -> bytes:
    try:
        chunk = connection.recv(CHUNK)
    except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return b""
    except ConnectionResetError:
        chunk = b""
    if not chunk:
        raise NoAnswerError("the broker hung up without an answer")
    return chunk


def _write(connection: socket.socket, unsent: bytearray) -> int:
    try:
        with memoryview(unsent) as view, view[:CHUNK] as piece:
            return connection.send(piece)
    except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return 0
    except (BrokenPipeError, ConnectionResetError):
        return len(unsent)  # the answer that can still be read says why
