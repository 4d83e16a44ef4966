"""What is said on a VTP connection: messages in, decisions out.  No sockets, no Kafka.

`Subscriber` is our side of a connection from a subscriber, `Upstream` of our own connection to a remote
broker.  Times are given in seconds of any clock that only goes forward.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from nightwire.gateway._filters import FilterList, read_filters
from nightwire.gateway._plain import plain_transport
from nightwire.gateway._reach import Reach
from nightwire.gateway._ring import Event
from nightwire.gateway._transport import (
    ACK,
    AUTHENTICATE,
    IAMALIVE,
    NAK,
    Transport,
    encode_transport,
    transport_in,
)
from nightwire.gateway._xml import XMLRefusedError

Params = tuple[tuple[str, str], ...]
"""Names and values in the Meta of a message."""
MAX_ECHO = 1000
"""How much of an expression is said back. [character]"""
MAX_FRAME_PARAM, REPLAY_PARAM = "max-frame", "replay"
"""Meta Params of a subscriber's messages: the longest event that it takes [byte], and how far back it wants
to begin [s].  Brokers that do not know them pass them over."""


@dataclass
class Subscriber:
    """A subscriber, from our side.

    Attributes:
        filters: What it wants to see.
        heard: When it last said something. [s]
        reach: What was sent to it and what it answered.
        name: IVOID that it gave, if any.
        sent: Events sent to it.
        acked: Of these, acknowledged.
        naked: Of these, refused.
        takes: Longest event that it said it takes [byte]; None where it did not say.
        back: How far back it asked to begin [s]; None where it did not ask.
    """

    filters: FilterList
    heard: float
    reach: Reach = field(default_factory=lambda: Reach({}))
    name: str | None = None
    sent: int = 0
    acked: int = 0
    naked: int = 0
    takes: int | None = None
    back: float | None = None

    @property
    def unacked(self) -> int:
        """How many events were sent and not answered."""
        return self.sent - self.acked - self.naked

    def event_sent(self, event: Event) -> None:
        """Note that an event went out."""
        self.sent += 1
        self.reach.sent(event)

    def receive(self, document: bytes, now: float) -> FilterList | None:
        """Take a message; return the new filters where it set some.

        Raises:
            XMLRefusedError: It is no Transport message.
        """
        message = plain_transport(document) or transport_in(document)
        if message is None:
            raise XMLRefusedError("a subscriber sends Transport messages only")
        self.heard = now
        self.name = message.response or self.name
        if message.role in (ACK, NAK) and self.reach.answered(message.origin):
            self.acked += message.role == ACK
            self.naked += message.role == NAK
        if message.role in (AUTHENTICATE, IAMALIVE):
            self._read_params(message)
        if message.role != AUTHENTICATE:
            return None
        self.filters = read_filters(message.xpath_filters)
        return self.filters

    def silent_for(self, now: float) -> float:
        """Return how long the peer has said nothing at all. [s]"""
        return now - self.heard

    def _read_params(self, message: Transport) -> None:
        """Note what it says of itself; what is no number is passed over."""
        said = dict(message.params)
        if (longest := said.get(MAX_FRAME_PARAM, "")).isdecimal():
            self.takes = int(longest)
        if (back := said.get(REPLAY_PARAM, "")).isdecimal():
            self.back = float(back)


@dataclass(frozen=True)
class Upstream:
    """Our own side of a connection to a remote broker.

    Attributes:
        ivoid: Who we are.
        filters: XPath expressions that we ask it for.
        takes: Longest event that we take; 0 says nothing of it. [byte]
        back: How far back we want to begin; 0 says nothing of it. [s]
    """

    ivoid: str
    filters: Sequence[str] = ()
    takes: int = 0
    back: float = 0.0

    def answer(self, message: Transport) -> Transport | None:
        """Return what to say to *message*, if anything."""
        if message.role == IAMALIVE:
            return Transport(IAMALIVE, message.origin, self.ivoid)
        if message.role == AUTHENTICATE:
            return Transport(AUTHENTICATE, message.origin, self.ivoid, params=tuple(self._params()))
        return None

    def _params(self) -> Iterator[tuple[str, str]]:
        yield from (("xpath-filter", text) for text in self.filters)
        if self.takes:
            yield MAX_FRAME_PARAM, str(self.takes)
        if self.back:
            yield REPLAY_PARAM, str(round(self.back))


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
