"""The two questions: how long one message takes there and back, and how many follow each other."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from nightwire.benchmarks import Context, Experiment, Figures, Kind, RunError, Size
from nightwire.benchmarks.environment.alert_pool import Alert, make_pool, save_pool
from nightwire.benchmarks.model.statistics import quantile
from nightwire.benchmarks.scenarios.messages.alerts import alerts_of
from nightwire.benchmarks.workers.alerts.sender import Load, Sent
from nightwire.benchmarks.workers.alerts.transfer import (
    BYTES,
    DICTS,
    Transfer,
    TransferResult,
    checked_result,
)
from nightwire.benchmarks.workers.pool import WorkerPool
from nightwire.core.kafka import MAX_MESSAGE
from nightwire.producer.writing import OVERHEAD

KIB, MIB = 1 << 10, 1 << 20
LARGEST = MAX_MESSAGE - OVERHEAD
"""The paper's 4 Mbytes, less what key and headers may take: Kafka takes no larger alert. [byte]"""
PINGPONG = (256, 512, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 128 * KIB, MIB, LARGEST)
FLOW = (256, 2 * KIB, 16 * KIB, 128 * KIB, MIB)
"""The sizes that the paper's text names; those of its plots have no numbers. [byte]"""
MOST = 14
"""Producers or consumers, at most: so many saturated the paper's network."""
NAMES = {LARGEST: "4_mib"} | {size: f"{size // KIB}_kib" for size in PINGPONG if KIB <= size < MIB}


@dataclass(frozen=True)
class Point:
    """So many producers, and so many consumers each of which reads everything."""

    producers: int = 1
    consumers: int = 1

    @property
    def label(self) -> str:
        """What it is called in the names of figures."""
        if self.producers > 1:
            return f"{self.producers}_producers"
        return f"{self.consumers}_consumers" if self.consumers > 1 else "one_to_one"

    @property
    def title(self) -> str:
        """What it is called in their titles."""
        one, other = ("s" if count > 1 else "" for count in (self.producers, self.consumers))
        return f"{self.producers} producer{one}, {self.consumers} consumer{other}"

    def number_of(self, what: str) -> int:
        """Return how many ``producers`` or ``consumers`` it has; 0 where the others are many."""
        count, others = self.producers, self.consumers
        if what == "consumers":
            count, others = others, count
        return count if others == 1 else 0


