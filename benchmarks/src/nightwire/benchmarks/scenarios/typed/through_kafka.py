"""Typed records through Kafka, beside the same bytes; and read as another receiver wants them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nightwire.benchmarks.model.scenario import Experiment
from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.scenarios.typed.plan import Plan, rate_name
from nightwire.benchmarks.workers.alerts.sender import Load, Sent
from nightwire.benchmarks.workers.alerts.transfer import BYTES, COLUMNS, DICTS, Transfer, checked_result
from nightwire.benchmarks.workers.pool import WorkerPool

TYPED, COLUMNAR, OTHER, RAW = "typed", "columns", "other", "raw"
"""Ways through Kafka."""
WORK: Mapping[str, str] = {TYPED: DICTS, COLUMNAR: COLUMNS, OTHER: "other", RAW: BYTES}
"""What the receiver does with what comes that way."""
FEW = 20
"""Records of a size, ahead of the first pair."""

Rates = dict[tuple[str, int], list[float]]
"""Bandwidths [MB/s] by way and size."""


class ThroughKafka(Experiment):
    """Records of growing size go from one process to another; one stream, one partition, uncompressed.

    Args:
        name: Its own.
        crew: The processes.
        plan: What is measured.
        ways: What is measured, and what it is compared with.
        rates: Where bandwidths are put.
    """

    def __init__(
        self, name: str, crew: WorkerPool, plan: Plan, ways: Mapping[Kind, Sequence[str]], rates: Rates
    ) -> None:
        self.name = name
        self._crew, self._plan, self._ways, self._rates = crew, plan, ways, rates

    def prepare(self) -> None:
        """Start Kafka and the processes, and move some small and some large records each way."""
        for kind in Kind:
            self._play(kind, {min(self._plan.sizes), max(self._plan.sizes)}, FEW)

    def run_once(self, kind: Kind) -> Figures:
        """Move records of all sizes."""
        figures: Figures = {}
        for (way, size), rate in self._play(kind, self._plan.sizes, self._plan.records).items():
            self._rates.setdefault((way, size), []).append(rate)
            named = [way] if kind is Kind.SUBJECT else self._ways[Kind.SUBJECT]
            figures |= {rate_name(one, size): rate for one in named}
        return figures

    def _play(self, kind: Kind, sizes: Iterable[int], most: int) -> dict[tuple[str, int], float]:
        """Return the bandwidth of at most so many records of each of *sizes*, by way and size. [MB/s]"""
        return {
            (way, size): self._rate(way, size, min(self._plan.count(size), most))
            for size in sizes
            for way in self._ways[kind]
        }

    def _rate(self, way: str, size: int, count: int) -> float:
        """Move *count* records of *size* one *way*; return their bandwidth. [MB/s]

        Raises:
            RunError: One was lost or doubled, or has another size.
        """
        move = Transfer(Load(count, ready=way == RAW), consumers=(WORK[way],))
        with self._crew.cluster.topic("typed", partitions=1) as topic:
            order = {"topic": topic, "count": count, "size": size, "raw": way == RAW, "work": WORK[way]}
            found, sent = self._hear(order)
            left = self._crew.held(topic) - found["records"]
        played = checked_result(move, size, [Sent(**sent)], [{**found, "left": left}])
        return played.size / 1e6 / played.seconds

    def _hear(self, order: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return what receiver and sender found."""
        orders = [{**order, "part": "take"}, {**order, "part": "send"}]
        with self._crew.in_place(["consumer", "producer"], orders) as peers:
            for peer in peers:
                peer.begin()
            return [peer.hear() for peer in peers]


def through_kafka(crew: WorkerPool, plan: Plan) -> tuple[list[ThroughKafka], Rates]:
    """Return both experiments, and where they put their bandwidths."""
    rates: Rates = defaultdict(list)
    typed = {Kind.SUBJECT: [TYPED, COLUMNAR], Kind.BASELINE: [RAW]}
    other = {Kind.SUBJECT: [OTHER], Kind.BASELINE: [TYPED]}
    return [
        ThroughKafka("typed", crew, plan, typed, rates),
        ThroughKafka("other version", crew, plan, other, rates),
    ], rates
