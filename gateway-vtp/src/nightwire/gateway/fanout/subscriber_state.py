"""Part."""

from dataclasses import dataclass, field

from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.fanout.ack_tracker import AckTracker
from nightwire.gateway.voevent.xml import XMLRefusedError
from nightwire.gateway.vtp.session import MAX_FRAME_PARAM, REPLAY_PARAM
from nightwire.gateway.vtp.transport import (
    ACK,
    AUTHENTICATE,
    IAMALIVE,
    NAK,
    Transport,
    plain_transport,
    transport_in,
)
from nightwire.gateway.xpath.filters import FilterList, read_filters


@dataclass
class SubscriberState:
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
    reach: AckTracker = field(default_factory=lambda: AckTracker({}))
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
