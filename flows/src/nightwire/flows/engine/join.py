"""Joins: an object's last alerts with the classifications that brokers returned of it.

Time is that of the records: a return has no other.  Alerts and returns of one object may lie in
partitions of different workers, so both go through the join's queue, which has one partition.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, NamedTuple

from nightwire.consumers.returns import message_faults
from nightwire.core.kafka import MAX_MESSAGE, TopicPartition
from nightwire.flows.engine.events import Event, Outcome, Rejection
from nightwire.flows.engine.keyed_state import StatefulRunner
from nightwire.flows.model import seconds
from nightwire.schemas import Codec, DecodeError, RegistryAwayError, SchemaError, wire

RETURNS = "returns."
MOST = 100
"""Default limit of the alerts, and of the returns, of one object: the newest are kept."""
LARGEST = MAX_MESSAGE - (64 << 10)
"""Longest state of an object. [byte]"""

EVENT_SCHEMA: Mapping[str, Any] = json.loads(
    files(__package__).joinpath("join_event.avsc").read_text(encoding="utf-8")
)
"""Schema of the events that leave."""


class JoinedAlert(NamedTuple):
    """An alert in a join; ``written`` in ms since 1970, ``flux`` in nJy."""

    written: int
    topic: str
    partition: int
    offset: int
    alert: str
    mjd_tai: float | None
    band: str | None
    flux: float | None


class JoinedReturn(NamedTuple):
    """A broker's return in a join; ``classes`` are probabilities."""

    written: int
    topic: str
    partition: int
    offset: int
    alert: str
    classifier: str
    version: str
    classes: Mapping[str, float]


@dataclass
class JoinState:
    """One object's alerts and returns, the oldest first."""

    alerts: list[JoinedAlert] = field(default_factory=list)
    returns: list[JoinedReturn] = field(default_factory=list)

    @property
    def partition(self) -> TopicPartition:
        """The only partition of the join's queue."""
        return "", 0

    @property
    def newest(self) -> float:
        """When the newest record was written. [ms since 1970]"""
        return max([one.written for one in self.alerts[-1:]] + [one.written for one in self.returns[-1:]])

    def encoded(self) -> bytes:
        """Return the state as the value of its record."""
        return json.dumps([self.alerts, self.returns], separators=(",", ":")).encode()

    def bound(self, oldest: float, most: int) -> None:
        """Drop records older than *oldest* [ms since 1970], and the oldest beyond *most*."""
        self.alerts = [one for one in self.alerts if one.written >= oldest][-most:]
        self.returns = [one for one in self.returns if one.written >= oldest][-most:]


@dataclass
class JoinRunner(StatefulRunner[JoinState]):
    """Runs a join stone: keeps the alerts and returns of each object.

    Attributes:
        returns: Whether brokers' returns come in: then an event needs an alert and a return.
    """

    returns: bool = False

    def __post_init__(self) -> None:
        self._by = self.stone.options.get("by", "object_id")
        self._most = self.stone.options.get("most", MOST)
        self._longest = LARGEST // (2 * self._most)  # else Kafka would refuse what is kept
        self._codec = Codec(EVENT_SCHEMA)
        self._index()

    @property
    def length(self) -> float:
        """Time for which a record counts. [ms]"""
        return seconds(self.stone.options["within"]) * 1000

    def decoded(self, value: bytes) -> JoinState:
        """Return the state that `JoinState.encoded` gave."""
        alerts, returned = json.loads(value)
        if not alerts and not returned:
            raise ValueError("it is no join's")
        return JoinState([JoinedAlert(*one) for one in alerts], [JoinedReturn(*one) for one in returned])

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return the joined events; an alert or return without an object is rejected."""
        outcome, touched = Outcome({"": []}), dict[str, JoinState]()
        for event, key, found in self._found(events):
            if isinstance(found, str):
                outcome.faults.append((event, found))
                continue
            if (length := len(json.dumps(found))) > self._longest:
                why = f"{length} bytes are too many to keep, beside {self._most} of an object"
                outcome.faults.append((event, why))
                continue
            state = touched[key] = self.states.setdefault(key, JoinState())
            (state.alerts if isinstance(found, JoinedAlert) else state.returns).append(found)  # type: ignore[arg-type]
            state.bound(state.newest - self.length, self._most)
            if state.alerts and (state.returns or not self.returns):
                value = self._encoded(key, state)
                made = replace(event, value=value, key=key.encode(), stone=self.stone.name, headers=())
                outcome.passed[""].append(made)
        outcome.state = self.changes(touched)
        return outcome

    def _encoded(self, key: str, state: JoinState) -> bytes:
        past = [one._asdict() for one in state.alerts]
        made = {"flow": self.flow, "stone": self.stone.name, "object": key, "alerts": past}
        made["returns"] = [one._asdict() for one in state.returns]
        return wire.frame(self.schema_id, self._codec.encode(made))

    def _found(
        self, events: Sequence[Event]
    ) -> Iterator[tuple[Event, str, JoinedAlert | JoinedReturn | str]]:
        """Yield object and kept form of each of *events*, or why it has none."""
        if self.states is not self._indexed or len(self._objects) > self._most_indexed:
            self._index()
        names = (self._by, "id", "mjd_tai", "band", "flux")
        alerts = [one for one in events if not one.origin.topic.startswith(RETURNS)]
        rows = self.rows(alerts, names) if alerts else iter(())
        for event in events:
            if event.origin.topic.startswith(RETURNS):
                yield event, *self._returned(event)
                continue
            _, row = next(rows)
            if isinstance(row, str) or row[0] is None:
                yield event, "", row if isinstance(row, str) else Rejection(f"no {self._by}")
                continue
            key, alert, time, band, flux = row
            self._objects[str(alert)] = str(key)
            kept = JoinedAlert(event.written, *event.origin, str(alert), _finite(time), band, _finite(flux))
            yield event, str(key), kept

    def _returned(self, event: Event) -> tuple[str, JoinedReturn | str]:
        try:
            record = self.decoder.decode(event.value).alert
        except RegistryAwayError:
            raise
        except (DecodeError, SchemaError) as error:
            return "", str(error)
        view = self.survey.view(record)
        alert = self.survey.find_alert_id(record)
        faults = message_faults(record, event.origin.topic.removeprefix(RETURNS), alert)
        if faults:
            return "", "; ".join(faults)
        classes = {str(one["classId"]): float(one["probability"]) for one in record["classifications"]}
        kept = JoinedReturn(
            event.written, *event.origin, str(alert), record["classifierName"],
            record["classifierVersion"], classes,
        )  # fmt: skip
        key = alert if self._by == "id" else view.object_id
        key = self._objects.get(str(alert), "") if key is None else str(key)
        return (key, kept) if key else ("", Rejection("returned of no object that is held"))

    def _index(self) -> None:
        """Build the index from alert to object anew, over the states as they are."""
        self._indexed = self.states
        self._objects = {one.alert: key for key, kept in self.states.items() for one in kept.alerts}
        self._most_indexed = 2 * len(self._objects) + 1000


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
