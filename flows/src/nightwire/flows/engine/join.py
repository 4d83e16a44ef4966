"""Joins: an object's last alerts beside what brokers returned of it.

The time is that of the records: a return has no other.  Alerts and returns of one object may lie in
partitions of different workers, so all of them wait in the join's queue, which has one partition.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, NamedTuple

from nightwire.consumers.returns import message_faults
from nightwire.core.kafka import MAX_MESSAGE, TopicPartition
from nightwire.flows.engine.events import Event, Lacking, Outcome
from nightwire.flows.engine.keeping import Keeper
from nightwire.flows.model import seconds
from nightwire.schemas import Codec, DecodeError, RegistryAwayError, SchemaError, wire

RETURNS = "returns."
MOST = 100
"""Most alerts, and most returns, of one object where nobody says: the newest."""
LARGEST = MAX_MESSAGE - (64 << 10)
"""Longest record of what is kept of an object. [byte]"""

EVENT_SCHEMA: Mapping[str, Any] = json.loads(
    files(__package__).joinpath("join_event.avsc").read_text(encoding="utf-8")
)
"""Schema of the events."""


class Past(NamedTuple):
    """What a join keeps of an alert."""

    written: int
    topic: str
    partition: int
    offset: int
    alert: str
    mjd_tai: float | None
    band: str | None
    flux: float | None


class Returned(NamedTuple):
    """What a join keeps of a return."""

    written: int
    topic: str
    partition: int
    offset: int
    alert: str
    classifier: str
    version: str
    classes: Mapping[str, float]


@dataclass
class Held:
    """What is kept of one object, each the oldest first."""

    alerts: list[Past] = field(default_factory=list)
    returns: list[Returned] = field(default_factory=list)

    @property
    def partition(self) -> TopicPartition:
        """The one partition of the join's queue, through which all comes."""
        return "", 0

    @property
    def newest(self) -> float:
        """When the newest record was written. [ms since 1970]"""
        return max([one.written for one in self.alerts[-1:]] + [one.written for one in self.returns[-1:]])

    def encoded(self) -> bytes:
        """Return it as it is kept."""
        return json.dumps([self.alerts, self.returns], separators=(",", ":")).encode()

    def bound(self, oldest: float, most: int) -> None:
        """Let go what is older than *oldest* [ms since 1970], or more than *most*."""
        self.alerts = [one for one in self.alerts if one.written >= oldest][-most:]
        self.returns = [one for one in self.returns if one.written >= oldest][-most:]


@dataclass
class JoinRunner(Keeper[Held]):
    """Keeps the past of each object.

    Attributes:
        returns: Whether brokers' returns come in: then it speaks where both sides are there.
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
        """For how long a record counts. [ms]"""
        return seconds(self.stone.options["within"]) * 1000

    def decoded(self, value: bytes) -> Held:
        """Return what `Held.encoded` gave."""
        alerts, returned = json.loads(value)
        if not alerts and not returned:
            raise ValueError("it is no join's")
        return Held([Past(*one) for one in alerts], [Returned(*one) for one in returned])

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return what is known of the objects; what has none counts for none."""
        outcome, touched = Outcome({"": []}), dict[str, Held]()
        for event, key, found in self._found(events):
            if isinstance(found, str):
                outcome.faults.append((event, found))
                continue
            if (length := len(json.dumps(found))) > self._longest:
                why = f"{length} bytes are too many to keep, beside {self._most} of an object"
                outcome.faults.append((event, why))
                continue
            held = touched[key] = self.held.setdefault(key, Held())
            (held.alerts if isinstance(found, Past) else held.returns).append(found)  # type: ignore[arg-type]
            held.bound(held.newest - self.length, self._most)
            if held.alerts and (held.returns or not self.returns):
                value = self._encoded(key, held)
                said = replace(event, value=value, key=key.encode(), stone=self.stone.name, headers=())
                outcome.passed[""].append(said)
        outcome.state = self.state(touched)
        return outcome

    def _encoded(self, key: str, held: Held) -> bytes:
        past = [one._asdict() for one in held.alerts]
        made = {"flow": self.flow, "stone": self.stone.name, "object": key, "alerts": past}
        made["returns"] = [one._asdict() for one in held.returns]
        return wire.frame(self.schema_id, self._codec.encode(made))

    def _found(self, events: Sequence[Event]) -> Iterator[tuple[Event, str, Past | Returned | str]]:
        """Yield the objects of *events* in their order, and what is kept, or why nothing is."""
        if self.held is not self._indexed or len(self._objects) > self._most_indexed:
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
                yield event, "", row if isinstance(row, str) else Lacking(f"no {self._by}")
                continue
            key, alert, time, band, flux = row
            self._objects[str(alert)] = str(key)
            kept = Past(event.written, *event.origin, str(alert), _finite(time), band, _finite(flux))
            yield event, str(key), kept

    def _returned(self, event: Event) -> tuple[str, Returned | str]:
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
        kept = Returned(
            event.written, *event.origin, str(alert), record["classifierName"],
            record["classifierVersion"], classes,
        )  # fmt: skip
        key = alert if self._by == "id" else view.object_id
        key = self._objects.get(str(alert), "") if key is None else str(key)
        return (key, kept) if key else ("", Lacking("returned of no object that is held"))

    def _index(self) -> None:
        """Note whose the alerts are that are held: by now, or instead of others."""
        self._indexed = self.held
        self._objects = {one.alert: key for key, kept in self.held.items() for one in kept.alerts}
        self._most_indexed = 2 * len(self._objects) + 1000


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
