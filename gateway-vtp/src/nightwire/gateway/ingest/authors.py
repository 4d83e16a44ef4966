"""Broker to authors: an event in, an ack or a nak out, and never an ack for what Kafka does not have."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from nightwire.core.kafka import DeliveryError
from nightwire.gateway.eventlog.accounts import AccountWriter, RejectionCounter
from nightwire.gateway.eventlog.deduplicator import Deduplicator
from nightwire.gateway.ingest.author_protocol import AuthorProtocol, UnreadableDocument
from nightwire.gateway.net.limits import MemoryBudget
from nightwire.gateway.settings.gateway import Settings
from nightwire.gateway.signing.requirements import SignatureRequirement
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.status.model import StatusModel
from nightwire.gateway.voevent.packet import Packet
from nightwire.gateway.voevent.validation import InvalidEventError, author_packet
from nightwire.gateway.vtp.bulk import OFFER
from nightwire.gateway.vtp.container import open_container
from nightwire.gateway.vtp.conversation import AnswerCallback, MessageDeadline
from nightwire.gateway.vtp.session import Params, ack, encode_now, nak

log = logging.getLogger(__name__)

ACCEPTED, DUPLICATE, FAILED = "accepted", "duplicate", "failed"
CONTAINERS = 4
"""Containers that are read at the same time; each may be unpacked in memory."""


@dataclass(frozen=True)
class SubmissionOutcome:
    """What became of a document.

    Attributes:
        name: What it is counted as: accepted, duplicate, failed, or the reason of a refusal.
        ivorn: What the event is called, where that could be read.
        words: What its author is told besides.
    """

    name: str
    ivorn: str | None
    words: str = ""


class AuthorService:
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
        admission: Deduplicator,
        book: AccountWriter,
        tally: RejectionCounter,
        metrics: GatewayMetrics,
        demand: SignatureRequirement,
        intake: MemoryBudget,
        board: StatusModel,
    ) -> None:
        self.intake, self._board = intake, board
        self._settings, self._admission, self._demand = settings, admission, demand
        self._book, self._tally, self._metrics = book, tally, metrics
        self._containers = asyncio.Semaphore(CONTAINERS)
        self._received = {name: metrics.received.labels("author", name) for name in (ACCEPTED, DUPLICATE)}

    def line(self, left: Callable[[], None]) -> AuthorProtocol:
        """Return what speaks with one author; *left* is called when he is gone."""
        limits, now = self._settings.doors.limits, asyncio.get_running_loop().time()
        patience = MessageDeadline(self._settings.author_timeout, limits.frame_timeout, now)
        return AuthorProtocol(self, patience, self._settings.max_frame, limits.last_bytes, left)

    def decide(
        self, document: bytes | UnreadableDocument, host: str, tell: AnswerCallback, *, first: bool
    ) -> None:
        """Begin to deal with *document*, and *tell* the answer once it is known; the *first* offers more."""
        done = partial(self._answer, host, tell, OFFER if first else ())
        if isinstance(document, UnreadableDocument):
            self._refuse(document.reason, None, document.words, done)
            return
        arrived = time.perf_counter()
        try:
            packet = author_packet(document, self._settings.doors.max_depth)
        except InvalidEventError as error:
            if error.kind is not None:
                self._metrics.documents_refused.labels("author", error.kind.value).inc()
            self._refuse("invalid", error.ivorn, str(error), done)
            return
        if (refusal := self._demand.refusal(packet)) is not None:
            self._refuse("unsigned", packet.ivorn, refusal, done)
        else:
            self._admission.begin(packet, "author", partial(self._admitted, packet, arrived, done))

    async def opened(self, container: bytes) -> Iterator[bytes]:
        """Unpack *container*; return its documents, each taken from it when asked for.

        Raises:
            ContainerError: It is broken, or too large.
        """
        async with self._containers:
            return await asyncio.to_thread(open_container, container, self._settings.max_frame)

    def dropped(self, peer: str, reason: str, why: Exception) -> None:
        """Note that the connection from *peer* is ended, and why."""
        self._metrics.dropped.labels("author", reason).inc()
        log.info("author %s is disconnected: %s", peer, why)

    def _admitted(
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
        self._metrics.acknowledged_seconds.observe(time.perf_counter() - arrived)
        if new:
            done(SubmissionOutcome(ACCEPTED, packet.ivorn))
        else:
            self._refuse(DUPLICATE, packet.ivorn, "known already", done)

    def _refuse(
        self, reason: str, ivorn: str | None, words: str, done: Callable[[SubmissionOutcome], None]
    ) -> None:
        """Count it, and be done once Kafka has the account."""
        outcome = SubmissionOutcome(reason, ivorn, words)
        posted = asyncio.wrap_future(self._book.post(self._tally.reject(reason)))
        posted.add_done_callback(lambda _: done(outcome))

    def _answer(self, host: str, tell: AnswerCallback, params: Params, outcome: SubmissionOutcome) -> None:
        """Tell an author at *host* what became of his event."""
        taken = self._received.get(outcome.name)
        refusal = outcome.words if taken is None else None
        (taken or self._metrics.received.labels("author", outcome.name)).inc()
        self._board.from_author(host, outcome.name, outcome.ivorn, refusal)
        if refusal is not None:
            log.info("author %s is refused %s (%s): %s", host, outcome.ivorn or "", outcome.name, refusal)
        tell(None if outcome.name == FAILED else self._said(outcome, params, refused=refusal is not None))

    def _said(self, outcome: SubmissionOutcome, params: Params, *, refused: bool) -> bytes:
        if refused:
            return encode_now(nak(outcome.ivorn, self._settings.ivorn, outcome.words, params))
        return encode_now(ack(outcome.ivorn or "", self._settings.ivorn, outcome.words or None, params))
