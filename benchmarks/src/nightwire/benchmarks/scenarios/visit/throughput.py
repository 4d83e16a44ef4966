"""How fast a visit goes from dictionaries to another process's values, beside bytes alone."""

import time
from contextlib import AbstractContextManager

from nightwire.benchmarks.environment.alert_pool import Alert, ReadyMessage, patched
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.model.scenario import Context, Experiment
from nightwire.benchmarks.workers.alerts.feed import RawProducer, alert_writer, cycled
from nightwire.benchmarks.workers.client import WorkerClient, reader_process

WARM_UP = 0.1
"""Share of a visit that is moved before the first pair."""
TO_COLUMNS = "encode_produce_consume_decode_seconds"
TO_DICTS = "encode_produce_consume_decode_dicts_seconds"


class Throughput(Experiment):
    """Dict → bytes → Kafka (acks=all) → a second process → columns, then dicts; against bytes."""

    name = "throughput"

    def __init__(
        self, context: Context, cluster: Cluster, pool: list[Alert], ready: list[ReadyMessage]
    ) -> None:
        self._context, self._cluster = context, cluster
        self._pool, self._ready = pool, ready
        self._sent = 0

    def prepare(self) -> None:
        """Start Kafka, and move a tenth of a visit each way."""
        count = max(20, int(self._context.size.alerts * WARM_UP))
        self._ours("columns", count)
        self._raw(count)

    def run_once(self, kind: Kind) -> Figures:
        """Move one visit: ours to columns and then to dicts, or ready-made bytes."""
        count = self._context.size.alerts
        if kind is Kind.BASELINE:
            seconds = self._raw(count)
            return {TO_COLUMNS: seconds, TO_DICTS: seconds, "alerts_per_second": count / seconds}
        columns, dicts = self._ours("columns", count), self._ours("dicts", count)
        return {
            TO_COLUMNS: columns["seconds"],
            TO_DICTS: dicts["seconds"],
            "alerts_per_second": count / columns["seconds"],
            "encode_seconds": columns["encode"],
            "produce_seconds": columns["produce"],
            "produce_alerts_per_second": count / columns["produce"],
            "consume_seconds": columns["consume"],
            "columns_seconds": columns["decode"],
            "decode_seconds": dicts["decode"],
            "megabytes_per_second": columns["size"] / columns["seconds"] / 1e6,
        }

    def _ours(self, work: str, count: int) -> dict[str, float]:
        with self._cluster.topic("visit") as topic, self._reader(topic, work, count) as reader:
            writer, codec, _client = alert_writer(self._cluster.bootstrap, topic)
            visit = 2026_0102_00000 + self._sent
            began = time.monotonic()
            for alert in patched(self._pool, count, visit=visit, first=self._sent):
                writer.write(alert, visit=visit)
            writer.flush()
            acknowledged = time.monotonic()
            found = reader.findings()
        self._sent += count
        return {
            "seconds": found["last"] - began,
            "encode": codec.seconds,
            "produce": acknowledged - began,
            "consume": found["last"] - found["first"],
            "decode": found["decoding"],
            "size": found["size"],
        }

    def _raw(self, count: int) -> float:
        messages = cycled(self._ready, count)
        with self._cluster.topic("raw") as topic, self._reader(topic, "bytes", count) as reader:
            raw = RawProducer(self._cluster.bootstrap, topic)
            began = time.monotonic()
            raw.send_all(messages)
            return float(reader.findings()["last"]) - began

    def _reader(self, topic: str, work: str, count: int) -> AbstractContextManager[WorkerClient]:
        return reader_process(self._context, self._cluster.bootstrap, [topic], work, expect=count)
