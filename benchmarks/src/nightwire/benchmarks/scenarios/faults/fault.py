"""One fault: streams run, a process is killed with -9 and restarted, and the streams recover."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from nightwire.benchmarks import Experiment, Figures, Kind, Size
from nightwire.benchmarks.scenarios.faults.recovery import Times, longest_gap, recovery
from nightwire.benchmarks.scenarios.faults.streams import ALERT, EVENT, Stream, Streams

LEAD = 0.4
"""Share of a run without a fault that lies before it."""


@dataclass(frozen=True)
class Victim:
    """Who is killed.

    Attributes:
        name: Its name in figures.
        title: For people.
        strikes: Streams that it carries.
        kill: Kills it with -9.
        start: Starts it again; returns when it serves.
    """

    name: str
    title: str
    strikes: tuple[str, ...]
    kill: Callable[[Streams], object]
    start: Callable[[Streams], object]


VICTIMS = (
    Victim(
        "engine",
        "the filter engine",
        (ALERT,),
        lambda run: run.environment.engine.kill(),
        lambda run: run.environment.engine.start(),
    ),
    Victim(
        "gateway",
        "the gateway",
        (EVENT,),
        lambda run: run.environment.gateway.kill(),
        lambda run: run.environment.start_gateway(),
    ),
    Victim(
        "kafka",
        "the only Kafka",
        (ALERT, EVENT),
        lambda run: run.environment.engine.kill_broker(),
        lambda run: run.environment.engine.start_broker(),
    ),
    Victim(
        "consumer",
        "the owner's reader",
        (ALERT,),
        lambda run: run.kill_owner(),
        lambda run: run.start_owner(),
    ),
)


@dataclass(frozen=True)
class Timing:
    """How long the streams run. [s]

    Attributes:
        lead: Before the fault.
        tail: From when what was killed serves again; without a fault, after the lead.
    """

    lead: float
    tail: float

    @classmethod
    def of(cls, size: Size) -> Self:
        """Return that of a run in which, without a fault, so many alerts are sent."""
        lasting = size.alerts / size.rate
        return cls(LEAD * lasting, (1 - LEAD) * lasting)


class Fault(Experiment):
    """A stream with a fault, and the same stream without."""

    def __init__(self, streams: Streams, victim: Victim, timing: Timing) -> None:
        self.name = victim.name
        self._streams, self._victim, self._timing = streams, victim, timing
        self.delays: dict[str, list[tuple[float, float]]] = {}

    def prepare(self) -> None:
        """Start everything, and let some of each stream through, unless that was done."""
        if not self._streams.run:
            self._streams.environment.start()
            self._play(Kind.BASELINE)

    def run_once(self, kind: Kind) -> Figures:
        """Let the streams run, with the fault or without.

        Raises:
            RunError: Something was lost, or is in no account.
        """
        killed, restarted, streams = self._play(kind)
        name = self._victim.name
        gaps = {
            f"{name}_{one}_gap_seconds": longest_gap(streams[one].arrived.values())
            for one in self._struck(streams)
        }
        if kind is Kind.BASELINE:
            return gaps
        figures = gaps | {
            f"{name}_sent": float(sum(len(one.due) for one in streams.values())),
            f"{name}_lost": 0.0,  # whatever is lost ends the run in an error that names it
            f"{name}_twice": float(sum(one.twice for one in streams.values())),
        }
        for one in self._struck(streams):
            figures |= self._recovered(one, streams[one], killed, restarted)
        return figures

    def _play(self, kind: Kind) -> tuple[float, float, Mapping[str, Stream]]:
        """Return when the victim was killed and restarted [s], and what came of the streams."""
        killed = restarted = 0.0
        with self._streams.running():
            time.sleep(self._timing.lead)
            if kind is Kind.SUBJECT:
                killed = time.monotonic()
                self._victim.kill(self._streams)
                restarted = time.monotonic()
                self._victim.start(self._streams)
            time.sleep(self._timing.tail)
            return killed, restarted, self._streams.stop()

    def _struck(self, streams: Mapping[str, Stream]) -> list[str]:
        return [one for one in self._victim.strikes if one in streams]

    def _recovered(self, name: str, stream: Stream, killed: float, restarted: float) -> Figures:
        found = recovery(stream.due, stream.arrived, killed=killed, restarted=restarted)
        self.delays[name] = around(stream.due, stream.arrived, killed)
        start = f"{self._victim.name}_{name}"
        return {f"{start}_first_seconds": found.first, f"{start}_backlog_seconds": found.backlog}


def around(due: Times, arrived: Times, moment: float) -> list[tuple[float, float]]:
    """Return how long after *moment* each thing was due, and how long after that it came. [s]"""
    return [(due[name] - moment, arrived[name] - due[name]) for name in sorted(due, key=due.__getitem__)]
