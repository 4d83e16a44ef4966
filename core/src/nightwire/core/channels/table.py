"""The channels that there are, as a fold over the records of the topic `channels`, and followed."""

from collections.abc import Sequence
from typing import NamedTuple

from nightwire.core.channels.mapping import ChannelMapping, mapping_of
from nightwire.core.kafka import TableFollower
from nightwire.schemas import MendableError
from nightwire.schemas.topics import CHANNELS

MOST = 10_000
"""Most channels that are held; what is beyond is refused."""


class HeldMapping(NamedTuple):
    """A channel as it is now, and the offset in `channels` of the record that says so."""

    mapping: ChannelMapping
    offset: int


class ChannelTable:
    """The channels of a topic's log, record by record.

    Attributes:
        refused: Records that could not stand here.
        position: Offset after the last record.
    """

    def __init__(self) -> None:
        self._held: dict[str, HeldMapping] = {}
        self.refused = self.position = 0

    def apply(self, key: str, value: bytes | None, _appended: int, offset: int) -> None:
        """Note the record at *offset*; None as its *value* is a tombstone."""
        self.position = offset + 1
        if value is None:
            self._held.pop(key, None)
            return
        try:
            mapping = mapping_of(key, value)
        except MendableError:
            self.refused += 1
            return
        if key not in self._held and len(self._held) >= MOST:
            self.refused += 1
            return
        self._held[key] = HeldMapping(mapping, offset)

    def caught_up(self) -> None:
        """Nothing depends on that: channels have no clock."""

    def wait(self, _seconds: float) -> None:
        """Nothing depends on that: channels have no clock."""

    def of(self, topic: str | None = None) -> list[HeldMapping]:
        """Return the channels of *topic*, or of any: of higher priority first, then by name."""
        found = [one for one in self._held.values() if topic in (None, one.mapping.topic)]
        return sorted(found, key=lambda one: (-one.mapping.priority, one.mapping.key))


class ChannelFollower(TableFollower[ChannelTable]):
    """Follows which channels there are in the Kafka at *bootstrap*, within a ``with`` block.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
    """

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap, CHANNELS, ChannelTable)

    def of(self, topic: str | None = None) -> Sequence[HeldMapping]:
        """Return the channels of *topic*, or of any."""
        with self._changed:
            return self._table.of(topic)
