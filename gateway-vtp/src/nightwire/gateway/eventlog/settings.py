"""The settings of the log: which Kafka, which topics, what is kept beside it."""

from dataclasses import dataclass
from pathlib import Path

from nightwire.schemas.topics import VOEVENTS


@dataclass(frozen=True)
class EventLogSettings:
    """Kafka as the log of events, and this gateway's state beside it.

    Attributes:
        bootstrap: Address of Kafka.
        state: Folder of the indexes and of the handlers' positions.
        topics: Topics that events are read from, `voevents` among them.
        remembered_days: How long an event is known, so that its copies are recognised. [day]
        accounts: Whether this gateway accounts for the records of `voevents`.
        ring_events: Most recent events in memory, of each set of topics.
        ring_bytes: Most memory for them. [byte]
    """

    bootstrap: str
    state: Path
    topics: tuple[str, ...] = (VOEVENTS,)
    remembered_days: float = 30.0
    accounts: bool = True
    ring_events: int = 20_000
    ring_bytes: int = 64 << 20
