"""Broker to authors: an event in, an ack or a nak out, and never an ack for what Kafka does not have."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from nightwire.core.kafka import DeliveryError
from nightwire.gateway._admission import Admission
from nightwire.gateway._author_line import AuthorLine, Unread
from nightwire.gateway._board import Board
from nightwire.gateway._book import AccountBook, Tally
from nightwire.gateway._bulk import OFFER
from nightwire.gateway._container import open_container
from nightwire.gateway._conversation import Patience
from nightwire.gateway._demands import EventDemand
from nightwire.gateway._in_order import Tell
from nightwire.gateway._limits import Intake
from nightwire.gateway._metrics import GatewayMetrics
from nightwire.gateway._session import Params, ack, nak, say
from nightwire.gateway._settings import Settings
from nightwire.gateway._validation import InvalidEventError, author_packet
from nightwire.gateway._voevent import Packet

log = logging.getLogger(__name__)

ACCEPTED, DUPLICATE, FAILED = "accepted", "duplicate", "failed"
CONTAINERS = 4
"""Containers that are read at the same time; each may be unpacked in memory."""


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
        self.intake, self._board = intake, board
        self._settings, self._admission, self._demand = settings, admission, demand
        self._book, self._tally, self._metrics = book, tally, metrics
        self._containers = asyncio.Semaphore(CONTAINERS)
        self._received = {name: metrics.received.labels("author", name) for name in (ACCEPTED, DUPLICATE)}

    def line(self, left: Callable[[], None]) -> AuthorLine:
        """Return what speaks with one author; *left* is called when he is gone."""
        limits, now = self._settings.doors.limits, asyncio.get_running_loop().time()
        patience = Patience(self._settings.author_timeout, limits.frame_timeout, now)
        return AuthorLine(self, patience, self._settings.max_frame, limits.last_bytes, left)

    def decide(self, document: bytes | Unread, host: str, tell: Tell, *, first: bool) -> None:
        """Begin to deal with *document*, and *tell* the answer once it is known; the *first* offers more."""
        done = partial(self._answer, host, tell, OFFER if first else ())
        if isinstance(document, Unread):
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
        self, packet: Packet, arrived: float, done: Callable[[Outcome], None], new: bool | DeliveryError
    ) -> None:
        if isinstance(new, DeliveryError):
            log.error("%s is not in Kafka and not acknowledged: %s", packet.ivorn, new)
            done(Outcome(FAILED, packet.ivorn, str(new)))
            return
        self._metrics.acknowledged_seconds.observe(time.perf_counter() - arrived)
        if new:
            done(Outcome(ACCEPTED, packet.ivorn))
        else:
            self._refuse(DUPLICATE, packet.ivorn, "known already", done)

    def _refuse(self, reason: str, ivorn: str | None, words: str, done: Callable[[Outcome], None]) -> None:
        """Count it, and be done once Kafka has the account."""
        outcome = Outcome(reason, ivorn, words)
        posted = asyncio.wrap_future(self._book.post(self._tally.reject(reason)))
        posted.add_done_callback(lambda _: done(outcome))

    def _answer(self, host: str, tell: Tell, params: Params, outcome: Outcome) -> None:
        """Tell an author at *host* what became of his event."""
        taken = self._received.get(outcome.name)
        refusal = outcome.words if taken is None else None
        (taken or self._metrics.received.labels("author", outcome.name)).inc()
        self._board.from_author(host, outcome.name, outcome.ivorn, refusal)
        if refusal is not None:
            log.info("author %s is refused %s (%s): %s", host, outcome.ivorn or "", outcome.name, refusal)
        tell(None if outcome.name == FAILED else self._said(outcome, params, refused=refusal is not None))

    def _said(self, outcome: Outcome, params: Params, *, refused: bool) -> bytes:
        if refused:
            return say(nak(outcome.ivorn, self._settings.ivorn, outcome.words, params))
        return say(ack(outcome.ivorn or "", self._settings.ivorn, outcome.words or None, params))
