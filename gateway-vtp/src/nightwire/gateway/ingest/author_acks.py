"""Broker to authors: an event in, an ack or a nak out, and no ack for what Kafka does not have."""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from nightwire.core.kafka import DeliveryError
from nightwire.gateway.ingest.author_protocol import AuthorProtocol, ConnectionCallback, UnreadableDocument
from nightwire.gateway.ingest.intake import EventIntake
from nightwire.gateway.ingest.settings import AuthorSettings
from nightwire.gateway.status.model import StatusModel
from nightwire.gateway.voevent.packet import Packet
from nightwire.gateway.voevent.validation import InvalidEventError, author_packet
from nightwire.gateway.vtp.bulk import OFFER
from nightwire.gateway.vtp.container import Container, open_container
from nightwire.gateway.vtp.conversation import AnswerCallback, MessageDeadline
from nightwire.gateway.vtp.session import Params, ack, encode_now, nak

log = logging.getLogger(__name__)

ACCEPTED, DUPLICATE, FAILED = "accepted", "duplicate", "failed"
MAX_CONTAINERS = 4
"""Containers that are read at the same time; each may be unpacked in memory."""

Done = Callable[[str, str | None, str], None]
"""Takes what became of a document: accepted, duplicate, failed, or the reason of a refusal; its
ivorn, where that could be read; and why it is refused, for its author and the log."""


class AuthorService:
    """Our side of connections from authors.

    Args:
        ivoid: Of this gateway.
        settings: Limits of connections and events.
        intake: Where events go.
        status: Shows what authors sent.
    """

    def __init__(
        self,
        ivoid: str,
        settings: AuthorSettings,
        intake: EventIntake,
        status: StatusModel,
    ) -> None:
        self.memory = intake.memory
        self._ivoid, self._settings, self._intake, self._status = ivoid, settings, intake, status
        self._containers = asyncio.Semaphore(MAX_CONTAINERS)

    def protocol(self, on_open: ConnectionCallback, on_close: ConnectionCallback) -> AuthorProtocol:
        """Return the protocol of one connection; it calls *on_open* and *on_close*."""
        limits, now = self._settings.limits, asyncio.get_running_loop().time()
        deadline = MessageDeadline(self._settings.timeout, limits.frame_timeout, now)
        max_frame = self._settings.max_frame
        return AuthorProtocol(self, deadline, max_frame, limits.last_bytes, on_open, on_close)

    def submit(
        self, document: bytes | UnreadableDocument, host: str, reply: AnswerCallback, *, first: bool
    ) -> None:
        """Begin to deal with *document*; *reply* takes the answer, now or later.

        The answer to the *first* document of a connection offers bulk submission.
        """
        done = partial(self._answer, host, reply, OFFER if first else ())
        if isinstance(document, UnreadableDocument):
            self._refuse(document.reason, None, document.explanation, done)
            return
        arrived = time.perf_counter()
        try:
            packet = author_packet(document, self._settings.max_depth)
        except InvalidEventError as error:
            self._intake.count_unread(error)
            self._refuse("invalid", error.ivorn, str(error), done)
            return
        if (refusal := self._intake.requirement.refusal(packet)) is not None:
            self._refuse("unsigned", packet.ivorn, refusal, done)
        else:
            written = partial(self._written, packet, arrived, done)
            self._intake.deduplicator.begin(packet, "author", written)

    async def unpack(self, container: bytes) -> Container:
        """Unpack *container*.

        Raises:
            ContainerError: It is broken, or too large.
        """
        async with self._containers:
            return await asyncio.to_thread(open_container, container, self._settings.max_frame)

    def disconnected(self, peer: str, reason: str, error: Exception) -> None:
        """Note that we end the connection from *peer*, and why."""
        self._intake.count_dropped(reason)
        log.info("author %s is disconnected: %s", peer, error)

    def _written(self, packet: Packet, arrived: float, done: Done, new: bool | DeliveryError) -> None:
        if isinstance(new, DeliveryError):
            log.error("%s is not in Kafka and not acknowledged: %s", packet.ivorn, new)
            done(FAILED, packet.ivorn, str(new))
            return
        self._intake.metrics.acknowledged_seconds.observe(time.perf_counter() - arrived)
        if new:
            done(ACCEPTED, packet.ivorn, "")
        else:
            self._refuse(DUPLICATE, packet.ivorn, "known already", done)

    def _refuse(self, reason: str, ivorn: str | None, explanation: str, done: Done) -> None:
        """Account for a refusal; *done* is called once Kafka has the account."""
        self._intake.reject(reason).add_done_callback(lambda _: done(reason, ivorn, explanation))

    def _answer(
        self,
        host: str,
        reply: AnswerCallback,
        params: Params,
        outcome: str,
        ivorn: str | None,
        explanation: str,
    ) -> None:
        """Answer an author at *host*: nothing where Kafka failed, for then he sends it again."""
        self._intake.count(outcome)
        refusal = None if outcome in (ACCEPTED, DUPLICATE) else explanation
        self._status.from_author(host, outcome, ivorn, refusal)
        if refusal is not None:
            log.info("author %s is refused %s (%s): %s", host, ivorn or "", outcome, refusal)
        if outcome == FAILED:
            reply(None)
        elif refusal is not None:
            reply(encode_now(nak(ivorn, self._ivoid, refusal, params)))
        else:
            reply(encode_now(ack(ivorn or "", self._ivoid, explanation or None, params)))
