"""Broker to authors: an event in, an ack or a nak out, and never an ack for what Kafka does not have."""

import asyncio
import logging
import time
from dataclasses import dataclass
from functools import partial

from nightwire.core.kafka import DeliveryError
from nightwire.gateway._admission import Admission
from nightwire.gateway._board import Board
from nightwire.gateway._book import AccountBook, Tally
from nightwire.gateway._bulk import OFFER
from nightwire.gateway._container import ContainerError, is_container, open_container
from nightwire.gateway._conversation import Answers, SilenceError, SlownessError, messages
from nightwire.gateway._demands import EventDemand
from nightwire.gateway._frames import FrameError
from nightwire.gateway._limits import Intake, TooMuchUnfinishedError
from nightwire.gateway._metrics import GatewayMetrics
from nightwire.gateway._server import peer_name
from nightwire.gateway._session import Params, ack, nak, say
from nightwire.gateway._settings import Settings
from nightwire.gateway._validation import InvalidEventError, author_packet

log = logging.getLogger(__name__)

ACCEPTED, DUPLICATE, FAILED = "accepted", "duplicate", "failed"
CONTAINERS = 4
"""Containers that are read at the same time; each may be unpacked in memory."""
CONTAINER_TIMEOUT = 200.0
"""Longest time that an author may take to read the answers to a container. [s]"""
LINGER = 2.0
"""Longest time that a refused author is listened to, so that he reads why before the connection ends. [s]"""


@dataclass(frozen=True)
class Outcome:
    """What became of a document.

    Attributes:
        name: What it is counted as: accepted, duplicate, failed, or the reason of a refusal.
        ivorn: What the event is called, where that could be read.
        words: What its author is told besides.
    """

    name: str
    ivorn: str | None
    words: str = ""


class Authors:
    """Our side of connections from authors.

    Args:
        settings: The gateway's.
        admission: The way into the log.
        book: Where accounts go.
        tally: Counts what is not admitted.
        metrics: The process's metrics.
        demand: What events have to prove.
        intake: Bounds what their events take of memory.
        board: What the status page shows.
    """

    def __init__(
        self,
        settings: Settings,
        admission: Admission,
        book: AccountBook,
        tally: Tally,
        metrics: GatewayMetrics,
        demand: EventDemand,
        intake: Intake,
        board: Board,
    ) -> None:
        self._intake, self._board = intake, board
        self._settings, self._admission, self._demand = settings, admission, demand
        self._book, self._tally, self._metrics = book, tally, metrics
        self._containers = asyncio.Semaphore(CONTAINERS)

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take events until the author hangs up or stops sending; several may be on their way at once."""
        answers = Answers(writer)
        visit = _Visit(str((writer.get_extra_info("peername") or ("?",))[0]), answers)
        settings = self._settings
        incoming = messages(
            reader,
            max_length=settings.max_frame,
            timeout=settings.author_timeout,
            frame_timeout=settings.doors.limits.frame_timeout,
            owed=lambda: answers.owed,
            unfinished=partial(self._intake.unfinished, writer),
        )
        try:
            async for message in incoming:
                if is_container(message):
                    await self._take_container(message, visit)
                    break
                await self._take(message, visit)
            await answers.finish()
        except (FrameError, ContainerError) as error:
            await self._refuse_rest(error, visit, reader, writer)
        except TimeoutError as error:
            self._drop(writer, "slow", error)
        except SilenceError as error:
            self._drop(writer, "slow" if isinstance(error, SlownessError) else "silent", error)
        except TooMuchUnfinishedError as error:
            self._drop(writer, "memory", error)
        finally:
            answers.cancel()

    def _drop(self, writer: asyncio.StreamWriter, reason: str, error: Exception) -> None:
        self._metrics.dropped.labels("author", reason).inc()
        log.info("author %s is disconnected: %s", peer_name(writer), error)

    async def _take(self, document: bytes, visit: "_Visit") -> None:
        """Begin to deal with *document*; wait while too much is being dealt with."""
        answer = self._answer(document, visit.host, visit.offer)
        await visit.answers.promise(await self._intake.take(len(document), answer))

    async def _take_container(self, container: bytes, visit: "_Visit") -> None:
        async with self._containers, asyncio.timeout(CONTAINER_TIMEOUT):
            for document in await asyncio.to_thread(open_container, container, self._settings.max_frame):
                await self._take(document, visit)

    async def _answer(self, document: bytes, host: str, params: Params) -> bytes | None:
        return self._say(await self._judge(document), host, params)

    def _say(self, outcome: Outcome, host: str, params: Params) -> bytes | None:
        """Return what an author at *host* is told; None where nothing can be said."""
        self._metrics.received.labels("author", outcome.name).inc()
        refusal = None if outcome.name in (ACCEPTED, DUPLICATE) else outcome.words
        self._board.from_author(host, outcome.name, outcome.ivorn, refusal)
        if refusal is not None:
            log.info("author %s is refused %s (%s): %s", host, outcome.ivorn or "", outcome.name, refusal)
        if outcome.name == FAILED:
            return None
        if outcome.name in (ACCEPTED, DUPLICATE):
            return say(ack(outcome.ivorn or "", self._settings.ivorn, outcome.words or None, params))
        return say(nak(outcome.ivorn, self._settings.ivorn, outcome.words, params))

    async def _judge(self, document: bytes) -> Outcome:
        arrived = time.perf_counter()
        try:
            packet = author_packet(document, self._settings.doors.max_depth)
        except InvalidEventError as error:
            if error.kind is not None:
                self._metrics.documents_refused.labels("author", error.kind.value).inc()
            return await self._refuse("invalid", error.ivorn, str(error))
        if (refusal := self._demand.refusal(packet)) is not None:
            return await self._refuse("unsigned", packet.ivorn, refusal)
        try:
            new = await self._admission.admit(packet, "author")
        except DeliveryError as error:
            log.error("%s is not in Kafka and not acknowledged: %s", packet.ivorn, error)  # noqa: TRY400
            return Outcome(FAILED, packet.ivorn, str(error))
        self._metrics.acknowledged_seconds.observe(time.perf_counter() - arrived)
        if new:
            return Outcome(ACCEPTED, packet.ivorn)
        return await self._refuse(DUPLICATE, packet.ivorn, "known already")

    async def _refuse(self, reason: str, ivorn: str | None, words: str) -> Outcome:
        await asyncio.wrap_future(self._book.post(self._tally.reject(reason)))
        return Outcome(reason, ivorn, words)

    async def _refuse_unread(self, reason: str, words: str, host: str, params: Params) -> bytes | None:
        return self._say(await self._refuse(reason, None, words), host, params)

    async def _refuse_rest(
        self,
        error: FrameError | ContainerError,
        visit: "_Visit",
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._drop(writer, "frame", error)
        length = error.length if isinstance(error, FrameError) else 0
        if length is None:  # he hung up halfway: there is no event and nobody to tell
            return
        reason = "too-large" if length else "invalid"
        await visit.answers.promise(self._refuse_unread(reason, str(error), visit.host, visit.offer))
        await visit.answers.finish()
        if writer.can_write_eof():  # TLS has no such thing
            writer.write_eof()
        try:
            async with asyncio.timeout(LINGER):
                while await reader.read(1 << 16):
                    pass
        except TimeoutError:
            pass


@dataclass(frozen=True)
class _Visit:
    """One connection: where from, and what is to be answered on it."""

    host: str
    answers: Answers

    @property
    def offer(self) -> Params:
        """What the next answer says of bulk submission: the first one offers it."""
        return () if self.answers.promised else OFFER
