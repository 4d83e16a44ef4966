"""How fast a visit goes from dictionaries in one process to values in another, beside bytes alone."""

import time
from contextlib import AbstractContextManager

from nightwire.benchmarks.environment.alert_pool import Alert, ReadyMessage, patched
from nightwire.benchmarks.environment.filter_engine import FilterEngine
from nightwire.benchmarks.model.scenario import Context, Experiment
from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.workers.alerts.feed import RawProducer, alert_writer, cycled
from nightwire.benchmarks.workers.client import WorkerClient, reader_process

WARM_UP = 0.1
"""Share of a visit that is moved before the first pair."""


class Throughput(Experiment):
    """Dict → bytes → Kafka (acks=all) → a second process → columns, then dicts; against ready-made bytes."""

    name = "throughput"

    def __init__(
        self, context: Context, engine: FilterEngine, pool: list[Alert], ready: list[ReadyMessage]
    ) -> None:
        self._context, self._engine = context, engine
        self._pool, self._ready = pool, ready
        self._sent = 0

    def prepare(self) -> None:
        """Start Kafka, and move a tenth of a visit each way."""
        count = max(20, int(self._context.size.alerts * WARM_UP))
        self._ours("columns", count)
        self._bare(count)

    def run_once(self, kind: Kind) -> Figures:
        """Move one visit: ours to columns and then to dicts, or ready-made bytes."""
        count = self._context.size.alerts
        if kind is Kind.BASELINE:
            seconds = self._bare(count)
            return dict.fromkeys(self._totals(), seconds) | {"alerts_per_second": count / seconds}
        columns, dicts = self._ours("columns", count), self._ours("dicts", count)
        total, also = self._totals()
        return {
            total: columns["seconds"],
            also: dicts["seconds"],
            "alerts_per_second": count / columns["seconds"],
            "encode_seconds": columns["encode"],
            "produce_seconds": columns["produce"],
            "produce_alerts_per_second": count / columns["produce"],
            "consume_seconds": columns["consume"],
            "columns_seconds": columns["decode"],
            "decode_seconds": dicts["decode"],
            "megabytes_per_second": columns["size"] / columns["seconds"] / 1e6,
        }

    @staticmethod
    def _totals() -> tuple[str, str]:
        return "encode_produce_consume_decode_seconds", "encode_produce_consume_decode_dicts_seconds"

    def _ours(self, work: str, count: int) -> dict[str, float]:
        with self._engine.topic("visit") as topic, self._second(topic, work, count) as second:
            writer, codec, _client = alert_writer(self._engine.bootstrap, topic)
            visit = 2026_0102_00000 + self._sent
            began = time.monotonic()
            for alert in patched(self._pool, count, visit=visit, first=self._sent):
                writer.write(alert, visit=visit)
            writer.flush()
            acknowledged = time.monotonic()
            found = second.findings()
        self._sent += count
        return {
            "seconds": found["last"] - began,
            "encode": codec.seconds,
            "produce": acknowledged - began,
            "consume": found["last"] - found["first"],
            "decode": found["decoding"],
            "size": found["size"],
        }

    def _bare(self, count: int) -> float:
        messages = cycled(self._ready, count)
        with self._engine.topic("bare") as topic, self._second(topic, "bytes", count) as second:
            bare = RawProducer(self._engine.bootstrap, topic)
            began = time.monotonic()
            for message in messages:
                bare.send(message)
            bare.flush()
            return float(second.findings()["last"]) - began

    def _second(self, topic: str, work: str, count: int) -> AbstractContextManager[WorkerClient]:
        order = {
            "bootstrap": self._engine.bootstrap,
            "topics": [topic],
            "work": work,
            "expect": count,
        }
        return reader_process(self._context, order, self._context.folder / "consumer.log")
