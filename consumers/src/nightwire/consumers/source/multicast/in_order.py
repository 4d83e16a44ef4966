"""What was heard of one partition: put in order, with its gaps told.  Pure."""

from bisect import insort
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from confluent_kafka import Message

from nightwire.core.datagrams import Beat, Datagram, is_newer

MOST_HELD = 32 << 20
"""Most that is kept of what cannot be handed out yet. [byte]  Kafka has the rest."""
OVERHEAD = 512
"""What a record takes beside its content. [byte]"""
STRAYS, WITHIN, AWAY = 20, 10.0, 30.0
"""After so many gaps with records within so long [s], what is heard is left for so long [s]."""
SILENCE = 2.0
"""After so long without datagram and heartbeat, a partition is read from Kafka. [s]"""


class Held(NamedTuple):
    """A record that waits for those before it.

    Attributes:
        previous: The offset sent before it.
        message: The record; None where Kafka has to be asked for it.
        size: Its length. [byte]
        since: When it was heard. [s, any steady clock]
        nothing: Whether there is no record: all up to here is not the channel's.
    """

    previous: int
    message: Message | None
    size: int
    since: float = float("-inf")
    nothing: bool = False

    @property
    def unknown(self) -> bool:
        """Whether Kafka has to be asked for the record."""
        return self.message is None and not self.nothing


class InOrder:
    """One partition of a channel.

    Args:
        next_offset: The first offset that is wanted.
        patience: How long what lacks is waited for, after what follows it was heard. [s]
    """

    def __init__(self, next_offset: int, patience: float = 0.0) -> None:
        self.next, self._patience = next_offset, patience
        self._strays: deque[float] = deque(maxlen=STRAYS)
        self._left_until = float("-inf")
        self.last = -1  # the highest offset that was sent, as far as is known
        self._epoch: int | None = None
        self._heard_at, self._beat = float("-inf"), -1
        self._held: dict[int, Held] = {}
        self._order: list[int] = []
        self._size = 0
        # of the record that is being put together: its offset, epoch and number of parts; the parts
        self._parts: tuple[tuple[int, ...], dict[int, bytes]] = ((), {})

    def admit(self, one: Datagram, now: float) -> str | None:
        """Take note of a record's datagram; return why it is dropped, None where it is not.

        Args:
            one: Of this partition.
            now: The time. [s, any steady clock]
        """
        if (wrong := self._enter(one.epoch, now)) is not None:
            return wrong
        if one.offset < self.next or one.offset in self._held:
            return "replayed"
        self._heard_at = now
        return None

    def hear(self, beat: Beat, sent: int, now: float) -> str | None:
        """Take note of a heartbeat that was *sent* [ms] by the sender's clock; else as `admit`."""
        if (wrong := self._enter(beat.epoch, now)) is not None:
            return wrong
        if sent <= self._beat:
            return "replayed"
        self._beat, self._heard_at, self.last = sent, now, max(self.last, beat.last)
        return None

    def vouch(self, known: range, message: Message | None, now: float) -> None:
        """Take note that of the offsets *known* the last alone is the channel's, or none.

        Args:
            known: Offsets.
            message: The record at the last of them; None where there is none.
            now: The time. [s, any steady clock]
        """
        self._heard_at = now
        if known.stop > self.next and known.stop - 1 not in self._held:
            size = 0 if message is None else len(message.value() or b"")
            self.hold(known.stop - 1, Held(known.start - 1, message, size, now, message is None))

    def confirm(self, now: float) -> None:
        """Take note that nothing was missed until *now*."""
        self._heard_at = now

    def strays(self, now: float) -> bool:
        """Take note that a gap held records; return whether too many vouch for nothing."""
        self._strays.append(now)
        if not self._patience or len(self._strays) < STRAYS or now - self._strays[0] > WITHIN:
            return False
        self._left_until = now + AWAY
        return True

    def reset(self) -> None:
        """Forget what was heard: it comes another way from now on."""
        self._heard_at = float("-inf")
        while self._order:
            self._drop_first()
        self.forget_end()

    def whole(self, one: Datagram) -> bytes | None:
        """Return the body of the record of which *one* is a part, once all parts are there."""
        if one.chunks == 1:
            return one.body
        if self._parts[0] != (named := (one.offset, one.epoch, one.chunks)):
            self._parts = named, {}
        self._parts[1][one.chunk] = one.body
        if len(self._parts[1]) < one.chunks:
            if len(self._parts[1]) * len(one.body) > MOST_HELD:
                self._parts = (), {}
            return None
        parts, self._parts = self._parts[1], ((), {})
        return b"".join(parts[number] for number in sorted(parts))

    def hold(self, offset: int, held: Held) -> None:
        """Keep a record until its turn; the oldest go where there are too many."""
        self.last = max(self.last, offset)
        self._held[offset] = held
        insort(self._order, offset)
        self._size += held.size + OVERHEAD
        while self._size > MOST_HELD:
            self._drop_first()

    def ready(self) -> Iterator[Message]:
        """Yield the records that follow on what was handed out."""
        while self._order:
            first = self._held[self._order[0]]
            if self._order[0] >= self.next:
                if first.previous >= self.next or first.unknown:
                    return
                self.next = self._order[0] + 1
                if first.message is not None:
                    yield first.message
            self._drop_first()

    def gap(self) -> range:
        """Return the offsets that Kafka has to be asked for, after `ready` gave all it had."""
        if not self._order:
            return range(self.next, self.last + 1)
        first = self._held[self._order[0]]
        return range(self.next, (self._order[0] if first.unknown else first.previous) + 1)

    def overdue(self, now: float) -> range:
        """Return `gap`, where it was waited for long enough."""
        found = self.gap()
        waits = bool(found and self._order) and now - self._held[self._order[0]].since < self._patience
        return range(self.next, self.next) if waits else found

    def advance(self, next_offset: int) -> None:
        """Go on at *next_offset*: what lies before it came from Kafka."""
        self.next = max(self.next, next_offset)
        while self._order and self._order[0] < self.next:
            self._drop_first()

    def forget_end(self) -> None:
        """Forget how far was sent: who said so may have lied, and the next heartbeat tells."""
        self.last = self._order[-1] if self._order else -1

    def is_silent(self, now: float) -> bool:
        """Return whether nothing was heard for too long."""
        return now - self._heard_at > SILENCE

    def connects(self, now: float) -> bool:
        """Return whether what is heard joins what was handed out, without a gap."""
        return now >= self._left_until and not self.is_silent(now) and not self.gap()

    def _enter(self, epoch: int, now: float) -> str | None:
        """Go on with a newer *epoch*, after silence with any; return why it is dropped."""
        if self._epoch is None or is_newer(epoch, self._epoch):
            self._epoch, self._beat = epoch, -1  # another sender's clock may be slow
        elif self.is_silent(now):
            self._epoch = epoch
        return None if epoch == self._epoch else "old_epoch"

    def _drop_first(self) -> None:
        self._size -= self._held.pop(self._order.pop(0)).size + OVERHEAD
