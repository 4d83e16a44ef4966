"""What a stone keeps by key between alerts, in the topic `flow-state.FLOW`, and for how long.

A key whose last sample is too old, beside the newest of its partition, is let go by the worker that
had a part in it: its tombstone is written beside what others keep.  So is, where a stone keeps too
much, what was touched longest ago, which is counted.
"""

import logging
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from nightwire.core.kafka import TopicPartition
from nightwire.core.runtime import LogLimiter
from nightwire.flows.engine.events import Event
from nightwire.flows.model import KEPT, Stone
from nightwire.schemas import AlertDecoder, AlertTable, RegistryAwayError, SchemaError, Survey

log = logging.getLogger("nightwire.flows")

USUAL = {"by": "object_id", "value": "mjd_tai"}
"""What a stone goes by and adds up where nobody says."""


class Kept(Protocol):
    """What is kept of a key."""

    @property
    def partition(self) -> TopicPartition:
        """Where the newest sample was at first: partitions are read each at its own pace."""
        ...

    @property
    def newest(self) -> float:
        """The time of the newest sample, as the stone counts it."""
        ...

    def encoded(self) -> bytes:
        """Return it as it is kept."""
        ...


Held = TypeVar("Held", bound=Kept)


@dataclass
class Keeper(Generic[Held]):
    """Keeps something of each object.

    Attributes:
        flow: Name of the flow.
        stone: What it is to do.
        survey: Whose alerts.
        decoder: Reads them.
        schema_id: Of the events that it makes.
        held: What it keeps, by key, the one touched last at the end: filled from Kafka when
            partitions are assigned.
        size: How long all that is, encoded. [byte]
        early: How many objects were let go for want of room.
    """

    flow: str
    stone: Stone
    survey: Survey
    decoder: AlertDecoder
    schema_id: int
    held: dict[str, Held] = field(default_factory=dict)
    ours: set[str] = field(default_factory=set)
    newest: dict[TopicPartition, float] = field(default_factory=dict)
    swept: dict[TopicPartition, float] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    size: int = 0
    early: int = 0
    _limiter: LogLimiter = field(default_factory=LogLimiter)

    @property
    def kept_as(self) -> str:
        """Under which name it is kept: what goes by another object, or adds up another field,
        begins anew.
        """
        found = ((name, self.stone.options.get(name, usual), usual) for name, usual in USUAL.items())
        return ":".join([self.stone.name, *(f"{name}={is_}" for name, is_, usual in found if is_ != usual)])

    @property
    @abstractmethod
    def length(self) -> float:
        """For how long a sample counts, in the stone's unit of time."""

    @abstractmethod
    def decoded(self, value: bytes) -> Held:
        """Return what `Kept.encoded` gave.

        Raises:
            TypeError, ValueError: It is another's: of a stone of another kind, which had that name.
        """

    def restore(self, state: Mapping[str, bytes]) -> None:
        """Hold what *state*, by key, says; others may have written parts of it."""
        self.held, self.ours, self.newest, self.swept = {}, set(), {}, {}
        for key, value in state.items():
            with suppress(TypeError, ValueError):
                self.held[key] = self.decoded(value)
        if others := len(state) - len(self.held):
            log.warning("flow %s: %d objects of %s: kept by another kind", self.flow, others, self.stone.name)
        self.held = dict(sorted(self.held.items(), key=lambda one: one[1].newest))
        self.sizes = {key: len(state[key]) for key in self.held}
        self.size = sum(self.sizes.values())

    def adopt(self, other: "Keeper[Held]") -> None:
        """Go on with what *other* held."""
        self.held, self.ours = other.held, other.ours
        self.newest, self.swept = other.newest, other.swept
        self.sizes, self.size, self.early = other.sizes, other.size, other.early

    def state(self, touched: Mapping[str, Held]) -> dict[str, bytes | None]:
        """Return what is to be kept of *touched*; None for what is over."""
        self.ours |= touched.keys()
        made = {key: one.encoded() for key, one in touched.items()}
        for key, one in touched.items():
            self.held[key] = self.held.pop(key)
            self.size += len(made[key]) - self.sizes.get(key, 0)
            self.sizes[key] = len(made[key])
            self.newest[one.partition] = max(self.newest.get(one.partition, 0.0), one.newest)
        ended = self.ours.intersection(self._let_go(self._over()))
        ended |= self._let_go_early()
        self.ours -= ended
        return made | dict.fromkeys(ended)

    def _let_go(self, keys: list[str]) -> list[str]:
        for key in keys:
            del self.held[key]
            self.size -= self.sizes.pop(key)
        return keys

    def _let_go_early(self) -> set[str]:
        """Let go what is too much; return and count the keys that no other worker keeps."""
        found, ours = list[str](), set[str]()
        most, room = (self.stone.options.get(name, usual) for name, (usual, _) in KEPT.items())
        left, size = len(self.held), self.size
        for key, one in self.held.items():
            if left <= most and size <= room << 20:
                break
            found.append(key)
            left, size = left - 1, size - self.sizes[key]
            if key in self.ours or one.partition in self.newest:
                ours.add(key)
        self._let_go(found)
        self.early += len(ours)
        if ours and self._limiter.allows():
            log.warning(
                "flow %s: %s keeps at most %d objects and %d MiB: %d were let go early so far",
                self.flow, self.stone.name, most, room, self.early,
            )  # fmt: skip
        return ours

    def _over(self) -> list[str]:
        """Return the keys that are too old, of the partitions that have gone on far enough."""
        due = {one: at for one, at in self.newest.items() if at >= self.swept.get(one, 0.0) + self.length}
        self.swept |= due
        kept = self.held.items() if due else ()
        return [key for key, one in kept if one.newest < due.get(one.partition, 0.0) - self.length]

    def rows(self, events: Sequence[Event], names: Sequence[str]) -> Iterator[tuple[Event, Any]]:
        """Yield *events* with the columns *names* of their alerts, or with why there is none.

        Raises:
            RegistryAwayError: Ask again later.
        """
        try:
            found = self._rows(events, names)
        except SchemaError as error:
            if isinstance(error, RegistryAwayError):
                raise
            if len(events) == 1:
                yield events[0], str(error)
            for one in events if len(events) > 1 else ():
                yield from self.rows([one], names)
            return
        yield from zip(events, found, strict=True)

    def _rows(self, events: Sequence[Event], names: Sequence[str]) -> Iterable[Any]:
        paths = AlertTable.fields(names, self.survey)
        found = self.decoder.columns([one.value for one in events], paths, missing_ok=True)
        for error in found.faults.values():
            if isinstance(error, RegistryAwayError):
                raise error
        table = AlertTable(found.batch, self.survey)
        rows: list[Any] = [str(found.faults.get(at, "no alert")) for at in range(len(events))]
        columns = zip(*(table[name].items for name in names), strict=True)
        for at, row in zip(found.rows, columns, strict=True):
            rows[at] = row
        return rows
