"""Bulk submission, from the author's side: many events on one connection, without any I/O.

An author sends one event and waits.  A broker that takes more says so in the Meta of its first
answer, and how many may be unanswered at once; one that says nothing gets no more on this
connection, as ever.  Answers come in the order of the events.  `docs/vtp-bulk-submission.md`
describes it for those who implement it.
"""

import re
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import unescape

from nightwire.gateway.voevent.xml import XMLRefusedError
from nightwire.gateway.vtp.frames import FrameDecoder, encode_frame
from nightwire.gateway.vtp.submission import ACKED, MAX_REPLY, NAKED, Receipt, Submission
from nightwire.gateway.vtp.transport import ACK, NAK, Transport, transport_in

PARAM = "bulk-submission"
"""Name of the Meta Param that offers it; the value is how many events may be unanswered."""
WINDOW = 4096
"""What we offer, and the most that we make use of."""

OFFER = ((PARAM, str(WINDOW)),)

_IVORN = re.compile(rb"""\sivorn\s*=\s*(?:"([^"<]*)"|'([^'<]*)')""")
_QUOTES = {"&quot;": '"', "&apos;": "'"}


@dataclass(frozen=True)
class InFlight:
    """An event on its way to the broker.

    Attributes:
        attempts: How often it was sent, on whatever connection.
    """

    submission: Submission
    attempts: int = 0


class BulkSession:
    """One connection to a broker: what may be sent on it, and what its answers mean.

    Args:
        window: Most events that may be unanswered.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self._window, self._decoder = window, FrameDecoder(max_length=MAX_REPLY)
        self._offered: int | None = None
        self._number = 0
        self._unanswered: OrderedDict[int, InFlight] = OrderedDict()
        self._by_ivorn: dict[str, deque[int]] = {}

    @property
    def room(self) -> int:
        """How many more events may be sent now."""
        if self._offered is None:
            return 1 - self._number  # the first one is alone until it is answered
        return max(0, min(self._window, self._offered) - len(self._unanswered))

    @property
    def over(self) -> bool:
        """Whether the broker has answered, and takes no more on this connection."""
        return self._offered == 0

    @property
    def answers(self) -> bool:
        """Whether the broker has answered anything."""
        return self._offered is not None

    @property
    def idle(self) -> bool:
        """Whether nothing is waiting for an answer."""
        return not self._unanswered

    @property
    def unanswered(self) -> Sequence[InFlight]:
        """The events that were sent and not answered, in order."""
        return tuple(self._unanswered.values())

    def send(self, event: InFlight) -> bytes:
        """Return the frame of *event*.  There has to be `room`."""
        self._unanswered[self._number] = InFlight(event.submission, event.attempts + 1)
        if (ivorn := ivorn_in(event.submission.document)) is not None:
            self._by_ivorn.setdefault(ivorn, deque()).append(self._number)
        self._number += 1
        return encode_frame(event.submission.document)

    def receive(self, chunk: bytes) -> Iterator[Receipt]:
        """Yield what became of the events that *chunk* completes the answers to.

        Raises:
            XMLRefusedError: An answer is no Transport document.
            FrameError: The framing is broken.
        """
        self._decoder.receive(chunk)
        for message in self._decoder:
            answer = transport_in(message)
            if answer is None:
                raise XMLRefusedError("the answer is no Transport document")
            if answer.role in (ACK, NAK) and self._unanswered:
                yield self._answered(answer)

    def _answered(self, answer: Transport) -> Receipt:
        if self._offered is None:
            self._offered = offered_by(answer)
        event = self._take(answer.origin)
        verdict = ACKED if answer.role == ACK else NAKED
        return Receipt(event.submission.name, verdict, answer.origin, answer.result, event.attempts)

    def _take(self, ivorn: str) -> InFlight:
        """Return the event that is answered: the oldest of that ivorn, else the oldest of all."""
        number = self._by_ivorn[ivorn][0] if ivorn in self._by_ivorn else next(iter(self._unanswered))
        event = self._unanswered.pop(number)
        name = ivorn_in(event.submission.document)
        if name is not None:
            self._by_ivorn[name].remove(number)
            if not self._by_ivorn[name]:
                del self._by_ivorn[name]
        return event


def offered_by(answer: Transport) -> int:
    """Return how many events may be unanswered, as a broker offers it; 0: it offers nothing."""
    value = dict(answer.params).get(PARAM, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 0


def ivorn_in(document: bytes) -> str | None:
    """Return the first ivorn in *document*, found without parsing it; None where there is none."""
    match = _IVORN.search(document)
    if match is None:
        return None
    return unescape((match[1] or match[2] or b"").decode("utf-8", "replace"), _QUOTES).strip()
