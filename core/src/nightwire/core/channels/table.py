"""The table of channels, a fold over the topic `channels`, and its follower."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from nightwire.core.channels.mapping import ChannelMapping, MappingError, mapping_of
from nightwire.core.kafka import TableFollower
from nightwire.schemas import MendableError
from nightwire.schemas.topics import CHANNELS

MOST, MOST_OF_A_TOPIC = 10_000, 100
"""Most channels in all, and of a topic: every source evaluates them.  Of more, the oldest records
count."""
MOST_NAMED, LONGEST_KEY = 1_000, 300
"""Most refused records that are kept by key, and the longest key of one."""


class CurrentMapping(NamedTuple):
    """The current mapping of a channel, and the offset of its record in `channels`."""

    mapping: ChannelMapping
    offset: int


class ChannelTable:
    """The channels of a topic's log, record by record.

    Attributes:
        refused: Malformed records, and those beyond the limits.
        position: Offset after the last record.
    """

    def __init__(self) -> None:
        self._held: dict[str, CurrentMapping] = {}  # in the order of their offsets
        self._wrong: dict[str, str] = {}  # by key, why a record was refused
        self._by_topic: dict[str, list[CurrentMapping]] | None = None
        self.refused = self.position = 0

    def apply(self, key: str, value: bytes | None, _appended: int, offset: int) -> None:
        """Apply the record at *offset*; None as its *value* is a tombstone."""
        self.position, self._by_topic = offset + 1, None
        self._held.pop(key, None)
        self._wrong.pop(key, None)
        if value is None:
            return
        try:
            mapping = mapping_of(key, value)
            if len(self._held) >= MOST:
                raise MappingError(f"{MOST:,} channels are held already")
        except MendableError as error:
            self.refused += 1
            if len(self._wrong) < MOST_NAMED and len(key) <= LONGEST_KEY:
                self._wrong[key] = str(error)
            return
        self._held[key] = CurrentMapping(mapping, offset)

    def caught_up(self) -> None:
        """Do nothing: channels have no clock."""

    def wait(self, _seconds: float) -> None:
        """Do nothing: channels have no clock."""

    def of(self, topic: str | None = None) -> list[CurrentMapping]:
        """Return the channels of *topic*, or of any: of higher priority first, then by name."""
        found = [one for every in self._of(topic) for one in every[:MOST_OF_A_TOPIC]]
        return sorted(found, key=lambda one: (-one.mapping.priority, one.mapping.key))

    def refusals(self, topic: str | None = None) -> dict[str, str]:
        """Return why records of *topic*, or of any, were refused, by their keys."""
        why = f"its topic has {MOST_OF_A_TOPIC} older channels: `nightwire channel remove` makes room"
        beyond = (one for every in self._of(topic) for one in every[MOST_OF_A_TOPIC:])
        wrong = {key: why for key, why in self._wrong.items() if topic in (None, key.rpartition("/")[0])}
        return wrong | {one.mapping.key: why for one in beyond}

    def _of(self, topic: str | None) -> Iterable[Sequence[CurrentMapping]]:
        if self._by_topic is None:
            self._by_topic = {}
            for one in self._held.values():
                self._by_topic.setdefault(one.mapping.topic, []).append(one)
        return self._by_topic.values() if topic is None else [self._by_topic.get(topic, [])]


class ChannelFollower(TableFollower[ChannelTable]):
    """Follows the channels in the Kafka at *bootstrap*, within a ``with`` block.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
    """

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap, CHANNELS, ChannelTable)

    def of(self, topic: str | None = None) -> Sequence[CurrentMapping]:
        """Return the channels of *topic*, or of any."""
        with self._changed:
            return self._table.of(topic)

    def refusals(self, topic: str | None = None) -> Mapping[str, str]:
        """Return why records of *topic*, or of any, were refused, by their keys."""
        with self._changed:
            return self._table.refusals(topic)
