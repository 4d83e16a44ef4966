"""Subscriber to remote brokers: their events into our log, and an ack once Kafka has them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from nightwire.core.runtime import Backoff
from nightwire.gateway.eventlog.deduplicator import retry_until_written
from nightwire.gateway.ingest.intake import EventIntake
from nightwire.gateway.ingest.settings import UpstreamSettings
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.limits import FloodError, TokenBucket
from nightwire.gateway.net.memory import MemoryExceededError
from nightwire.gateway.net.tls import client_context
from nightwire.gateway.signing.signing_key import SigningKey
from nightwire.gateway.status.model import StatusModel
from nightwire.gateway.voevent.packet import Packet
from nightwire.gateway.voevent.validation import InvalidEventError, broker_packet, native_packet
from nightwire.gateway.voevent.xml import XMLRefusedError
from nightwire.gateway.vtp.conversation import PendingAnswers, SilenceError, SlownessError, messages
from nightwire.gateway.vtp.frames import FrameError, encode_frame
from nightwire.gateway.vtp.session import MAX_ECHO, UpstreamSession, ack, encode_now
from nightwire.gateway.vtp.transport import AUTHENTICATE, NAK, Transport, transport_in

log = logging.getLogger(__name__)

GOOD_AFTER = 5.0
"""A connection that lasted so long resets the back-off. [s]"""
ORIGIN = "broker:"
"""Prefix of the origin of their events in the log; their address follows."""
REASONS_TO_LEAVE = (OSError, FrameError, SilenceError, FloodError, MemoryExceededError)
CONNECT_TIMEOUT = 10.0  # [s]


class UpstreamService:
    """Our connections to remote brokers.

    Args:
        ivoid: Of this gateway.
        settings: The brokers, and what they are asked for.
        intake: Where their events go.
        status: Shows the connections.
        signing_key: Signs our answers to `authenticate`; None where we have no key.
    """

    def __init__(
        self,
        ivoid: str,
        settings: UpstreamSettings,
        intake: EventIntake,
        status: StatusModel,
        signing_key: SigningKey | None = None,
    ) -> None:
        self._ivoid, self._settings, self._intake = ivoid, settings, intake
        self._status, self._signing_key = status, signing_key
        self._tls = client_context(settings.tls)
        self._session = UpstreamSession(ivoid, settings.filters, settings.max_frame)
        self._to_replay = set(settings.remotes) if settings.replay else set[Address]()

    async def follow(self, remote: Address) -> None:
        """Stay connected to *remote*, for ever."""
        self._note_link(remote, connected=False)
        clock = asyncio.get_running_loop()
        backoff = Backoff(1.0, 60.0, growth=1.5, spread=(1.0, 1.2))
        while True:
            began = clock.time()
            reason = await self._connect_once(remote)
            self._note_link(remote, connected=False, reason=reason)
            if clock.time() - began > GOOD_AFTER:
                backoff.reset()
            pause = backoff.next()
            log.info("remote broker %s: %s; connecting again in %.0f s", remote, reason, pause)
            await asyncio.sleep(pause)

    async def _connect_once(self, remote: Address) -> str:
        """Connect and listen until the connection ends; return why it did."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                tls = self._tls if remote.tls else None
                reader, writer = await asyncio.open_connection(remote.host, remote.port, ssl=tls)
        except (OSError, TimeoutError, UnicodeError) as error:  # of a name that is none
            return f"cannot connect ({error or 'no answer'})"
        log.info("remote broker %s: connected", remote)
        self._note_link(remote, connected=True)
        with self._intake.metrics.connections.labels("broker").track_inprogress():
            try:
                await self._listen(remote, reader, writer)
            except REASONS_TO_LEAVE as error:
                self._intake.count_dropped(_reason(error))
                return str(error)
            finally:
                writer.close()
        return "it hung up"

    def _note_link(self, remote: Address, *, connected: bool, reason: str | None = None) -> None:
        self._status.remote(str(remote), connected=connected, reason=reason)
        self._intake.metrics.remote_up.labels(str(remote)).set(connected)

    async def _listen(
        self, remote: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        answers, unasked, clock = PendingAnswers(writer), TokenBucket(), asyncio.get_running_loop()
        with ExitStack() as stack:
            stack.callback(answers.cancel)
            hold = stack.enter_context(self._intake.memory.sender(remote.host, reader.set_exception))
            async for message in self._messages(reader, hold):
                packet = native_packet(message, self._settings.max_depth)
                if packet is None and self._answer_transport(remote, message, writer):
                    unasked.take(len(message), clock.time())
                else:
                    await self._take_event(packet or message, f"{ORIGIN}{remote}", answers)

    def _messages(self, reader: asyncio.StreamReader, hold: Callable[[int], None]) -> AsyncIterator[bytes]:
        settings = self._settings
        return messages(
            reader,
            max_length=settings.max_frame,
            timeout=settings.timeout,
            frame_timeout=settings.frame_timeout,
            hold=hold,
        )

    def _answer_transport(self, remote: Address, document: bytes, writer: asyncio.StreamWriter) -> bool:
        """Answer *document* at once if it is a Transport message; say whether it is one."""
        try:
            message = transport_in(document)
        except XMLRefusedError:
            return False
        if message is None:
            return False
        answer = self._answer(remote, message)
        if answer is not None:
            writer.write(encode_frame(self._signed(answer)))
        return True

    def _answer(self, remote: Address, message: Transport) -> Transport | None:
        """Return our answer; that to the first greeting of *remote* asks for a replay."""
        if message.role == NAK:  # of our filters
            log.warning("remote broker %s: %s", remote, (message.result or "")[:MAX_ECHO])
        if message.role == AUTHENTICATE and remote in self._to_replay:
            self._to_replay.remove(remote)  # from now on it knows what we acknowledged
            return replace(self._session, replay=self._settings.replay).answer(message)
        return self._session.answer(message)

    def _signed(self, answer: Transport) -> bytes:
        document, key = encode_now(answer), self._signing_key
        return key.sign(document) if key and answer.role == AUTHENTICATE else document

    async def _take_event(self, event: Packet | bytes, origin: str, answers: PendingAnswers) -> None:
        try:
            depth = self._settings.max_depth
            packet = event if isinstance(event, Packet) else broker_packet(event, depth)
        except InvalidEventError as error:
            self._intake.count_unread(error)
            log.info("%s sent what is no event: %s", origin, error)
            self._count(origin, "invalid")
            self._intake.reject("invalid")
        else:
            refusal = self._intake.requirement.refusal(packet)
            await answers.promise(
                self._accept(packet, origin) if refusal is None else self._refuse(packet, origin, refusal)
            )

    async def _refuse(self, packet: Packet, origin: str, refusal: str) -> bytes:
        """Acknowledge *packet* without taking it: a nak would make a Comet broker hang up."""
        log.info("%s is not taken: %s", packet.ivorn, refusal)
        self._count(origin, "unsigned", packet.ivorn)
        self._intake.reject("unsigned")
        return encode_now(ack(packet.ivorn, self._ivoid, f"not taken: {refusal}"))

    async def _accept(self, packet: Packet, origin: str) -> bytes:
        """Write *packet* to the log, however long Kafka is away; return the ack."""
        new = await retry_until_written(
            partial(self._intake.deduplicator.admit, packet, origin), f"{packet.ivorn} from {origin}"
        )
        if not new:
            await self._intake.reject("duplicate")
        self._count(origin, "accepted" if new else "duplicate", packet.ivorn)
        return encode_now(ack(packet.ivorn, self._ivoid))

    def _count(self, origin: str, outcome: str, ivorn: str | None = None) -> None:
        self._status.from_remote(origin.removeprefix(ORIGIN), outcome, ivorn)
        self._intake.count(outcome)


def _reason(error: Exception) -> str:
    """Return why a connection ended, as the metrics name it."""
    if isinstance(error, SlownessError):
        return "slow"
    if isinstance(error, SilenceError):
        return "silent"
    named = {FrameError: "frame", FloodError: "flood", MemoryExceededError: "memory"}
    return named.get(type(error), "lost")
