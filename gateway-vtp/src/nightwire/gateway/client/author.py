"""An author: send events to a broker, one connection each, and report what became of each."""

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from nightwire.core.runtime import Backoff
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.connect import connect
from nightwire.gateway.net.tls import TLSSettings
from nightwire.gateway.signing.signing_key import SigningError, SigningKey
from nightwire.gateway.voevent.xml import XMLRefusedError
from nightwire.gateway.vtp.frames import FrameDecoder, FrameError, encode_frame
from nightwire.gateway.vtp.submission import ACKED, FAILED, MAX_REPLY, NAKED, Receipt, Submission
from nightwire.gateway.vtp.transport import ACK, NAK, Transport, transport_in

MAX_ANSWERLESS = 6
"""A broker that takes an event and hangs up without an answer so often will never answer it."""


class NoAnswerError(Exception):
    """The broker took the document and hung up without an answer."""


@dataclass(frozen=True)
class Author:
    """Sends events to one broker.  Sending again is safe: a broker of ours recognises its events.

    Attributes:
        broker: Its address.
        timeout: Longest wait for a connection, and for an answer. [s]
        patience: How long to go on trying where the broker is away. [s]
        key: Signs each document; None where they are sent as they are.
        tls: Certificates, for a broker at tls://.
        first_pause: Pause after the first failure; it doubles up to 5 s. [s]
    """

    broker: Address
    timeout: float = 60.0
    patience: float = 60.0
    key: SigningKey | None = None
    tls: TLSSettings = field(default_factory=TLSSettings)
    first_pause: float = 0.25

    def send(self, submission: Submission) -> Receipt:
        """Send one document; try again where the connection is lost."""
        try:
            return self._deliver(self.signed(submission))
        except SigningError as error:
            return Receipt(submission.name, FAILED, None, str(error), 0)

    def signed(self, submission: Submission) -> Submission:
        """Return *submission* with a signature, where there is a key.

        Raises:
            SigningError: It cannot be signed.
        """
        if self.key is None:
            return submission
        return Submission(submission.name, self.key.sign(submission.document))

    def backoff(self) -> Backoff:
        """Return the pauses between attempts."""
        return Backoff(self.first_pause, 5.0, spread=(0.8, 1.2))

    def _deliver(self, submission: Submission) -> Receipt:
        until, backoff = time.monotonic() + self.patience, self.backoff()
        attempts = answerless = 0
        while True:
            attempts += 1
            try:
                return _receipt(submission, self._exchange(submission.document), attempts)
            except (XMLRefusedError, FrameError) as error:
                reason = f"{self.broker} answered nonsense: {error}"
                return Receipt(submission.name, FAILED, None, reason, attempts)
            except (OSError, NoAnswerError) as error:
                answerless += isinstance(error, NoAnswerError)
                pause = backoff.next()
                if answerless == MAX_ANSWERLESS or time.monotonic() + pause > until:
                    return Receipt(submission.name, FAILED, None, f"{self.broker}: {error}", attempts)
            time.sleep(pause)

    def _exchange(self, document: bytes) -> Transport:
        with connect(self.broker, self.timeout, self.tls) as connection:
            with suppress(BrokenPipeError, ConnectionResetError):  # the answer says why
                connection.sendall(encode_frame(document))
            return _read_answer(connection, self.timeout)


def send_all(author: Author, submissions: Iterable[Submission], connections: int) -> Iterator[Receipt]:
    """Send *submissions* over so many *connections* at once; yield a receipt each, in order."""
    with ThreadPoolExecutor(connections) as pool:
        waiting: list[Future[Receipt]] = []
        for submission in submissions:
            waiting.append(pool.submit(author.send, submission))
            if len(waiting) >= 4 * connections:  # so that a long list is not held in memory
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()


def find_files(paths: Sequence[Path]) -> list[Path]:
    """Return *paths*, each folder replaced by the files in it, at any depth, in order of name."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(file for file in path.rglob("*") if file.is_file())
        else:
            found.append(path)
    return found


def read_submissions(files: Sequence[Path], read_stdin: Callable[[], bytes]) -> Iterator[Submission]:
    """Yield the documents in *files*; ``-`` is what *read_stdin* returns."""
    for file in files:
        if str(file) == "-":
            yield Submission("-", read_stdin())
        else:
            yield Submission(str(file), file.read_bytes())


def _receipt(submission: Submission, answer: Transport, attempts: int) -> Receipt:
    verdict = {ACK: ACKED, NAK: NAKED}.get(answer.role, FAILED)
    reason = answer.result if verdict != FAILED else f"answered with {answer.role}"
    return Receipt(submission.name, verdict, answer.origin, reason, attempts)


def _read_answer(connection: socket.socket, timeout: float) -> Transport:
    decoder, until = FrameDecoder(max_length=MAX_REPLY), time.monotonic() + timeout
    while True:
        if (left := until - time.monotonic()) <= 0:  # the socket's timeout is for each byte
            raise TimeoutError(f"no whole answer within {timeout:g} s")
        connection.settimeout(left)
        try:
            chunk = connection.recv(1 << 16)
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            raise NoAnswerError("the broker hung up without an answer")
        decoder.receive(chunk)
        for message in decoder:
            answer = transport_in(message)
            if answer is None:
                raise XMLRefusedError("the answer is no Transport document")
            return answer
