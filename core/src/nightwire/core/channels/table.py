"""The channels that there are, as a fold over the records of the topic `channels`, and followed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from nightwire.core.channels.mapping import ChannelMapping, MappingError, mapping_of
from nightwire.core.kafka import TableFollower
from nightwire.schemas import MendableError
from nightwire.schemas.topics import CHANNELS

MOST, MOST_OF_A_TOPIC = 10_000, 100
"""Most channels that are held, and that a topic has: every source judges them, whoever wrote them.
Of more, those hold whose records are oldest, for everybody alike."""
MOST_NAMED, LONGEST_KEY = 1_000, 300
"""Most records that could not stand there and are told by name; their longest key."""


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
        self._held: dict[str, HeldMapping] = {}  # in the order of their offsets
        self._wrong: dict[str, str] = {}  # by key, why a record could not stand there
        self._by_topic: dict[str, list[HeldMapping]] | None = None
        self.refused = self.position = 0

    def apply(self, key: str, value: bytes | None, _appended: int, offset: int) -> None:
        """Note the record at *offset*; None as its *value* is a tombstone."""
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
        self._held[key] = HeldMapping(mapping, offset)

    def caught_up(self) -> None:
        """Nothing depends on that: channels have no clock."""

    def wait(self, _seconds: float) -> None:
        """Nothing depends on that: channels have no clock."""

    def of(self, topic: str | None = None) -> list[HeldMapping]:
        """Return the channels of *topic*, or of any: of higher priority first, then by name."""
        found = [one for every in self._of(topic) for one in every[:MOST_OF_A_TOPIC]]
        return sorted(found, key=lambda one: (-one.mapping.priority, one.mapping.key))

    def turned_away(self, topic: str | None = None) -> dict[str, str]:
        """Return why records are no channels of *topic*, or of any, by their keys."""
        why = f"its topic has {MOST_OF_A_TOPIC} older channels: `nightwire channel remove` makes room"
        beyond = (one for every in self._of(topic) for one in every[MOST_OF_A_TOPIC:])
        wrong = {key: why for key, why in self._wrong.items() if topic in (None, key.rpartition("/")[0])}
        return wrong | {one.mapping.key: why for one in beyond}

    def _of(self, topic: str | None) -> Iterable[Sequence[HeldMapping]]:
        if self._by_topic is None:
            self._by_topic = {}
            for one in self._held.values():
                self._by_topic.setdefault(one.mapping.topic, []).append(one)
        return self._by_topic.values() if topic is None else [self._by_topic.get(topic, [])]


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

    def turned_away(self, topic: str | None = None) -> Mapping[str, str]:
        """Return why records are no channels of *topic*, or of any, by their keys."""
        with self._changed:
            return self._table.turned_away(topic)
