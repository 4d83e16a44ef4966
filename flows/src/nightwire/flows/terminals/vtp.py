"""VTP: an event is a VOEvent, sent to a broker as its author."""

from dataclasses import dataclass, replace

from nightwire.core.outside import Refused, Unavailable, resolve_public
from nightwire.flows.terminals.terminal import EventView, Terminal
from nightwire.gateway import Author, Submission, alert_voevent, read_address
from nightwire.schemas import survey

PORT = 8098
"""The port at which brokers take events from authors."""
TIMEOUT = 10.0
"""Longest wait for a connection, and for an answer. [s]"""


@dataclass(frozen=True)
class Vtp(Terminal):
    """Sends alerts as VOEvents, and VOEvents as they are.

    Attributes:
        broker: ``HOST:PORT`` that takes events from authors.
        survey: Survey of the alerts; empty for VOEvents.
        stone: Name of the terminal.
        allow_private: Whether addresses of private networks are allowed.
    """

    broker: str
    survey: str
    stone: str
    allow_private: bool

    def deliver(self, event: EventView) -> None:
        """Send *event*; its bytes are the same in every attempt."""
        try:
            broker = read_address(self.broker, PORT)
        except ValueError as error:
            raise Refused(f"{self.broker!r} is no address: {error}") from error
        address = resolve_public(broker.host, broker.port, allow_private=self.allow_private)
        if not broker.tls:  # else its certificate proves the host
            broker = replace(broker, host=address)
        author = Author(broker, timeout=TIMEOUT, patience=0.0)
        receipt = author.send(Submission(event.identity, self._document(event)))
        if receipt.verdict == "nak":
            raise Refused(f"{self.broker} refuses it: {receipt.reason}")
        if receipt.verdict != "ack":
            raise Unavailable(str(receipt.reason))

    def _document(self, event: EventView) -> bytes:
        if not self.survey:
            return event.document
        view, topic = survey(self.survey).view(dict(event.fields)), f"flow.{event.flow}.{self.stone}"
        return alert_voevent(view, survey=self.survey, topic=topic, written=event.written)
