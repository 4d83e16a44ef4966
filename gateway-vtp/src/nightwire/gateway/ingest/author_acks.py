"""Broker to authors: an event in, an ack or a nak out, and no ack for what Kafka does not have."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from nightwire.core.kafka import DeliveryError
from nightwire.gateway.ingest.author_protocol import AuthorProtocol, UnreadableDocument
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


@dataclass(frozen=True)
class SubmissionOutcome:
    """What became of a document.

    Attributes:
        name: What it is counted as: accepted, duplicate, failed, or the reason of a refusal.
        ivorn: The event's identifier, where that could be read.
        explanation: Why it is refused, for its author and the log.
    """

    name: str
    ivorn: str | None
    explanation: str = ""


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

    def protocol(self, on_close: Callable[[], None]) -> AuthorProtocol:
        """Return the protocol of one connection; *on_close* is called when it is gone."""
        limits, now = self._settings.limits, asyncio.get_running_loop().time()
        deadline = MessageDeadline(self._settings.timeout, limits.frame_timeout, now)
        return AuthorProtocol(self, deadline, self._settings.max_frame, limits.last_bytes, on_close)

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

    def _written(
        self,
        packet: Packet,
        arrived: float,
        done: Callable[[SubmissionOutcome], None],
        new: bool | DeliveryError,
    ) -> None:
        if isinstance(new, DeliveryError):
            log.error("%s is not in Kafka and not acknowledged: %s", packet.ivorn, new)
            done(SubmissionOutcome(FAILED, packet.ivorn, str(new)))
            return
        self._intake.metrics.acknowledged_seconds.observe(time.perf_counter() - arrived)
        if new:
            done(SubmissionOutcome(ACCEPTED, packet.ivorn))
        else:
            self._refuse(DUPLICATE, packet.ivorn, "known already", done)

    def _refuse(
        self,
        reason: str,
        ivorn: str | None,
        explanation: str,
        done: Callable[[SubmissionOutcome], None],
    ) -> None:
        """Account for a refusal; *done* is called once Kafka has the account."""
        outcome = SubmissionOutcome(reason, ivorn, explanation)
        self._intake.reject(reason).add_done_callback(lambda _: done(outcome))

    def _answer(self, host: str, reply: AnswerCallback, params: Params, outcome: SubmissionOutcome) -> None:
        """Answer an author at *host*: nothing where Kafka failed, for then he sends it again."""
        self._intake.count(outcome.name)
        refusal = None if outcome.name in (ACCEPTED, DUPLICATE) else outcome.explanation
        self._status.from_author(host, outcome.name, outcome.ivorn, refusal)
        if refusal is not None:
            log.info("author %s is refused %s (%s): %s", host, outcome.ivorn or "", outcome.name, refusal)
        if outcome.name == FAILED:
            reply(None)
        elif refusal is not None:
            reply(encode_now(nak(outcome.ivorn, self._ivoid, refusal, params)))
        else:
            reply(encode_now(ack(outcome.ivorn or "", self._ivoid, outcome.explanation or None, params)))