@dataclass(frozen=True)
class Plan:
    """What a run measures.

    Attributes:
        pingpong: Sizes of single messages that go to and fro. [byte]
        flow: Sizes of messages that follow each other. [byte]
        counts: Numbers of producers, and of consumers.
        trips: Round trips of a size, at most.
        seconds: Time for the round trips of a size, at most. [s]
        messages: Messages of a flow, at most.
        volume: All messages of a flow together, at most. [byte]
    """

    pingpong: Sequence[int]
    flow: Sequence[int]
    counts: Sequence[int]
    trips: int
    seconds: float
    messages: int
    volume: int

    @property
    def points(self) -> list[Point]:
        """One to one, then many producers, then many consumers."""
        many = [count for count in self.counts if count > 1]
        return [Point(), *(Point(producers=n) for n in many), *(Point(consumers=n) for n in many)]

    @property
    def most(self) -> int:
        """Processes at work at the same time, at most."""
        return 1 + max(self.counts)

    def count(self, size: int) -> int:
        """Return how many messages of *size* make a flow."""
        return max(1, min(self.messages, self.volume // size))


def plan_of(size: Size) -> Plan:
    """Return what a run of *size* measures."""
    if size.profile == "full":
        counts = tuple(range(1, MOST + 1))
        return Plan(PINGPONG, FLOW, counts, min(1_000, size.alerts), 10.0, size.alerts, 128 * MIB)
    pingpong, flow = (256, 16 * KIB, 128 * KIB, MIB, LARGEST), (256, 16 * KIB, MIB)
    return Plan(pingpong, flow, (1, 4, MOST), min(200, size.alerts), 1.5, size.alerts, 16 * MIB)


def name_of(size: int) -> str:
    """Return what *size* is called in the names of figures."""
    return NAMES.get(size) or (f"{size // MIB}_mib" if size >= MIB else f"{size}_bytes")


def words_of(size: int) -> str:
    """Return what *size* is called in titles."""
    number, unit = name_of(size).split("_")
    return f"{number} {unit.replace('ib', 'iB').replace('k', 'K').replace('m', 'M')}"


KEPT = {"retention.bytes": str(64 * MIB), "segment.bytes": str(32 * MIB)}
"""Of topics through which messages go to and fro: each is read at once, and never again."""
FEW = 20
"""Messages of a size, and round trips, ahead of the first pair."""
WORKER = "nightwire.benchmarks.scenarios.messages.worker"
OBJECTS = 16
"""Alerts that those of all sizes are made of."""


class MessageWorkers(WorkerPool):
    """Workers that send and take messages, and the files of alerts that they send."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, WORKER)
        self._files: dict[int, str] = {}

    def alerts_file(self, size: int) -> str:
        """Return the file of alerts of *size* [byte] that senders go through in turn."""
        if size not in self._files:
            path = self._context.folder / f"pool-{size}.pickle"
            save_pool(alerts_of(size, self._objects), path)
            self._files[size] = str(path)
        return self._files[size]

    @cached_property
    def _objects(self) -> list[Alert]:
        return make_pool(OBJECTS)


class PingPong(Experiment):
    """One message of each size at a time goes to another process and back, through two topics."""

    name = "pingpong"

    def __init__(self, workers: MessageWorkers, plan: Plan) -> None:
        self._workers, self._plan = workers, plan

    def prepare(self) -> None:
        """Start Kafka and the processes, and let some messages go to and fro."""
        for kind in Kind:
            self.round_trips(kind, min(FEW, self._plan.trips))

    def run_once(self, kind: Kind) -> Figures:
        """Let messages of all sizes go to and fro."""
        figures: Figures = {}
        for size, taken in self.round_trips(kind, self._plan.trips).items():
            figures |= trip_figures(size, taken)
        return figures

    def round_trips(self, kind: Kind, trips: int) -> dict[int, list[float]]:
        """Return how long each round trip took [s], by the size of its message.

        Raises:
            RunError: A message was lost or doubled.
        """
        pools = {size: self._workers.alerts_file(size) for size in self._plan.pingpong}
        with ExitStack() as exits:
            there, back = (
                exits.enter_context(self._workers.cluster.topic(way, partitions=1, config=KEPT))
                for way in ("there", "back")
            )
            shared = {"ready": kind is Kind.BASELINE, "trips": trips, "seconds": self._plan.seconds}
            ping = {**shared, "part": "ping", "out": there, "back": back, "pools": pools}
            echo = {**shared, "part": "echo", "out": back, "back": there}
            found, echoed = self._results(ping, echo)
            held = self._workers.count_in(there), self._workers.count_in(back)
        if held != (echoed, echoed):
            raise RunError(f"{held[0]} messages were sent, {echoed} echoed, {held[1]} came back")
        return {int(size): taken for size, taken in found.items()}

    def _results(self, ping: Mapping[str, Any], echo: Mapping[str, Any]) -> tuple[Any, int]:
        with self._workers.in_place(["producer", "consumer"], [ping, echo]) as (pinger, echoer):
            echoer.signal()
            pinger.signal()
            found = pinger.receive()
            echoer.signal()  # that is its end
            return found, echoer.receive()["records"]


def trip_figures(size: int, taken: Sequence[float]) -> Figures:
    """Return the figures of round trips of messages of *size* [byte] that took so long [s].

    As ever with ping-pong, latency is half a round trip, and bandwidth the size over half their
    mean.
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
        workers: The processes.
        plan: What is measured.
        point: How many producers and consumers.
    """

    def __init__(self, workers: MessageWorkers, plan: Plan, point: Point) -> None:
        self.name = point.label.replace("_", " ")
        self._workers, self._plan, self.point = workers, plan, point

    def prepare(self) -> None:
        """Start Kafka and the processes, and move some small and some large messages."""
        for kind in Kind:
            for size in {min(self._plan.flow), max(self._plan.flow)}:
                self._flow(kind, size, min(FEW, self._plan.count(size)))

    def run_once(self, kind: Kind) -> Figures:
        """Move messages of each size."""
        figures: Figures = {}
        for size in self._plan.flow:
            result = self._flow(kind, size, self._plan.count(size))
            figures[flow_name(self.point, size)] = result.size / 1e6 / result.seconds
        return figures

    def _flow(self, kind: Kind, size: int, count: int) -> TransferResult:
        """Move *count* messages of *size* from producers to each consumer by a new topic."""
        ready = kind is Kind.BASELINE
        work = BYTES if ready else DICTS
        transfer = Transfer(Load(count, ready=ready), self.point.producers, (work,) * self.point.consumers)
        with self._workers.cluster.topic("flow") as topic:
            sent, found = self.move(transfer, topic, self._workers.alerts_file(size))
            held = self._workers.count_in(topic)
        return checked_result(transfer, size, sent, [{**one, "left": held - one["records"]} for one in found])

    def move(self, transfer: Transfer, topic: str, pool: str) -> tuple[list[Sent], list[dict[str, Any]]]:
        where = {"topic": topic, "ready": transfer.load.ready}
        take = {**where, "part": "take", "expect": transfer.load.alerts}
        consumers: list[Mapping[str, Any]] = [take for _ in transfer.consumers]
        senders = [{**where, "part": "send", "pool": pool, "load": asdict(load)} for load in transfer.loads]
        roles = ["consumer"] * len(consumers) + ["producer"] * len(senders)
        found = self._workers.results(roles, [*consumers, *senders])
        return [Sent(**one) for one in found[len(consumers) :]], found[: len(consumers)]


def flow_name(point: Point, size: int) -> str:
    """Return what the bandwidth of a flow is called in the results."""
    return f"{point.label}_{name_of(size)}_megabytes_per_second"
