"""The two questions: how long one message takes there and back, and how many follow each other."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from nightwire.benchmarks.model.scenario import Experiment, RunError
from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.model.statistics import quantile
from nightwire.benchmarks.scenarios.messages.plan import MIB, Plan, Point, name_of
from nightwire.benchmarks.workers.alerts.sender import Load, Sent
from nightwire.benchmarks.workers.alerts.transfer import (
    BYTES,
    DICTS,
    Transfer,
    TransferResult,
    checked_result,
)
from nightwire.benchmarks.workers.pool import WorkerPool

KEPT = {"retention.bytes": str(64 * MIB), "segment.bytes": str(32 * MIB)}
"""Of topics through which messages go to and fro: each is read at once, and never again."""
FEW = 20
"""Messages of a size, and round trips, ahead of the first pair."""


class PingPong(Experiment):
    """One message of each size at a time goes to another process and back, through two topics.

    Args:
        crew: The processes.
        plan: What is measured.
    """

    name = "pingpong"

    def __init__(self, crew: WorkerPool, plan: Plan) -> None:
        self._crew, self._plan = crew, plan
        self.trips: dict[tuple[Kind, int], list[float]] = defaultdict(list)

    def prepare(self) -> None:
        """Start Kafka and the processes, and let some messages go to and fro."""
        for kind in Kind:
            self._play(kind, min(FEW, self._plan.trips))

    def run_once(self, kind: Kind) -> Figures:
        """Let messages of all sizes go to and fro."""
        figures: Figures = {}
        for size, taken in self._play(kind, self._plan.trips).items():
            self.trips[kind, size] += taken
            figures |= of_trips(size, taken)
        return figures

    def _play(self, kind: Kind, trips: int) -> dict[int, list[float]]:
        """Return how long each round trip took [s], by the size of its message."""
        pools = {size: self._crew.pool(size) for size in self._plan.pingpong}
        with ExitStack() as exits:
            there, back = (
                exits.enter_context(self._crew.cluster.topic(way, partitions=1, config=KEPT))
                for way in ("there", "back")
            )
            shared = {"ready": kind is Kind.BASELINE, "trips": trips, "seconds": self._plan.seconds}
            ping = {**shared, "part": "ping", "out": there, "back": back, "pools": pools}
            echo = {**shared, "part": "echo", "out": back, "back": there}
            found, echoed = self._hear(ping, echo)
            held = self._crew.held(there), self._crew.held(back)
        if held != (echoed, echoed):
            raise RunError(f"{held[0]} messages were sent, {echoed} echoed, {held[1]} came back")
        return {int(size): taken for size, taken in found.items()}

    def _hear(self, ping: Mapping[str, Any], echo: Mapping[str, Any]) -> tuple[Any, int]:
        with self._crew.in_place(["producer", "consumer"], [ping, echo]) as (pinger, echoer):
            echoer.begin()
            pinger.begin()
            found = pinger.hear()
            echoer.begin()  # that is its end
            return found, echoer.hear()["records"]


def of_trips(size: int, taken: Sequence[float]) -> Figures:
    """Return the figures of round trips of messages of *size* [byte] that took so long [s].

    As ever with ping-pong, latency is half a round trip, and bandwidth the size over half their mean.
    """
    name = name_of(size)
    return {
        f"latency_{name}_p50_ms": 1e3 * quantile(taken, 0.5) / 2,
        f"latency_{name}_p99_ms": 1e3 * quantile(taken, 0.99) / 2,
        f"pingpong_{name}_megabytes_per_second": bandwidth(size, taken),
    }


def bandwidth(size: int, taken: Sequence[float]) -> float:
    """Return the bandwidth of such round trips. [MB/s]"""
    return 2e-6 * size * len(taken) / sum(taken)


class Flow(Experiment):
    """Messages follow each other from some producers to some consumers, each of which reads all.

    Args:
        crew: The processes.
        plan: What is measured.
        point: How many producers and consumers.
    """

    def __init__(self, crew: WorkerPool, plan: Plan, point: Point) -> None:
        self.name = point.label.replace("_", " ")
        self._crew, self._plan, self.point = crew, plan, point
        self.rates: dict[tuple[Kind, int], list[float]] = defaultdict(list)

    def prepare(self) -> None:
        """Start Kafka and the processes, and move some small and some large messages."""
        for kind in Kind:
            for size in {min(self._plan.flow), max(self._plan.flow)}:
                self._play(kind, size, min(FEW, self._plan.count(size)))

    def run_once(self, kind: Kind) -> Figures:
        """Move messages of each size."""
        figures: Figures = {}
        for size in self._plan.flow:
            played = self._play(kind, size, self._plan.count(size))
            rate = played.size / 1e6 / played.seconds
            self.rates[kind, size].append(rate)
            figures[flow_name(self.point, size)] = rate
        return figures

    def _play(self, kind: Kind, size: int, count: int) -> TransferResult:
        """Move *count* messages of *size* from all producers to each consumer, through a new topic."""
        ready = kind is Kind.BASELINE
        work = BYTES if ready else DICTS
        move = Transfer(Load(count, ready=ready), self.point.producers, (work,) * self.point.consumers)
        with self._crew.cluster.topic("flow") as topic:
            sent, found = self._move(move, topic, self._crew.pool(size))
            held = self._crew.held(topic)
        return checked_result(move, size, sent, [{**one, "left": held - one["records"]} for one in found])

    def _move(self, move: Transfer, topic: str, pool: str) -> tuple[list[Sent], list[dict[str, Any]]]:
        where = {"topic": topic, "ready": move.load.ready}
        take = {**where, "part": "take", "expect": move.load.alerts}
        takers: list[Mapping[str, Any]] = [take for _ in move.consumers]
        senders = [{**where, "part": "send", "pool": pool, "load": asdict(load)} for load in move.loads]
        roles = ["consumer"] * len(takers) + ["producer"] * len(senders)
        with self._crew.in_place(roles, [*takers, *senders]) as peers:
            for peer in peers:
                peer.begin()
            found = [peer.hear() for peer in peers]
        return [Sent(**one) for one in found[len(takers) :]], found[: len(takers)]


def flow_name(point: Point, size: int) -> str:
    """Return what the bandwidth of a flow is called in the results."""
    return f"{point.label}_{name_of(size)}_megabytes_per_second"
