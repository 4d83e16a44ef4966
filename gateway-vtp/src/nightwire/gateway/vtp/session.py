"""Messages of a VTP session: acks, naks, and our own side of a connection to a remote broker."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from nightwire.gateway.vtp.transport import (
    ACK,
    AUTHENTICATE,
    IAMALIVE,
    NAK,
    Transport,
    encode_transport,
)

Params = tuple[tuple[str, str], ...]
"""Names and values in the Meta of a message."""
MAX_ECHO = 1000
"""How much of an expression is quoted in an answer. [character]"""
MAX_FRAME_PARAM, REPLAY_PARAM = "max-frame", "replay"
"""Meta Params of a subscriber's messages: the longest event that it takes [byte], and how far back
it wants to begin [s].  Brokers that do not know them ignore them."""


@dataclass(frozen=True)
class UpstreamSession:
    """Our own side of a connection to a remote broker.

    Attributes:
        ivoid: Who we are.
        filters: XPath expressions that we ask it for.
        max_frame: Longest event that we take; 0 leaves it out. [byte]
        replay: How far back we want to begin; 0 leaves it out. [s]
    """

    ivoid: str
    filters: Sequence[str] = ()
    max_frame: int = 0
    replay: float = 0.0

    def answer(self, message: Transport) -> Transport | None:
        """Return the answer to *message*, if there is one."""
        if message.role == IAMALIVE:
            return Transport(IAMALIVE, message.origin, self.ivoid)
        if message.role == AUTHENTICATE:
            return Transport(AUTHENTICATE, message.origin, self.ivoid, params=tuple(self._params()))
        return None

    def _params(self) -> Iterator[tuple[str, str]]:
        yield from (("xpath-filter", text) for text in self.filters)
        if self.max_frame:
            yield MAX_FRAME_PARAM, str(self.max_frame)
        if self.replay:
            yield REPLAY_PARAM, str(round(self.replay))


def ack(ivorn: str, ivoid: str, note: str | None = None, params: Params = ()) -> Transport:
    """Return the acknowledgement of the event *ivorn* by *ivoid*."""
    return Transport(ACK, ivorn, ivoid, note, params)


def nak(ivorn: str | None, ivoid: str, reason: str, params: Params = ()) -> Transport:
    """Return the refusal of the event *ivorn*, or of a message without one, by *ivoid*."""
    return Transport(NAK, ivorn or ivoid, ivoid, reason, params)


def filters_refused(ivoid: str, refused: Sequence[tuple[str, str]]) -> Transport:
    """Return the nak that tells a subscriber which of its filters are not used, and why.

    A subscriber gets no other nak: Comet and pygcn log it and go on.
    """
    reasons = "; ".join(f"filter {text[:MAX_ECHO]}: {reason}" for text, reason in refused)
    params = tuple(("xpath-filter-refused", text[:MAX_ECHO]) for text, _ in refused)
    return Transport(NAK, ivoid, ivoid, reasons, params)


def encode_now(message: Transport) -> bytes:
    """Return *message* as a document stamped with the time of day."""
    return encode_transport(message, datetime.now(UTC))
