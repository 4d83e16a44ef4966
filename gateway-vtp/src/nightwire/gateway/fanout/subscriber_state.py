"""A subscriber, from our side: its messages, the events it was sent, its answers.  Pure."""

import re
from dataclasses import dataclass, field

from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.fanout.ack_tracker import AckTracker
from nightwire.gateway.net.limits import TokenBucket
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

SILENCES = 2.5
"""A subscriber that said nothing for so many iamalive intervals is gone."""
MAX_NAME = 1000
"""Longest name under which a position is kept. [character]"""
_NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass
class SubscriberState:
    """A subscriber.  Times are in seconds of any clock that only goes forward.

    Attributes:
        filters: The events that it wants.
        last_message: When its last message came. [s]
        acks: Which events were sent and acknowledged.
        name: IVOID that it gave, if any.
        sent: Events sent to it.
        acked: Of these, acknowledged.
        naked: Of these, refused.
        max_frame: Longest event that it takes [byte]; None where it gave none.
        replay: How far back it asked to begin [s]; None where it did not ask.
        owed: Acks and iamalives that we may still expect of it.
        unasked: Bounds what it sends beyond.
    """

    filters: FilterList
    last_message: float
    acks: AckTracker = field(default_factory=lambda: AckTracker({}))
    name: str | None = None
    sent: int = 0
    acked: int = 0
    naked: int = 0
    max_frame: int | None = None
    replay: float | None = None
    owed: int = 0
    unasked: TokenBucket = field(default_factory=TokenBucket)

    @property
    def unacked(self) -> int:
        """How many events were sent and not answered."""
        return self.sent - self.acked - self.naked

    def event_sent(self, event: Event) -> None:
        """Note that an event went out."""
        self.sent += 1
        self.owed += 1
        self.acks.sent(event)

    def receive(self, document: bytes, now: float) -> FilterList | None:
        """Take a message; return the new filters where it set some.

        Raises:
            XMLRefusedError: It is no Transport message.
            FloodError: Nobody asked for it, nor for many before it.
        """
        message = self._read(document, now)
        self.last_message = now
        self.name = message.response or self.name
        if message.role in (ACK, NAK) and self.acks.answered(message.origin):
            self.acked += message.role == ACK
            self.naked += message.role == NAK
        if message.role in (AUTHENTICATE, IAMALIVE):
            self._read_params(message)
        if message.role != AUTHENTICATE:
            return None
        self.filters = read_filters(message.xpath_filters)
        return self.filters

    def known_as(self, host: str) -> str:
        """Return the name under which its position is kept; *host* where it gave none."""
        return self.name if self.name and len(self.name) <= MAX_NAME else host

    def gone_at(self, interval: float) -> float:
        """Return when it is gone unless it says something, at one iamalive each *interval*. [s]"""
        return self.last_message + SILENCES * interval

    def _read(self, document: bytes, now: float) -> Transport:
        asked = False
        try:
            message = plain_transport(document) or transport_in(document)
            if message is None:
                raise XMLRefusedError("a subscriber sends Transport messages only")
            asked = self.owed > 0 and message.role != AUTHENTICATE
        finally:
            if not asked:
                self.unasked.take(len(document), now)
        self.owed -= asked
        return message

    def _read_params(self, message: Transport) -> None:
        """Note what it says of itself; a value that is no number is ignored."""
        params = dict(message.params)
        if _NUMBER.fullmatch(longest := params.get(MAX_FRAME_PARAM, "")):
            self.max_frame = int(longest)
        if _NUMBER.fullmatch(replay := params.get(REPLAY_PARAM, "")):
            self.replay = float(replay)
