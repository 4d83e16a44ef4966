"""How much memory messages of peers may take, over all connections.  For one event loop."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from nightwire.gateway.net.limits import counted_as


class MemoryExceededError(Exception):
    """What is incomplete or waits fills the memory for it, and this peer's is the largest."""


@dataclass(eq=False)
class Sender:
    """A peer of whom something may be incomplete, or wait.

    Attributes:
        host: Its address.
        give_up: Called where its memory is needed; what it sent is to be dropped.
    """

    host: str
    give_up: Callable[[MemoryExceededError], None]


class MemoryBudget:
    """Bound the memory of what is incomplete or waits, and of events on their way to Kafka.

    Where the first have no room, the largest goes of the address that holds most, whoever
    grew: so a good peer is not hit for many bad ones at another address.

    Args:
        limit: Most of each. [byte]
    """

    def __init__(self, limit: int = 64 << 20) -> None:
        self._limit = limit
        self._incomplete: dict[str, dict[Sender, int]] = {}
        self._of_address: Counter[str] = Counter()
        self._incomplete_total = 0
        self._reserved = 0
        self._waiting: dict[Callable[[], None], int] = {}

    @property
    def held(self) -> int:
        """How much is held now. [byte]"""
        return self._incomplete_total + self._reserved

    @contextmanager
    def sender(
        self, host: str, give_up: Callable[[MemoryExceededError], None]
    ) -> Iterator[Callable[[int], None]]:
        """Yield what takes how much of a peer at *host* is incomplete; see `Sender`."""
        sender = Sender(host, give_up)
        try:
            yield partial(self.hold_incomplete, sender)
        finally:
            self.hold_incomplete(sender, 0)

    def hold_incomplete(self, sender: Sender, size: int) -> None:
        """Note that *size* [byte] of *sender* are incomplete, or wait."""
        self._note(sender, size)
        while self._incomplete_total > self._limit:
            largest = self._largest()
            self._note(largest, 0)
            largest.give_up(
                MemoryExceededError(
                    f"incomplete messages have more than {self._limit} bytes, its is the largest"
                )
            )

    def _note(self, sender: Sender, size: int) -> None:
        address = counted_as(sender.host)
        held = self._incomplete.setdefault(address, {})
        grown = size - held.pop(sender, 0)
        if size:
            held[sender] = size
        self._incomplete_total += grown
        self._of_address[address] += grown
        if not held:
            del self._incomplete[address], self._of_address[address]

    def _largest(self) -> Sender:
        """Return who holds most, of the address that holds most."""
        held = self._incomplete[max(self._of_address, key=self._of_address.__getitem__)]
        return max(held, key=held.__getitem__)

    def has_room(self, size: int) -> bool:
        """Say whether an event of *size* [byte] may begin; one that is too large goes alone."""
        return not self._reserved or self._reserved + size <= self._limit

    def reserve(self, size: int) -> None:
        """Note that an event of *size* [byte] is on its way."""
        self._reserved += size

    def release(self, size: int) -> None:
        """Note that it is no longer, and call those who wait for room."""
        self._reserved -= size
        while self._waiting:
            callback, wanted = next(iter(self._waiting.items()))
            if not self.has_room(wanted):
                return
            del self._waiting[callback]
            callback()

    def when_room(self, size: int, callback: Callable[[], None]) -> None:
        """Call *callback*, once, when there is room for *size* [byte], after earlier ones."""
        self._waiting[callback] = size
