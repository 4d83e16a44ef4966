"""An author of many events: several connections, each with as many in flight as allowed."""

import random
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from threading import Lock, Thread

from nightwire.gateway.client.author import ANSWERLESS, FIRST_DELAY, LONGEST_DELAY, Author, NoAnswerError
from nightwire.gateway.net.connect import connect
from nightwire.gateway.signing.signing_key import SigningError
from nightwire.gateway.voevent.xml import XMLRefusedError
from nightwire.gateway.vtp.bulk import WINDOW, BulkSession, InFlight
from nightwire.gateway.vtp.frames import FrameError
from nightwire.gateway.vtp.submission import FAILED, Receipt, Submission

CHUNK = 1 << 16
MAX_WAITING = 1 << 18
"""Bytes that wait for the socket. [byte]"""


def send_bulk(
    author: Author, letters: Iterable[Submission], connections: int, window: int = WINDOW
) -> Iterator[Receipt]:
    """Send *letters* over so many *connections*; yield a receipt each, as they come.

    A letter that was sent and not answered when its connection was lost is sent again: safe,
    because a broker recognises what it has.  A broker that takes one event per connection gets one
    per connection.

    Raises:
        Exception: What *letters* raised, after what came before is answered.
    """
    pile = _SubmissionSource(letters)
    receipts: SimpleQueue[Receipt | Exception | None] = SimpleQueue()
    for _ in range(connections):
        Thread(target=_work, args=(_Connection(author, pile, window), receipts), daemon=True).start()
    while connections:
        match receipts.get():
            case None:
                connections -= 1
            case Exception() as error:
                raise error
            case receipt:
                yield receipt
    if pile.failure is not None:
        raise pile.failure


def _work(line: "_Connection", receipts: "SimpleQueue[Receipt | Exception | None]") -> None:
    try:
        for receipt in line.run():
            receipts.put(receipt)
    except Exception as error:  # noqa: BLE001  (raised where the receipts are taken)
        receipts.put(error)
    else:
        receipts.put(None)


class _SubmissionSource:
    """Letters that several lines take from.  Where one cannot be read, it is the end of them."""

    def __init__(self, letters: Iterable[Submission]) -> None:
        self._letters, self._lock = iter(letters), Lock()
        self.failure: Exception | None = None

    def take(self) -> Submission | None:
        with self._lock:
            try:
                return next(self._letters, None)
            except Exception as error:  # noqa: BLE001  (raised when what was sent is answered)
                self._letters, self.failure = iter(()), error
                return None


@dataclass
class _Connection:
    """One connection at a time, as often as it takes."""

    author: Author
    pile: _SubmissionSource
    window: int
    again: deque[InFlight] = field(default_factory=deque)
    answerless: int = 0

    def run(self) -> Iterator[Receipt]:
        delay, until = FIRST_DELAY, time.monotonic() + self.author.patience
        while (event := self._take()) is not None:
            self.again.appendleft(event)
            submission = BulkSession(self.window)
            try:
                yield from self._converse(submission)
            except (OSError, NoAnswerError, XMLRefusedError, FrameError) as error:
                self.again.extendleft(reversed(submission.unanswered))
                yield from self._failed(error, answered=submission.answers)
                if submission.answers:
                    delay, until = FIRST_DELAY, time.monotonic() + self.author.patience
                elif time.monotonic() + delay > until:
                    yield from self._give_up(f"{self.author.broker}: {error}")
                time.sleep(delay * random.uniform(0.8, 1.2))  # noqa: S311  (spreads attempts)
                delay = min(2 * delay, LONGEST_DELAY)
            else:
                delay, until = FIRST_DELAY, time.monotonic() + self.author.patience

    def _converse(self, submission: BulkSession) -> Iterator[Receipt]:
        """Send until nothing is left or the broker takes no more; yield what it answers."""
        waiting = bytearray()
        with connect(self.author.broker, self.author.timeout, self.author.tls) as connection:
            connection.setblocking(False)
            while True:
                yield from self._fill(waiting, submission)
                if submission.over or submission.idle:
                    return
                readable = self._await(connection, writing=bool(waiting))
                if readable:
                    yield from submission.receive(_read(connection))
                if waiting:
                    del waiting[: _write(connection, waiting)]

    def _fill(self, waiting: bytearray, submission: BulkSession) -> Iterator[Receipt]:
        """Put frames into *waiting* while there is room; yield receipts of failed signing."""
        while submission.room and len(waiting) < MAX_WAITING and (event := self._take()) is not None:
            try:
                waiting += submission.send(self._signed(event))
            except SigningError as error:
                yield Receipt(event.letter.name, FAILED, None, str(error), event.attempts)

    def _await(self, connection: socket.socket, *, writing: bool) -> bool:
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
        key = self.author.key
        if key is None or event.attempts:
            return event
        return replace(event, letter=Submission(event.letter.name, key.sign(event.letter.document)))

    def _take(self) -> InFlight | None:
        if self.again:
            return self.again.popleft()
        letter = self.pile.take()
        return None if letter is None else InFlight(letter)

    def _failed(self, error: Exception, *, answered: bool) -> Iterator[Receipt]:
        """Give up the letter at which the broker hangs up again and again, or talks nonsense."""
        nonsense = isinstance(error, (XMLRefusedError, FrameError))
        hung_up = isinstance(error, NoAnswerError)
        self.answerless = 0 if answered else self.answerless + hung_up
        if nonsense or self.answerless == ANSWERLESS:
            self.answerless = 0
            reason = f"{self.author.broker}{' answered nonsense' * nonsense}: {error}"
            yield from (_lost(event, reason) for event in self._first())

    def _first(self) -> Sequence[InFlight]:
        return [self.again.popleft()] if self.again else []

    def _give_up(self, reason: str) -> Iterator[Receipt]:
        while (event := self._take()) is not None:
            yield _lost(event, reason)


def _lost(event: InFlight, reason: str) -> Receipt:
    return Receipt(event.letter.name, FAILED, None, reason, event.attempts)


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


def _write(connection: socket.socket, waiting: bytearray) -> int:
    try:
        with memoryview(waiting) as view, view[:CHUNK] as piece:
            return connection.send(piece)
    except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return 0
    except (BrokenPipeError, ConnectionResetError):
        return len(waiting)  # refused halfway; what can still be read says why
