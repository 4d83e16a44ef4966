"""What was received of one partition: put in order, and its gaps.  Pure."""

from bisect import insort
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from confluent_kafka import Message

from nightwire.core.datagrams import Beat, Datagram, is_newer

MAX_BUFFERED = 32 << 20
"""Most that is kept of what cannot be handed out yet. [byte]  Kafka has the rest."""
OVERHEAD = 512
"""What a record takes beside its content. [byte]"""
UNCOVERED, WITHIN, AWAY = 20, 10.0, 30.0
"""After so many gaps with records within so long [s], the multicast is left for so long [s]."""
SILENCE = 2.0
"""After so long without datagram and heartbeat, a partition is read from Kafka. [s]"""


class BufferedRange(NamedTuple):
    """Records that wait for those before them: of one datagram, or fetched for a gap.

    Attributes:
        previous: The offset sent before them.
        last: The offset up to which they are all that there is.
        messages: The records; None where Kafka has to be asked for the one.
        size: Their length. [byte]
        was_sent: Whether a relay sent them; what was fetched may not be the channel's.
        since: When it was received. [s, any steady clock]
    """

    previous: int
    last: int
    messages: Sequence[Message] | None
    size: int
    was_sent: bool = True
    since: float = float("-inf")


class ReorderBuffer:
    """The records of one partition of a channel that wait for those before them.

    Args:
        next_offset: The first offset that is wanted.
        patience: How long what lacks is waited for, after what follows it was received. [s]
    """

    def __init__(self, next_offset: int, patience: float = 0.0) -> None:
        self.next, self._patience = next_offset, patience
        self._uncovered: deque[float] = deque(maxlen=UNCOVERED)
        self._left_until = float("-inf")
        self.last = -1  # the highest offset that was sent, as far as is known
        self._done = -1  # the highest that a relay has looked at
        self._epoch: int | None = None
        self._received_at = self._reached_at = float("-inf")  # anything; what reached the next offset
        self._beats: dict[int, int] = {}  # when the newest heartbeat was sent, by channel
        self._buffered: dict[int, BufferedRange] = {}
        self._order: list[int] = []
        self._size = 0
        # of the record that is being put together: its offset, epoch and number of parts; the parts
        self._parts: tuple[tuple[int, ...], dict[int, bytes]] = ((), {})

    def admit(self, one: Datagram, last: int, now: float) -> str | None:
        """Take note of a datagram of records; return why it is dropped, None where it is not.

        Args:
            one: Of this partition.
            last: The offset of its last record.
            now: The time. [s, any steady clock]
        """
        if (wrong := self._check_epoch(one.epoch, now)) is not None:
            return wrong
        if last < self.next or one.offset in self._buffered:
            return "replayed"
        self._note_received(last, now)
        return None

    def note_heartbeat(self, beat: Beat, channel: int, sent: int, now: float) -> str | None:
        """Take note of a channel's heartbeat that was *sent* [ms, its clock]; else as `admit`."""
        if (wrong := self._check_epoch(beat.epoch, now)) is not None:
            return wrong
        if sent <= self._beats.get(channel, -1):
            return "replayed"
        self._beats[channel], self.last = sent, max(self.last, beat.last)
        self._done = max(self._done, beat.done)
        self._note_received(max(beat.last, beat.done), now)
        return None

    def add_known(self, known: range, messages: Sequence[Message], now: float) -> None:
        """Take note that of the offsets *known* only these *messages* are the channel's.

        Args:
            known: Offsets.
            messages: The records among them, in order.
            now: The time. [s, any steady clock]
        """
        self._note_received(known.stop - 1, now)
        before = self._buffered.get(known.start)
        if known.stop > self.next and (before is None or before.last < known.stop - 1):
            size = sum(len(one.value() or b"") for one in messages)
            self.insert(
                known.start, BufferedRange(known.start - 1, known.stop - 1, messages, size, since=now)
            )

    def confirm(self, now: float) -> None:
        """Take note that nothing was missed until *now*."""
        self._note_received(self.next, now)

    def note_uncovered(self, now: float) -> bool:
        """Take note that a gap held records that no sender covered; return whether too many did."""
        self._uncovered.append(now)
        if not self._patience or len(self._uncovered) < UNCOVERED or now - self._uncovered[0] > WITHIN:
            return False
        self.leave(now)
        return True

    def leave(self, now: float) -> None:
        """Connect to no multicast for a while."""
        self._left_until = now + AWAY

    def reset(self) -> None:
        """Forget what was received: it comes another way from now on."""
        self._received_at = self._reached_at = float("-inf")
        while self._order:
            self._drop(0)
        self.forget_end()

    def reassembled(self, one: Datagram) -> bytes | None:
        """Return the body of the record of which *one* is a part, once all parts are there."""
        if one.chunks == 1:
            return one.body
        if self._parts[0] != (named := (one.offset, one.epoch, one.chunks)):
            self._parts = named, {}
        self._parts[1][one.chunk] = one.body
        if len(self._parts[1]) < one.chunks:
            if len(self._parts[1]) * len(one.body) > MAX_BUFFERED:
                self._parts = (), {}
            return None
        parts, self._parts = self._parts[1], ((), {})
        return b"".join(parts[number] for number in sorted(parts))

    def insert(self, offset: int, entry: BufferedRange) -> None:
        """Keep records, of which the first is at *offset*; the last go where there are too many."""
        self.last = max(self.last, entry.last)
        if (before := self._buffered.get(offset)) is None:
            insort(self._order, offset)
        self._size += entry.size + OVERHEAD - (before.size + OVERHEAD if before else 0)
        self._buffered[offset] = entry
        while self._size > MAX_BUFFERED and len(self._order) > 1:
            self._drop(-1)

    def fill(self, gap: range, messages: Sequence[Message]) -> None:
        """Keep what Kafka has of a *gap*: all that there is."""
        size = sum(len(one.value() or b"") + OVERHEAD for one in messages)
        place = self._buffered.get(gap.start)  # of the one record, of which a relay told the place alone
        previous = gap.start - 1 if place is None else place.previous
        self.insert(gap.start, BufferedRange(previous, gap.stop - 1, messages, size, was_sent=False))

    def ready(self) -> Iterator[tuple[Sequence[Message], bool]]:
        """Yield the records that follow on what was handed out, and whether a relay sent them."""
        while self._order:
            first = self._order[0]
            previous, last, messages, _, was_sent, _ = self._buffered[first]
            if last >= self.next:
                if previous >= self.next or messages is None:
                    return
                begin, self.next = self.next, last + 1
                yield messages if first >= begin else _from_offset(messages, begin), was_sent
            self._drop(0)
        if self.next > self.last:
            self.next = max(self.next, self._done + 1)

    def gaps(self) -> Iterator[range]:
        """Yield what Kafka has to be asked for, after `ready` gave all it had."""
        at = self.next
        for first in self._order:
            previous, last, messages, *_ = self._buffered[first]
            if previous >= at:
                yield range(at, (first if messages is None else previous) + 1)
            elif messages is None and first >= at:
                yield range(first, first + 1)
            at = max(at, last + 1)
        if at <= self.last:
            yield range(at, self.last + 1)

    def overdue(self, now: float) -> list[range]:
        """Return the `gaps`, where these were waited for long enough."""
        waits = bool(self._order) and now - self._buffered[self._order[0]].since < self._patience
        return [] if waits else [*self.gaps()]

    def advance(self, next_offset: int) -> None:
        """Go on at *next_offset*: what lies before it came from Kafka."""
        self.next = max(self.next, next_offset)
        while self._order and self._buffered[self._order[0]].last < self.next:
            self._drop(0)

    def forget_end(self) -> None:
        """Forget how far was sent: who said so may have lied, and the next heartbeat tells."""
        self.last = max((one.last for one in self._buffered.values()), default=-1)
        self._done = -1

    def is_silent(self, now: float) -> bool:
        """Return whether nothing was received for too long."""
        return now - self._received_at > SILENCE

    def is_behind(self, now: float) -> bool:
        """Return whether for too long nothing was received that reached the next offset."""
        return now - self._reached_at > SILENCE

    def connects(self, now: float) -> bool:
        """Return whether what is received joins what was handed out, without a gap."""
        return now >= self._left_until and not self.is_silent(now) and not any(self.gaps())

    def _note_received(self, last: int, now: float) -> None:
        """Take note that something was received up to the offset *last*."""
        self._received_at = now
        if last >= self.next - 1:
            self._reached_at = now

    def _check_epoch(self, epoch: int, now: float) -> str | None:
        """Go on with a newer *epoch*, after silence with any; return why it is dropped."""
        if self._epoch is None or is_newer(epoch, self._epoch):
            self._epoch = epoch
            self._beats.clear()  # another sender's clock may be slow
        elif self.is_silent(now):
            self._epoch = epoch
        return None if epoch == self._epoch else "old_epoch"

    def _drop(self, at: int) -> None:
        self._size -= self._buffered.pop(self._order.pop(at)).size + OVERHEAD


def _from_offset(messages: Sequence[Message], begin: int) -> Sequence[Message]:
    return [one for one in messages if (one.offset() or 0) >= begin]
