"""Typed records through Kafka, beside the same bytes; and read as another receiver wants them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nightwire.benchmarks import Experiment, Figures, Kind
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


class ThroughKafka(Experiment):
    """Records of growing size go between two processes; one stream, one partition, uncompressed.

    Args:
        name: Its own.
        workers: The processes.
        plan: What is measured.
        ways: What is measured, and what it is compared with.
    """

    def __init__(
        self, name: str, workers: WorkerPool, plan: Plan, ways: Mapping[Kind, Sequence[str]]
    ) -> None:
        self.name = name
        self._workers, self._plan, self._ways = workers, plan, ways

    def prepare(self) -> None:
        """Start Kafka and the processes, and move some small and some large records each way."""
        for kind in Kind:
            self._rates(kind, {min(self._plan.sizes), max(self._plan.sizes)}, FEW)

    def run_once(self, kind: Kind) -> Figures:
        """Move records of all sizes."""
        figures: Figures = {}
        for (way, size), rate in self._rates(kind, self._plan.sizes, self._plan.records).items():
            named = [way] if kind is Kind.SUBJECT else self._ways[Kind.SUBJECT]
            figures |= {rate_name(one, size): rate for one in named}
        return figures

    def _rates(self, kind: Kind, sizes: Iterable[int], most: int) -> dict[tuple[str, int], float]:
        """Return bandwidths of at most *most* records of each size, by way and size. [MB/s]"""
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
        transfer = Transfer(Load(count, ready=way == RAW), consumers=(WORK[way],))
        with self._workers.cluster.topic("typed", partitions=1) as topic:
            order = {"topic": topic, "count": count, "size": size, "raw": way == RAW, "work": WORK[way]}
            found, sent = self._results(order)
            left = self._workers.count_in(topic) - found["records"]
        result = checked_result(transfer, size, [Sent(**sent)], [{**found, "left": left}])
        return result.size / 1e6 / result.seconds

    def _results(self, order: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return what receiver and sender found."""
        orders = [{**order, "part": "take"}, {**order, "part": "send"}]
        return self._workers.results(["consumer", "producer"], orders)


def through_kafka(workers: WorkerPool, plan: Plan) -> list[ThroughKafka]:
    """Return both experiments."""
    typed = {Kind.SUBJECT: [TYPED, COLUMNAR], Kind.BASELINE: [RAW]}
    other = {Kind.SUBJECT: [OTHER], Kind.BASELINE: [TYPED]}
    return [
        ThroughKafka("typed", workers, plan, typed),
        ThroughKafka("other version", workers, plan, other),
    ]
