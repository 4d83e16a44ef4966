"""What is said on a VTP connection: messages in, decisions out.  No sockets, no Kafka.

`Subscriber` is our side of a connection from a subscriber, `Upstream` of our own connection to a remote
broker.  Times are given in seconds of any clock that only goes forward.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from nightwire.gateway._filters import FilterList, read_filters
from nightwire.gateway._transport import (
    ACK,
    AUTHENTICATE,
    IAMALIVE,
    NAK,
    Transport,
    encode_transport,
    is_transport,
    read_transport,
)
from nightwire.gateway._xml import XMLRefusedError, parse_xml

Params = tuple[tuple[str, str], ...]
"""Names and values in the Meta of a message."""
MAX_ECHO = 1000
"""How much of an expression is said back. [character]"""
MAX_UNACKED = 10_000
"""Most events of one subscriber that are remembered as unacknowledged; beyond, the oldest is given up."""


@dataclass
class Subscriber:
    """A subscriber, from our side.

    Attributes:
        filters: What it wants to see.
        name: IVOID that it gave, if any.
        sent: Events sent to it.
        acked: Of these, acknowledged.
        naked: Of these, refused.
    """

    filters: FilterList
    heard: float
    name: str | None = None
    sent: int = 0
    acked: int = 0
    naked: int = 0
    too_large: int = 0

    def __post_init__(self) -> None:
        self._unacked: Counter[str] = Counter()
        self._order: deque[str] = deque()

    @property
    def unacked(self) -> int:
        """How many events were sent and not answered."""
        return self.sent - self.acked - self.naked

    def event_sent(self, ivorn: str) -> None:
        """Note that an event went out."""
        self.sent += 1
        self._unacked[ivorn] += 1
        self._order.append(ivorn)
        if len(self._order) > MAX_UNACKED:
            self._forget(self._order.popleft())

    def receive(self, document: bytes, now: float) -> FilterList | None:
        """Take a message; return the new filters where it set some.

        Raises:
            XMLRefusedError: It is no Transport message.
        """
        root = parse_xml(document)
        if not is_transport(root):
            raise XMLRefusedError("a subscriber sends Transport messages only")
        message = read_transport(root)
        self.heard = now
        self.name = message.response or self.name
        if message.role == AUTHENTICATE:
            self.filters = read_filters(message.xpath_filters)
            return self.filters
        if message.role in (ACK, NAK) and self._forget(message.origin):
            self.acked += message.role == ACK
            self.naked += message.role == NAK
        return None

    def silent_for(self, now: float) -> float:
        """Return how long the peer has said nothing at all. [s]"""
        return now - self.heard

    def _forget(self, ivorn: str) -> bool:
        if not self._unacked[ivorn]:
            del self._unacked[ivorn]  # an ack for what was never sent
            return False
        self._unacked[ivorn] -= 1
        if not self._unacked[ivorn]:
            del self._unacked[ivorn]
        while self._order and not self._unacked.get(self._order[0]):
            self._order.popleft()
        return True


@dataclass(frozen=True)
class Upstream:
    """Our own side of a connection to a remote broker.

    Attributes:
        ivoid: Who we are.
        filters: XPath expressions that we ask it for.
    """

    ivoid: str
    filters: Sequence[str] = ()

    def answer(self, message: Transport) -> Transport | None:
        """Return what to say to *message*, if anything."""
        if message.role == IAMALIVE:
            return Transport(IAMALIVE, message.origin, self.ivoid)
        if message.role == AUTHENTICATE:
            wanted = tuple(("xpath-filter", text) for text in self.filters)
            return Transport(AUTHENTICATE, message.origin, self.ivoid, params=wanted)
        return None


def ack(ivorn: str, ivoid: str, note: str | None = None, params: Params = ()) -> Transport:
    """Return the acknowledgement of the event *ivorn* by *ivoid*."""
    return Transport(ACK, ivorn, ivoid, note, params)


def nak(ivorn: str | None, ivoid: str, reason: str, params: Params = ()) -> Transport:
    """Return the refusal of the event *ivorn*, or of a message without one, by *ivoid*."""
    return Transport(NAK, ivorn or ivoid, ivoid, reason, params)


def filters_refused(ivoid: str, refused: Sequence[tuple[str, str]]) -> Transport:
    """Return what tells a subscriber which of its filters are not used, and why.

    A nak, which a subscriber does not get otherwise: Comet and pygcn log it and go on.
    """
    reasons = "; ".join(f"filter {text[:MAX_ECHO]}: {reason}" for text, reason in refused)
    params = tuple(("xpath-filter-refused", text[:MAX_ECHO]) for text, _ in refused)
    return Transport(NAK, ivoid, ivoid, reasons, params)


def say(message: Transport) -> bytes:
    """Return *message* as a document of now."""
    return encode_transport(message, datetime.now(UTC))
