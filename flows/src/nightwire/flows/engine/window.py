"""Windows: an aggregate over the last alerts of one object, and the event when it counts.

Time is event time (MJD, TAI), not the clock's: a replayed night gives the same events.
A window holds the alerts of one object that are not older than its length before the newest.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, NamedTuple

from nightwire.core.kafka import TopicPartition
from nightwire.flows.engine.events import Event, Outcome, Rejection
from nightwire.flows.engine.keyed_state import DEFAULTS, StatefulRunner
from nightwire.flows.model import MOST_ALERTS, field_of, seconds
from nightwire.schemas import Codec, wire

DAY = 86_400.0  # [s]
UNIX_EPOCH = 40_587.0  # [d, MJD]
AHEAD = 1.0
"""An alert's time may be so much later than its record's: clocks differ. [d]"""

EVENT_SCHEMA: Mapping[str, Any] = json.loads(
    files(__package__).joinpath("window_event.avsc").read_text(encoding="utf-8")
)
"""Schema of the events that leave."""

FUNCTIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "count": len,
    "mean": lambda values: math.fsum(values) / len(values),
    "min": min,
    "max": max,
    "sum": math.fsum,
}


class Sample(NamedTuple):
    """An alert in a window: time [d, MJD, TAI], value, id, and its record."""

    time: float
    value: float
    alert: str
    topic: str
    partition: int
    offset: int


@dataclass
class WindowState:
    """One object's window: samples by time, and whether the value is past the threshold."""

    samples: list[Sample] = field(default_factory=list)
    beyond: bool = False

    @property
    def partition(self) -> TopicPartition:
        """The newest sample's original partition."""
        return self.samples[-1].topic, self.samples[-1].partition

    @property
    def newest(self) -> float:
        """The time of the newest sample. [d, MJD, TAI]"""
        return self.samples[-1].time

    def encoded(self) -> bytes:
        """Return the state as the value of its record."""
        return json.dumps([self.beyond, self.samples], separators=(",", ":")).encode()


@dataclass
class WindowRunner(StatefulRunner[WindowState]):
    """Runs a window stone: keeps a window of each object."""

    def __post_init__(self) -> None:
        options = self.stone.options
        self._within = seconds(options["within"]) / DAY
        self._above, self._below = options.get("above", -math.inf), options.get("below", math.inf)
        by, value = (field_of(options.get(key, usual), self.survey.name) for key, usual in DEFAULTS.items())
        self._names = (by, "mjd_tai", value, "id")
        self._codec = Codec(EVENT_SCHEMA)

    @property
    def length(self) -> float:
        """Length of the window. [d]"""
        return self._within

    def decoded(self, value: bytes) -> WindowState:
        """Return the state that `WindowState.encoded` gave."""
        beyond, found = json.loads(value)
        samples = [Sample(*one) for one in found]
        if not samples or not isinstance(beyond, bool):
            raise ValueError("it is no window's")
        return WindowState(samples, beyond)

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return the windows' events; an alert without object, time or value is rejected."""
        outcome, touched = Outcome({"": []}), dict[str, WindowState]()
        for event, key, sample in self._samples(events):
            if isinstance(sample, str):
                outcome.faults.append((event, sample))
                continue
            window = touched[key] = self.states.setdefault(key, WindowState())
            if (value := self._add(window, sample)) is not None:
                encoded = self._encoded(key, window, value)
                made = replace(event, value=encoded, key=key.encode(), stone=self.stone.name, headers=())
                outcome.passed[""].append(made)
        outcome.state = self.changes(touched)
        return outcome

    def _add(self, window: WindowState, sample: Sample) -> float | None:
        """Add *sample* to *window*; return its value where an event is due, else None."""
        begin = max([sample.time, *(one.time for one in window.samples[-1:])]) - self._within
        window.samples = sorted(one for one in [*window.samples, sample] if one.time >= begin)[-MOST_ALERTS:]
        if sample.time < begin:
            return None
        value = float(FUNCTIONS[self.stone.options["function"]]([one.value for one in window.samples]))
        before, window.beyond = window.beyond, self._above < value < self._below
        again = before and not {"above", "below"}.isdisjoint(self.stone.options)
        return value if window.beyond and not again else None

    def _encoded(self, key: str, window: WindowState, value: float) -> bytes:
        made = {
            "flow": self.flow,
            "stone": self.stone.name,
            "object": key,
            "function": self.stone.options["function"],
            "value": value,
            "count": len(window.samples),
            "begin": window.samples[0].time,
            "end": window.samples[-1].time,
            "causes": [
                {"topic": one.topic, "partition": one.partition, "offset": one.offset, "alert": one.alert}
                for one in window.samples
            ],
        }
        return wire.frame(self.schema_id, self._codec.encode(made))

    def _samples(self, events: Sequence[Event]) -> Iterator[tuple[Event, str, Sample | str]]:
        """Yield object and sample of each of *events*, or why it has none."""
        for event, row in self.rows(events, self._names):
            if isinstance(row, str):
                yield event, "", row
                continue
            key, time, value, alert = row
            there = (key is not None, _is_number(time), _is_number(value))
            if lacking := [name for name, has in zip(self._names, there, strict=False) if not has]:
                yield event, "", Rejection(f"no {lacking[0]}")
            elif event.written and time > event.written / DAY / 1000 + UNIX_EPOCH + AHEAD:
                # it would close the object's window to all that come before that time
                yield event, "", f"its time, MJD {time:g}, is more than a day after it was written"
            else:
                yield event, str(key), Sample(float(time), float(value), str(alert), *event.origin)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
