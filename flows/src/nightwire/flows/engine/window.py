"""Windows: what the last minutes of one object add up to, and the event when it matters.

The time is that of the alerts (MJD, TAI), not of the clock: a replayed night gives the same events.
A window holds the alerts of one object that are not older than its length before the newest.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, NamedTuple

from nightwire.flows.engine.events import Event, Origin, Outcome
from nightwire.flows.model import Stone, seconds
from nightwire.schemas import AlertDecoder, AlertTable, Codec, RegistryAwayError, SchemaError, Survey, wire

DAY = 86_400.0  # [s]
MOST_ALERTS = 1000
"""Most alerts that a window holds of one object: the newest."""
SWEEP = 50_000
"""Objects after which those are forgotten whose alerts are all too old."""

EVENT_SCHEMA: Mapping[str, Any] = json.loads(
    files(__package__).joinpath("window_event.avsc").read_text(encoding="utf-8")
)
"""Schema of the events."""

FUNCTIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "count": len,
    "mean": lambda values: math.fsum(values) / len(values),
    "min": min,
    "max": max,
    "sum": math.fsum,
}


class Sample(NamedTuple):
    """What a window keeps of an alert: time [d], value, identity."""

    time: float
    value: float
    alert: str
    topic: str
    partition: int
    offset: int


@dataclass
class Held:
    """What is kept of one object: its samples in order of time, and whether they are beyond."""

    samples: list[Sample] = field(default_factory=list)
    beyond: bool = False

    def encoded(self) -> bytes:
        """Return it as it is kept."""
        return json.dumps([self.beyond, self.samples], separators=(",", ":")).encode()


def decoded(value: bytes) -> Held:
    """Return what `Held.encoded` gave."""
    beyond, samples = json.loads(value)
    return Held([Sample(*one) for one in samples], beyond)


@dataclass
class WindowRunner:
    """Keeps a window of each object.

    Attributes:
        flow: Name of the flow.
        stone: What it is to do.
        survey: Whose alerts.
        decoder: Reads them.
        schema_id: Of the events.
        held: The windows, by object: filled from Kafka when partitions are assigned.
    """

    flow: str
    stone: Stone
    survey: Survey
    decoder: AlertDecoder
    schema_id: int
    held: dict[str, Held] = field(default_factory=dict)

    def __post_init__(self) -> None:
        options = self.stone.options
        self._within = seconds(options["within"]) / DAY
        self._names = (options.get("by", "object_id"), options.get("value", "mjd_tai"))
        self._codec = Codec(EVENT_SCHEMA)
        self._newest = 0.0

    def restore(self, state: Mapping[str, bytes]) -> None:
        """Hold what *state*, by object, says."""
        self.held = {key: decoded(value) for key, value in state.items()}

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return what the windows say; an alert without object, time or value is a fault."""
        outcome, touched = Outcome({"": []}), dict[str, Held]()
        for event, key, sample, why in self._samples(events):
            if why:
                outcome.faults.append((event, why))
                continue
            held = touched[key] = self.held.setdefault(key, Held())
            if (value := self._added(held, sample)) is not None:
                made = self._encoded(key, held, value)
                said = replace(event, value=made, key=key.encode(), stone=self.stone.name, headers=())
                outcome.passed[""].append(said)
        outcome.state = {key: held.encoded() for key, held in touched.items()}
        self._sweep()
        return outcome

    def _added(self, held: Held, sample: Sample) -> float | None:
        """Add *sample* to a window; return the value that there is to say, else None."""
        self._newest = max(self._newest, sample.time)
        begin = max([sample.time, *(one.time for one in held.samples[-1:])]) - self._within
        held.samples = sorted(one for one in [*held.samples, sample] if one.time >= begin)[-MOST_ALERTS:]
        if not held.samples or sample.time < begin:
            return None
        value = float(FUNCTIONS[self.stone.options["function"]]([one.value for one in held.samples]))
        before, held.beyond = held.beyond, self._beyond(value)
        return value if held.beyond and not (before and self._has_threshold) else None

    @property
    def _has_threshold(self) -> bool:
        return "above" in self.stone.options or "below" in self.stone.options

    def _beyond(self, value: float) -> bool:
        """Return whether *value* is to be said: beyond the threshold, or there is none."""
        options = self.stone.options
        return bool(options.get("above", -math.inf) < value < options.get("below", math.inf))

    def _encoded(self, key: str, held: Held, value: float) -> bytes:
        made = {
            "flow": self.flow,
            "stone": self.stone.name,
            "object": key,
            "function": self.stone.options["function"],
            "value": value,
            "count": len(held.samples),
            "begin": held.samples[0].time,
            "end": held.samples[-1].time,
            "causes": [
                {"topic": one.topic, "partition": one.partition, "offset": one.offset, "alert": one.alert}
                for one in held.samples
            ],
        }
        return wire.frame(self.schema_id, self._codec.encode(made))

    def _sweep(self) -> None:
        if len(self.held) > SWEEP:
            oldest = self._newest - self._within
            self.held = {key: one for key, one in self.held.items() if one.samples[-1].time >= oldest}

    def _samples(self, events: Sequence[Event]) -> Iterator[tuple[Event, str, Sample, str]]:
        """Yield the objects and samples of *events* in their order, or why there is none."""
        nothing = Sample(0.0, 0.0, "", "", 0, 0)
        try:
            rows = self._rows(events)
        except SchemaError as error:
            if isinstance(error, RegistryAwayError):
                raise
            if len(events) > 1:
                for one in events:
                    yield from self._samples([one])
            else:
                yield events[0], "", nothing, str(error)
            return
        for event, row in zip(events, rows, strict=True):
            if isinstance(row, str):
                yield event, "", nothing, row
                continue
            key, time, value, alert = row
            if key is None or not all(map(_is_number, (time, value))):
                yield event, "", nothing, f"no {self._names[0]}, time or number {self._names[1]} in it"
            else:
                yield event, str(key), _sample(time, value, alert, event.origin), ""

    def _rows(self, events: Sequence[Event]) -> list[Any]:
        """Return object, time, value and id of each alert, or why it has none."""
        names = [self._names[0], "mjd_tai", self._names[1], "id"]
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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _sample(time: float, value: Any, alert: Any, origin: Origin) -> Sample:
    return Sample(float(time), float(value), str(alert), *origin)
