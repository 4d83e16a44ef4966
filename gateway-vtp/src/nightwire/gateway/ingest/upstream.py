"""Subscriber to remote brokers: their events into our log, and an ack once they are there."""

import asyncio
import logging
import random
from dataclasses import replace
from functools import partial

from nightwire.gateway.eventlog.accounts import AccountWriter, RejectionCounter
from nightwire.gateway.eventlog.deduplicator import Deduplicator, retry_while_unavailable
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.tls import client_context
from nightwire.gateway.settings.gateway import Settings
from nightwire.gateway.signing.requirements import SignatureRequirement
from nightwire.gateway.signing.signing_key import SigningKey
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.status.model import StatusModel
from nightwire.gateway.voevent.packet import Packet
from nightwire.gateway.voevent.validation import InvalidEventError, broker_packet, native_packet
from nightwire.gateway.voevent.xml import XMLRefusedError
from nightwire.gateway.vtp.conversation import PendingAnswers, SilenceError, SlownessError, messages
from nightwire.gateway.vtp.frames import FrameError, encode_frame
from nightwire.gateway.vtp.session import MAX_ECHO, UpstreamSession, ack, encode_now
from nightwire.gateway.vtp.transport import AUTHENTICATE, NAK, Transport, transport_in

log = logging.getLogger(__name__)

FIRST_DELAY, LONGEST_DELAY, GROWTH = 1.0, 60.0, 1.5
"""Back-off between attempts to connect. [s]"""
GOOD_AFTER = 5.0
"""A connection that lasted so long resets the back-off. [s]"""
ORIGIN = "broker:"
"""What the origin of their events in the log begins with; their address follows."""
CONNECT_TIMEOUT = 10.0  # [s]


