"""The state of windows and joins by key, in the compacted topic `flow-state.FLOW`.

A key expires when its newest sample is too old beside the newest of its partition, and is evicted
as the least recently used where a stone has too much state.  Tombstones are written for a worker's
own keys alone: after `restore` each has the others' keys too.
"""

import logging
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from confluent_kafka import Message

from nightwire.core.kafka import TopicPartition
from nightwire.core.runtime import LogLimiter
from nightwire.flows.engine.events import Event
from nightwire.flows.model import STATE_LIMITS, Stone
from nightwire.schemas import AlertDecoder, AlertTable, RegistryAwayError, SchemaError, Survey

log = logging.getLogger("nightwire.flows")

DEFAULTS = {"by": "object_id", "value": "mjd_tai"}
"""Default fields: the key of a stone's state, and the value that it adds up."""


def record_key(state_name: str, key: str) -> bytes:
    """Return the key of the record that holds the state of *key* of a stone."""
    return f"{state_name}/{key}".encode()


def states_in(messages: Iterable[Message], state_names: Iterable[str]) -> dict[str, dict[str, bytes]]:
    """Return the encoded states in the records of a flow, by stone's state name and key."""
    found: dict[str, dict[str, bytes]] = {name: {} for name in state_names}
    for message in messages:
        name, _, key = (message.key() or b"").decode(errors="replace").partition("/")
        if name not in found:
            continue
        if (value := message.value()) is None:
            found[name].pop(key, None)
        else:
            found[name][key] = value
    return found


class KeyState(Protocol):
    """The state of one key."""

    @property
    def partition(self) -> TopicPartition:
        """The newest sample's original partition: each is read at its own pace."""
        ...

    @property
    def newest(self) -> float:
        """The newest sample's time, in the stone's unit."""
        ...

    def encoded(self) -> bytes:
        """Return the state as the value of its record."""
        ...


State = TypeVar("State", bound=KeyState)


@dataclass
class StatefulRunner(Generic[State]):
    """Base of the runners with keyed state.

    Attributes:
        flow: Name of the flow.
        stone: The window or join.
        survey: Of the alerts that come in.
        decoder: Of these alerts.
        schema_id: Of the events that leave.
        states: By key, the most recently used last; restored when partitions are assigned.
        own_keys: Those that this worker has written to.
        latest: The newest sample's time by partition, in the stone's unit.
        swept: That time at the partition's last expiry.
        size: Length of all states, encoded; `sizes` by key. [byte]
        evicted: How many objects were dropped for want of room.
    """

    flow: str
    stone: Stone
    survey: Survey
    decoder: AlertDecoder
    schema_id: int
    states: dict[str, State] = field(default_factory=dict)
    own_keys: set[str] = field(default_factory=set)
    latest: dict[TopicPartition, float] = field(default_factory=dict)
    swept: dict[TopicPartition, float] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    size: int = 0
    evicted: int = 0
    _limiter: LogLimiter = field(default_factory=LogLimiter)

    @property
    def state_name(self) -> str:
        """Begins the keys in the state topic; other key or value fields are another state."""
        found = ((name, self.stone.options.get(name, usual), usual) for name, usual in DEFAULTS.items())
        return ":".join([self.stone.name, *(f"{name}={is_}" for name, is_, usual in found if is_ != usual)])

    @property
    @abstractmethod
    def length(self) -> float:
        """Time for which a sample counts, in the stone's unit."""

    @abstractmethod
    def decoded(self, value: bytes) -> State:
        """Return the state in *value*, as `KeyState.encoded` gave it.

        Raises:
            TypeError, ValueError: It is the state of a stone of another kind, once of that name.
        """

    def restore(self, state: Mapping[str, bytes]) -> None:
        """Replace all states by *state*, encoded by key, of which other workers may have parts."""
        self.states, self.own_keys, self.latest, self.swept = {}, set(), {}, {}
        for key, value in state.items():
            with suppress(TypeError, ValueError):
                self.states[key] = self.decoded(value)
        if others := len(state) - len(self.states):
            log.warning("flow %s: %d objects of %s: kept by another kind", self.flow, others, self.stone.name)
        self.states = dict(sorted(self.states.items(), key=lambda one: one[1].newest))
        self.sizes = {key: len(state[key]) for key in self.states}
        self.size = sum(self.sizes.values())

    def adopt(self, other: "StatefulRunner[State]") -> None:
        """Take over the states of *other*, an older version of the stone."""
        self.states, self.own_keys = other.states, other.own_keys
        self.latest, self.swept = other.latest, other.swept
        self.sizes, self.size, self.evicted = other.sizes, other.size, other.evicted

    def changes(self, touched: Mapping[str, State]) -> dict[str, bytes | None]:
        """Return the records to write: states *touched*, and tombstones of dropped keys."""
        self.own_keys |= touched.keys()
        made = {key: one.encoded() for key, one in touched.items()}
        for key, one in touched.items():
            self.states[key] = self.states.pop(key)
            self.size += len(made[key]) - self.sizes.get(key, 0)
            self.sizes[key] = len(made[key])
            self.latest[one.partition] = max(self.latest.get(one.partition, 0.0), one.newest)
        ended = self.own_keys.intersection(self._remove(self._expired()))
        ended |= self._evict()
        self.own_keys -= ended
        return made | dict.fromkeys(ended)

    def _remove(self, keys: list[str]) -> list[str]:
        for key in keys:
            del self.states[key]
            self.size -= self.sizes.pop(key)
        return keys

    def _evict(self) -> set[str]:
        """Drop the least recently used keys beyond the limits; return and count our own."""
        found, ours = list[str](), set[str]()
        most, room = (self.stone.options.get(name, usual) for name, (usual, _) in STATE_LIMITS.items())
        left, size = len(self.states), self.size
        for key, one in self.states.items():
            if left <= most and size <= room << 20:
                break
            found.append(key)
            left, size = left - 1, size - self.sizes[key]
            if key in self.own_keys or one.partition in self.latest:
                ours.add(key)
        self._remove(found)
        self.evicted += len(ours)
        if ours and self._limiter.allows():
            log.warning(
                "flow %s: %s keeps at most %d objects and %d MiB: %d were let go early so far",
                self.flow, self.stone.name, most, room, self.evicted,
            )  # fmt: skip
        return ours

    def _expired(self) -> list[str]:
        """Return the expired keys of partitions that went on by `length` since the last expiry."""
        due = {one: now for one, now in self.latest.items() if now >= self.swept.get(one, 0.0) + self.length}
        self.swept |= due
        kept = self.states.items() if due else ()
        return [key for key, one in kept if one.newest < due.get(one.partition, 0.0) - self.length]

    def rows(self, events: Sequence[Event], names: Sequence[str]) -> Iterator[tuple[Event, Any]]:
        """Yield *events* with the fields *names* of their alerts, or why one has none.

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
        rows: list[Any] = [str(found.faults.get(index, "no alert")) for index in range(len(events))]
        columns = zip(*(table[name].items for name in names), strict=True)
        for index, row in zip(found.rows, columns, strict=True):
            rows[index] = row
        return rows
