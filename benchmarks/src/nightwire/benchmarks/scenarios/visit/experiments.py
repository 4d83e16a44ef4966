"""What a visit is measured by: sent and received, read again, and through the filter engine."""

import time

from nightwire.benchmarks import Context, Experiment, Figures, Kind
from nightwire.benchmarks.environment.alert_pool import Alert, ReadyMessage, patched
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.environment.filter_engine import ALERTS, FilterEngine
from nightwire.benchmarks.workers.alerts.feed import RawProducer, alert_writer, cycled, delivered
from nightwire.benchmarks.workers.client import reader_process
from nightwire.schemas import Codec, sim_alert_schema
from nightwire.schemas.wire import unframe


class Reading(Experiment):
    """A topic that holds a visit → dictionaries; against raw reading or decoding, the slower.

    And → tables of twenty columns by `AlertReader`, against raw reading.
    """

    name = "dicts"

    def __init__(self, context: Context, cluster: Cluster, ready: list[ReadyMessage]) -> None:
        self._context, self._cluster, self._ready = context, cluster, ready
        self._topic = ""

    def prepare(self) -> None:
        """Fill a topic with one visit, and read it once each way."""
        self._topic = self.exits.enter_context(self._cluster.topic("dicts"))
        raw = RawProducer(self._cluster.bootstrap, self._topic)
        raw.send_all(cycled(self._ready, self._context.size.alerts))
        for kind in Kind:
            self.run_once(kind)

    def run_once(self, kind: Kind) -> Figures:
        """Read all of it into dictionaries; or read it, then decode as many bodies."""
        if kind is Kind.SUBJECT:
            return {
                "to_dicts_alerts_per_second": self._read("dicts"),
                "reader_tables_alerts_per_second": self._read("tables"),
            }
        raw, decoding = self._read("bytes"), self._decode()
        return {
            "to_dicts_alerts_per_second": min(raw, decoding),
            "reader_tables_alerts_per_second": raw,
            "raw_consume_alerts_per_second": raw,
            "decode_alone_alerts_per_second": decoding,
        }

    def _read(self, work: str) -> float:
        """Return alerts a second."""
        count, where = self._context.size.alerts, (self._context, self._cluster.bootstrap, [self._topic])
        with reader_process(*where, work, expect=count, whole=True) as reader:
            found = reader.findings()
        return count / float(found["last"] - found["began"])

    def _decode(self) -> float:
        codec = Codec(sim_alert_schema())
        bodies = [unframe(one.value)[1] for one in cycled(self._ready, self._context.size.alerts)]
        began = time.perf_counter()
        for body in bodies:
            codec.decode(body)
        return len(bodies) / (time.perf_counter() - began)


WARM_UP_ALERTS = 500
"""Alerts that the engine judges before the first pair: Java compiles while it runs."""


class Filtering(Experiment):
    """Ready-made bytes → Kafka → the example filters, copies and accounts written."""

    name = "filter"

    def __init__(self, context: Context, engine: FilterEngine, ready: list[ReadyMessage]) -> None:
        self._context, self._engine, self._ready = context, engine, ready

    def prepare(self) -> None:
        """Start the engine, submit the example filters, and have it judge some alerts."""
        self._engine.start()
        for _turn in range(2):
            self._through_engine(min(WARM_UP_ALERTS, self._context.size.alerts))

    def run_once(self, kind: Kind) -> Figures:
        """Send one visit; wait until the engine has accounted for it, or a consumer has it."""
        count = self._context.size.alerts
        if kind is Kind.SUBJECT:
            seconds, passed = self._through_engine(count)
            found = {"filter_passed": float(passed)}
        else:
            seconds, found = raw_seconds(self._context, self._engine, cycled(self._ready, count)), {}
        return {"filter_pass_seconds": seconds, "filter_alerts_per_second": count / seconds, **found}

    def _through_engine(self, count: int) -> tuple[float, int]:
        """Return how long a visit took [s], and how many of its alerts passed a filter."""
        messages = cycled(self._ready, count)
        note, ends = delivered()
        with self._engine.coverage() as coverage:
            raw = RawProducer(self._engine.bootstrap, ALERTS)
            began = time.monotonic()
            for message in messages:
                raw.send(message, note)
            raw.flush()
            return coverage.await_ends(ends) - began, coverage.passed


def raw_seconds(context: Context, cluster: Cluster, messages: list[ReadyMessage]) -> float:
    """Return how long *messages* take through raw librdkafka to a plain consumer. [s]"""
    count, bootstrap = len(messages), cluster.bootstrap
    with (
        cluster.topic("raw") as topic,
        reader_process(context, bootstrap, [topic], "bytes", expect=count) as reader,
    ):
        raw = RawProducer(bootstrap, topic)
        began = time.monotonic()
        raw.send_all(messages)
        return float(reader.findings()["last"]) - began


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
        bootstrap = self._cluster.bootstrap
        with (
            self._cluster.topic("visit") as topic,
            reader_process(self._context, bootstrap, [topic], work, expect=count) as reader,
        ):
            writer, codec, _client = alert_writer(bootstrap, topic)
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
        return raw_seconds(self._context, self._cluster, cycled(self._ready, count))
