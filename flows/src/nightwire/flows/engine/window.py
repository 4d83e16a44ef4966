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

from nightwire.core.kafka import TopicPartition
from nightwire.flows.engine.events import Event, Lacking, Outcome
from nightwire.flows.engine.keeping import USUAL, Keeper
from nightwire.flows.model import MOST_HELD, field_of, seconds
from nightwire.schemas import Codec, wire

DAY = 86_400.0  # [s]
UNIX_EPOCH = 40_587.0  # [d, MJD]
AHEAD = 1.0
"""So much later than its record was written an alert's time may be: clocks differ. [d]"""

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

    @property
    def partition(self) -> TopicPartition:
        """Where the newest sample was at first."""
        return self.samples[-1].topic, self.samples[-1].partition

    @property
    def newest(self) -> float:
        """The time of the newest sample. [d, MJD, TAI]"""
        return self.samples[-1].time

    def encoded(self) -> bytes:
        """Return it as it is kept."""
        return json.dumps([self.beyond, self.samples], separators=(",", ":")).encode()


@dataclass
class WindowRunner(Keeper[Held]):
    """Keeps a window of each object."""

    def __post_init__(self) -> None:
        options = self.stone.options
        self._within = seconds(options["within"]) / DAY
        self._above, self._below = options.get("above", -math.inf), options.get("below", math.inf)
        by, value = (field_of(options.get(key, usual), self.survey.name) for key, usual in USUAL.items())
        self._names = (by, "mjd_tai", value, "id")
        self._codec = Codec(EVENT_SCHEMA)

    @property
    def length(self) -> float:
        """Its length. [d]"""
        return self._within

    def decoded(self, value: bytes) -> Held:
        """Return what `Held.encoded` gave."""
        beyond, found = json.loads(value)
        samples = [Sample(*one) for one in found]
        if not samples or not isinstance(beyond, bool):
            raise ValueError("it is no window's")
        return Held(samples, beyond)

    def run(self, events: Sequence[Event]) -> Outcome:
        """Return what the windows say; an alert without object, time or value counts for none."""
        outcome, touched = Outcome({"": []}), dict[str, Held]()
        for event, key, sample in self._samples(events):
            if isinstance(sample, str):
                outcome.faults.append((event, sample))
                continue
            held = touched[key] = self.held.setdefault(key, Held())
            if (value := self._added(held, sample)) is not None:
                made = self._encoded(key, held, value)
                said = replace(event, value=made, key=key.encode(), stone=self.stone.name, headers=())
                outcome.passed[""].append(said)
        outcome.state = self.state(touched)
        return outcome

    def _added(self, held: Held, sample: Sample) -> float | None:
        """Add *sample* to a window; return the value that there is to say, else None."""
        begin = max([sample.time, *(one.time for one in held.samples[-1:])]) - self._within
        held.samples = sorted(one for one in [*held.samples, sample] if one.time >= begin)[-MOST_HELD:]
        if sample.time < begin:
            return None
        value = float(FUNCTIONS[self.stone.options["function"]]([one.value for one in held.samples]))
        before, held.beyond = held.beyond, self._above < value < self._below
        again = before and not {"above", "below"}.isdisjoint(self.stone.options)
        return value if held.beyond and not again else None

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

    def _samples(self, events: Sequence[Event]) -> Iterator[tuple[Event, str, Sample | str]]:
        """Yield the objects and samples of *events* in their order, or why there is none."""
        for event, row in self.rows(events, self._names):
            if isinstance(row, str):
                yield event, "", row
                continue
            key, time, value, alert = row
            there = (key is not None, _is_number(time), _is_number(value))
            if lacking := [name for name, has in zip(self._names, there, strict=False) if not has]:
                yield event, "", Lacking(f"no {lacking[0]}")
            elif event.written and time > event.written / DAY / 1000 + UNIX_EPOCH + AHEAD:
                # it would close the object's window to all that come before that time
                yield event, "", f"its time, MJD {time:g}, is more than a day after it was written"
            else:
                yield event, str(key), Sample(float(time), float(value), str(alert), *event.origin)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