class UpstreamService:
    """Our connections to remote brokers.

    Args:
        settings: The gateway's.
        admission: The way into the log.
        book: Where accounts go.
        tally: Counts what is not admitted.
        metrics: The process's metrics.
        demand: What events have to prove.
        board: What the status page shows.
        signing: Signs our answers to `authenticate`; None where we have no key.
    """

    def __init__(
        self,
        settings: Settings,
        admission: Deduplicator,
        book: AccountWriter,
        tally: RejectionCounter,
        metrics: GatewayMetrics,
        demand: SignatureRequirement,
        board: StatusModel,
        signing: SigningKey | None = None,
    ) -> None:
        self._settings, self._admission, self._demand, self._signing = settings, admission, demand, signing
        self._board = board
        self._tls = client_context(settings.doors.tls)
        self._book, self._tally, self._metrics = book, tally, metrics
        self._we = UpstreamSession(settings.ivorn, settings.remote_filters, settings.max_frame)
        self._new = set(settings.remotes) if settings.remote_replay else set[Address]()

    async def follow(self, remote: Address) -> None:
        """Stay connected to *remote*, for ever."""
        self._note(remote, connected=False)
        clock, delay = asyncio.get_running_loop(), FIRST_DELAY
        while True:
            began = clock.time()
            reason = await self._once(remote)
            self._note(remote, connected=False, reason=reason)
            if clock.time() - began > GOOD_AFTER:
                delay = FIRST_DELAY
            log.info("remote broker %s: %s; connecting again in %.0f s", remote, reason, delay)
            await asyncio.sleep(delay * random.uniform(1, 1.2))  # noqa: S311  (spreads reconnections)
            delay = min(delay * GROWTH, LONGEST_DELAY)

    async def _once(self, remote: Address) -> str:
        """Connect and listen until the connection ends; return why it did."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                tls = self._tls if remote.tls else None
                reader, writer = await asyncio.open_connection(remote.host, remote.port, ssl=tls)
        except (OSError, TimeoutError) as error:
            return f"cannot connect ({error or 'no answer'})"
        log.info("remote broker %s: connected", remote)
        self._note(remote, connected=True)
        with self._metrics.connections.labels("broker").track_inprogress():
            try:
                await self._listen(remote, reader, writer)
            except (OSError, FrameError, SilenceError) as error:
                self._metrics.dropped.labels("broker", _reason(error)).inc()
                return str(error)
            finally:
                writer.close()
        return "it hung up"

    def _note(self, remote: Address, *, connected: bool, reason: str | None = None) -> None:
        self._board.remote(str(remote), connected=connected, reason=reason)
        self._metrics.remote_up.labels(str(remote)).set(connected)

    async def _listen(
        self, remote: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        answers = PendingAnswers(writer)
        incoming = messages(
            reader,
            max_length=self._settings.max_frame,
            timeout=self._settings.remote_timeout,
            frame_timeout=self._settings.doors.limits.frame_timeout,
        )
        try:
            async for message in incoming:
                packet = native_packet(message, self._settings.doors.max_depth)
                if packet is not None or not self._answer_transport(remote, message, writer):
                    await self._take(packet or message, f"{ORIGIN}{remote}", answers)
        finally:
            answers.cancel()

    def _answer_transport(self, remote: Address, message: bytes, writer: asyncio.StreamWriter) -> bool:
        """Answer *message* at once if it is no event; say whether that was so."""
        try:
            told = transport_in(message)
        except XMLRefusedError:
            return False
        if told is None:
            return False
        answer = self._answer(remote, told)
        if answer is not None:
            writer.write(encode_frame(self._signed(answer)))
        return True

    def _answer(self, remote: Address, message: Transport) -> Transport | None:
        """Return what to say; the first time that *remote* greets us we ask for what was before."""
        if message.role == NAK:
            log.warning("remote broker %s: %s", remote, (message.result or "")[:MAX_ECHO])  # of our filters
        if message.role == AUTHENTICATE and remote in self._new:
            self._new.remove(remote)  # from now on it knows how far we got
            return replace(self._we, back=self._settings.remote_replay).answer(message)
        return self._we.answer(message)

    def _signed(self, answer: Transport) -> bytes:
        document = encode_now(answer)
        return self._signing.sign(document) if self._signing and answer.role == AUTHENTICATE else document

    async def _take(self, found: Packet | bytes, origin: str, answers: PendingAnswers) -> None:
        try:
            depth = self._settings.doors.max_depth
            packet = found if isinstance(found, Packet) else broker_packet(found, depth)
        except InvalidEventError as error:
            if error.kind is not None:
                self._metrics.documents_refused.labels("broker", error.kind.value).inc()
            log.info("%s sent what is no event: %s", origin, error)
            self._count(origin, "invalid")
            self._book.post(self._tally.reject("invalid"))
        else:
            refusal = self._demand.refusal(packet)
            await answers.promise(
                self._judge(packet, origin) if refusal is None else self._refuse(packet, origin, refusal)
            )

    async def _refuse(self, packet: Packet, origin: str, refusal: str) -> bytes:
        """Do not take *packet*, but acknowledge it: a nak would end the connection to a Comet broker."""
        log.info("%s is not taken: %s", packet.ivorn, refusal)
        self._count(origin, "unsigned", packet.ivorn)
        self._book.post(self._tally.reject("unsigned"))
        return encode_now(ack(packet.ivorn, self._settings.ivorn, f"not taken: {refusal}"))

    async def _judge(self, packet: Packet, origin: str) -> bytes:
        new = await retry_while_unavailable(
            partial(self._admission.admit, packet, origin), f"{packet.ivorn} from {origin}"
        )
        if not new:
            await asyncio.wrap_future(self._book.post(self._tally.reject("duplicate")))
        self._count(origin, "accepted" if new else "duplicate", packet.ivorn)
        return encode_now(ack(packet.ivorn, self._settings.ivorn))

    def _count(self, origin: str, outcome: str, ivorn: str | None = None) -> None:
        self._board.from_remote(origin.removeprefix(ORIGIN), outcome, ivorn)
        self._metrics.received.labels("broker", outcome).inc()


def _reason(error: Exception) -> str:
    """Return why a connection ended, as the metrics name it."""
    if isinstance(error, SlownessError):
        return "slow"
    if isinstance(error, SilenceError):
        return "silent"
    return "frame" if isinstance(error, FrameError) else "lost"
