"""Broker to authors: an event in, an ack or a nak out, and never an ack for what Kafka does not have."""

import asyncio
import logging
import time
from functools import partial

from nightwire.core.kafka import DeliveryError
from nightwire.gateway._admission import Admission
from nightwire.gateway._book import AccountBook, Tally
from nightwire.gateway._conversation import Answers, SilenceError, SlownessError, messages
from nightwire.gateway._demands import EventDemand
from nightwire.gateway._frames import FrameError
from nightwire.gateway._limits import Intake, TooMuchUnfinishedError
from nightwire.gateway._metrics import GatewayMetrics
from nightwire.gateway._server import peer_name
from nightwire.gateway._session import ack, nak, say
from nightwire.gateway._settings import Settings
from nightwire.gateway._validation import InvalidEventError, author_packet
from nightwire.gateway._voevent import Packet

log = logging.getLogger(__name__)

LINGER = 2.0
"""Longest time that a refused author is listened to, so that he reads why before the connection ends. [s]"""


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
    ) -> None:
        self._intake = intake
        self._settings, self._admission, self._demand = settings, admission, demand
        self._book, self._tally, self._metrics = book, tally, metrics

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take events until the author hangs up or stops sending; several may be on their way at once."""
        answers = Answers(writer)
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
                await answers.promise(await self._intake.take(len(message), self._judge(message)))
            await answers.finish()
        except FrameError as error:
            await self._refuse_frame(error, answers, reader, writer)
        except SilenceError as error:
            self._drop(writer, "slow" if isinstance(error, SlownessError) else "silent", error)
        except TooMuchUnfinishedError as error:
            self._drop(writer, "memory", error)
        finally:
            answers.cancel()

    def _drop(self, writer: asyncio.StreamWriter, reason: str, error: Exception) -> None:
        self._metrics.dropped.labels("author", reason).inc()
        log.info("author %s is disconnected: %s", peer_name(writer), error)

    async def _judge(self, document: bytes) -> bytes | None:
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
            self._count("failed")
            return None
        self._metrics.acknowledged_seconds.observe(time.perf_counter() - arrived)
        return await self._accept(packet, new)

    async def _accept(self, packet: Packet, new: bool) -> bytes:
        if not new:
            await asyncio.wrap_future(self._book.post(self._tally.reject("duplicate")))
        self._count("accepted" if new else "duplicate")
        return say(ack(packet.ivorn, self._settings.ivorn, None if new else "known already"))

    async def _refuse(self, reason: str, ivorn: str | None, words: str) -> bytes:
        await asyncio.wrap_future(self._book.post(self._tally.reject(reason)))
        self._count(reason)
        return say(nak(ivorn, self._settings.ivorn, words))

    async def _refuse_frame(
        self,
        error: FrameError,
        answers: Answers,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._drop(writer, "frame", error)
        if error.length is None:  # he hung up halfway: there is no event and nobody to tell
            return
        await answers.promise(self._refuse("too-large" if error.length else "invalid", None, str(error)))
        await answers.finish()
        if writer.can_write_eof():  # TLS has no such thing
            writer.write_eof()
        try:
            async with asyncio.timeout(LINGER):
                while await reader.read(1 << 16):
                    pass
        except TimeoutError:
            pass

    def _count(self, outcome: str) -> None:
        self._metrics.received.labels("author", outcome).inc()
