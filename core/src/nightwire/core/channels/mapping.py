"""The mapping of a topic's channel to its carriers, a record of `channels`.  Pure."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from nightwire.core.datagrams import Channel, GroupAddressError, parse_group
from nightwire.schemas import MendableError, records
from nightwire.schemas.topics import NAME

MAX_CONDITION = 4 << 10
"""Longest condition, which every source evaluates. [byte]"""
MAX_RECORD = MAX_CONDITION + (32 << 10)
"""Longest record that is decoded. [byte]"""
TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""A valid topic name."""


class MappingError(MendableError):
    """A mapping is malformed; the message says why."""


@dataclass(frozen=True)
class ChannelMapping:
    """A channel: the events of a topic that meet one condition, and their carriers.

    Attributes:
        topic: Of the events.
        name: Its name, unique in its topic.
        condition: SQL, as after WHERE; TRUE for all.
        made_by: Who made it.
        made: When, by the maker's clock.
        derived: Whether sources copy its events to a topic of its own.
        group: ``ADDRESS:PORT`` of its multicast group; None where it has none.
        full: Whether the group carries alerts whole, not in their lite form.
        priority: Channels of a higher one are sent first.
        since: By partition of the topic, the first offset for which the mapping holds.
        automatic: Whether the planner made it, and may change it and take it out.

    Raises:
        MappingError: It is malformed.
    """

    topic: str
    name: str
    condition: str
    made_by: str
    made: datetime
    derived: bool = False
    group: str | None = None
    full: bool = False
    priority: int = 0
    since: tuple[int, ...] = ()
    automatic: bool = False

    def __post_init__(self) -> None:
        if not TOPIC.fullmatch(self.topic):
            raise MappingError(f"{self.topic[:80]!r} is no topic's name")
        if not NAME.fullmatch(self.name):
            raise MappingError(f"{self.name[:80]!r} is no channel's name: {NAME.pattern}")
        try:
            size = len(self.condition.encode())
        except UnicodeEncodeError as error:
            raise MappingError(f"the condition is no Unicode text: {error}") from error
        if not 0 < size <= MAX_CONDITION:
            raise MappingError(f"the condition has {size} bytes: 1 to {MAX_CONDITION}")
        self._check_group()

    def _check_group(self) -> None:
        try:
            if self.group is not None and parse_group(self.group).name != self.group:
                raise MappingError(f"{self.group[:80]!r} is not how a group is written: {self.group!r}")
        except GroupAddressError as error:
            raise MappingError(str(error)) from error

    @property
    def chooses(self) -> str:
        """The condition as channels of multicast have it: empty for all events."""
        return "" if self.condition.strip().upper() == "TRUE" else self.condition

    @property
    def key(self) -> str:
        """Its Kafka key."""
        return f"{self.topic}/{self.name}"

    def begins(self, partition: int) -> int:
        """Return the first offset of *partition* for which the mapping holds."""
        return self.since[partition] if partition < len(self.since) else 0

    def encoded(self) -> bytes:
        """Return its record."""
        return records.MAPPING.encode({**asdict(self), "since": list(self.since)})


def channel_of(mapping: ChannelMapping, survey: str = "") -> Channel:
    """Return the multicast channel of *mapping*, without keys."""
    return Channel(mapping.topic, str(mapping.group), mapping.chooses, survey, mapping.full)


def mapping_of(key: str, value: bytes) -> ChannelMapping:
    """Return the mapping in the record *value* under *key*.

    Raises:
        MappingError: It is malformed, too long, or belongs under another key.
        SchemaError: It is no such record.
    """
    if len(value) > MAX_RECORD:
        raise MappingError(f"a record of {len(value)} bytes, the limit is {MAX_RECORD}")
    found: Mapping[str, Any] = records.MAPPING.decode(value)
    mapping = ChannelMapping(**{**found, "since": tuple(found["since"])})
    if mapping.key != key:
        raise MappingError(f"under the key {key[:80]!r} of another")
    return mapping
