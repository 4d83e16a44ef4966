"""The scenario `visit`: its size, its experiments, and what they have to show."""

from collections.abc import Mapping, Sequence
from typing import Any

from nightwire.benchmarks import (
    Better,
    Context,
    Experiment,
    Figure,
    Needs,
    Outcome,
    Published,
    Sample,
    Scenario,
    Size,
)
from nightwire.benchmarks.environment.alert_pool import (
    ON_DISK,
    POOL,
    make_pool,
    pool_memory,
    ready_messages,
)
from nightwire.benchmarks.environment.cluster import PARTITIONS
from nightwire.benchmarks.environment.filter_engine import EXAMPLES, EngineOptions, FilterEngine
from nightwire.benchmarks.model.drawing import distribution
from nightwire.benchmarks.model.statistics import quantile
from nightwire.benchmarks.scenarios.visit.experiments import Filtering, Reading, Throughput
from nightwire.benchmarks.scenarios.visit.latency import VISIT, Latency

RAW = "raw librdkafka moving ready-made bytes of the same sizes"
RAW_PACED = "ready-made bytes through raw librdkafka at the same rate"

BOOM = Published(883.0, "BOOM", "25 filters and classifiers, 32 cores")

FIGURES = (
    Figure(
        "encode_produce_consume_decode_seconds",
        "s",
        "One visit, from dictionaries to twenty columns in a second process",
        baseline=RAW,
        headline=True,
    ),
    Figure(
        "encode_produce_consume_decode_dicts_seconds",
        "s",
        "One visit, from dictionaries to dictionaries in a second process",
        baseline=RAW,
        headline=True,
    ),
    Figure(
        "share_of_raw_librdkafka",
        "1",
        "Share of what raw librdkafka moves, to twenty columns",
        Better.HIGHER,
        RAW,
        share_of="alerts_per_second",
        headline=True,
    ),
    Figure("alerts_per_second", "1/s", "Alerts a second, to twenty columns", Better.HIGHER, RAW),
    Figure("megabytes_per_second", "MB/s", "Bytes a second, to twenty columns", Better.HIGHER),
    Figure("encode_seconds", "s", "… of it in the encoder, first process"),
    Figure("produce_seconds", "s", "… from the first dictionary to the last acknowledgement"),
    Figure(
        "produce_alerts_per_second",
        "1/s",
        "Alerts a second from one producer, encoded and acknowledged",
        Better.HIGHER,
    ),
    Figure("consume_seconds", "s", "… from the first to the last message, second process"),
    Figure("columns_seconds", "s", "… of it making columns"),
    Figure("decode_seconds", "s", "Decoding to dictionaries, second process"),
    Figure(
        "to_dicts_alerts_per_second",
        "1/s",
        "Alerts a second from a full topic to dictionaries",
        Better.HIGHER,
        "the slower of raw reading and decoding alone",
        headline=True,
    ),
    Figure(
        "reader_tables_alerts_per_second",
        "1/s",
        "Alerts a second from a full topic to tables of twenty columns, by AlertReader",
        Better.HIGHER,
        "raw reading",
        headline=True,
    ),
    Figure(
        "filter_pass_seconds",
        "s",
        "One visit through the filter engine, until it is accounted for",
        baseline="a plain consumer of the same bytes",
        headline=True,
    ),
    Figure(
        "filter_alerts_per_second",
        "1/s",
        "Alerts a second through three filters",
        Better.HIGHER,
        "a plain consumer of the same bytes",
        published=BOOM,
    ),
    Figure("filter_passed", "1", "Alerts that passed a filter, after caps", Better.HIGHER),
    Figure("latency_p50_ms", "ms", "Due → consumer, median", baseline=RAW_PACED, headline=True),
    Figure("latency_p95_ms", "ms", "Due → consumer, 95 %", baseline=RAW_PACED),
    Figure("latency_p99_ms", "ms", "Due → consumer, 99 %", baseline=RAW_PACED, headline=True),
    Figure("latency_max_ms", "ms", "Due → consumer, slowest", baseline=RAW_PACED),
    Figure("publish_latency_p50_ms", "ms", "Due → acknowledged, median", baseline=RAW_PACED),
    Figure("publish_latency_p99_ms", "ms", "Due → acknowledged, 99 %", baseline=RAW_PACED),
    Figure(
        "filter_latency_p50_ms",
        "ms",
        "Due → filter topic's reader, median",
        baseline=RAW_PACED,
        headline=True,
    ),
    Figure("filter_latency_p99_ms", "ms", "Due → filter topic's reader, 99 %", baseline=RAW_PACED),
    Figure("generator_behind_ms", "ms", "The generator's worst lag behind its schedule"),
)


PROCESSES = 4 * 10**9
"""Kafka, Spark and the consumer together. [byte]"""
PER_ALERT = 0.006
"""A pair of runs, all experiments, per alert. [s]  Two shared cores."""
OVERLOADED = 0.5
"""The generator's lag from which the delays are mostly its own queue. [s]"""
STARTING = 60.0
"""Kafka, registry, engine, filters. [s]"""
QUANTILES = {"50pct": 0.5, "75pct": 0.75, "95pct": 0.95, "99pct": 0.99, "999pct": 0.999, "Max": 1.0}
"""By OpenMessaging Benchmark's names."""


class VisitScenario(Scenario):
    """One visit of a survey: encode, produce, consume, decode, filter, and an alert's delay."""

    name = "visit"
    title = "One visit, end to end"
    measures = (
        "Alerts of real sizes (a pool of at most 2,000 distinct simulated ones, made before the clock "
        "starts; ids, times and positions are new in each) go from dictionaries through the encoder into "
        "Kafka (acks=all, idempotent, lz4, 4 partitions) and are decoded in a second process. The filter "
        "engine judges a visit by three filters. Delays are taken in an open loop: from when an alert was "
        "due. All processes share one machine."
    )
    figures = FIGURES
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=2_000, pairs=3, rate=250.0, profile="quick"),
        "full": Size(alerts=10_000, pairs=5, rate=250.0, profile="full"),
    }

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""
        alerts, pairs = size.alerts, size.pairs
        paced = 2 * min(alerts / size.rate, 20.0) + 12.0
        return Needs(
            disk=alerts * ON_DISK * (6 + pairs),
            memory=pool_memory(alerts) + PROCESSES,
            seconds=STARTING + pairs * (alerts * PER_ALERT + paced),
        )

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Make the pool; return throughput, and filter and latency where an engine is wanted."""
        context.say("making the pool of alerts")
        self._context = context
        pool = make_pool(context.size.alerts)
        self._ready = ready_messages(pool)
        engine = self.closing(FilterEngine(context, EngineOptions(examples=True)))
        self._latency = Latency(context, engine, pool, self._ready)
        filtering = [] if context.engine == "none" else [Filtering(context, engine, self._ready)]
        return [
            Throughput(context, engine, pool, self._ready),
            Reading(context, engine, self._ready),
            *filtering,
            self._latency,
        ]

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Return the distribution of delays, what was reduced, and OpenMessaging's keys."""
        delays = self._latency.delays
        return Outcome([distribution(delays)], self._notes(), self._open_messaging(delays))

    def _notes(self) -> list[str]:
        size = self._context.size
        notes = [
            f"{size.alerts:,} alerts a run ({size.profile} profile), {size.pairs} pairs; "
            f"{min(size.alerts, POOL):,} distinct ones.",
            f"Delays: {self._latency.count:,} alerts a run at {size.rate:g}/s, a visit every {VISIT:g} s.",
        ]
        if self._latency.behind > OVERLOADED:
            notes.append(
                f"The producer fell up to {self._latency.behind:.1f} s behind its schedule: the rate was "
                "above what this machine could carry then, and the delays show the queue."
            )
        if self._context.engine == "none":
            return [*notes, "Without the filter engine."]
        return [
            *notes,
            f"{EXAMPLES} example filters; the engine runs during the runs for delays, those of the baseline "
            "included.",
        ]

    def _open_messaging(self, delays: Mapping[str, list[float]]) -> dict[str, Any]:
        sizes = [len(message.value) for message in self._ready]
        keys: dict[str, Any] = {
            "workload": self.name,
            "driver": "nightwire",
            "messageSize": round(sum(sizes) / len(sizes)) if sizes else 0,
            "topics": 1,
            "partitions": PARTITIONS,
            "producersPerTopic": 1,
            "consumersPerTopic": 1,
        }
        published = delays.get("nightwire: due → acknowledged", [])
        arrived = delays.get("nightwire: due → consumer", [])
        return keys | aggregated("PublishLatency", published) | aggregated("EndToEndLatency", arrived)


def aggregated(what: str, delays: Sequence[float]) -> dict[str, float]:
    """Return *delays* [s] under OpenMessaging Benchmark's names. [ms]"""
    if not delays:
        return {}
    values = {name: quantile(delays, share) for name, share in QUANTILES.items()}
    values["Avg"] = sum(delays) / len(delays)
    return {f"aggregated{what}{name}": round(value * 1e3, 3) for name, value in values.items()}
