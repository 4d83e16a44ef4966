"""The exporter's metrics: all gauges of the last look, none counted here."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from nightwire.core.accounting import StageTotal
from nightwire.monitoring.exporter.pipeline_state import (
    PipelineState,
    broker_lag,
    broker_reads,
    group_lag,
    records,
)

Label = TypeVar("Label", bound=tuple[str, ...])

CLASSES: dict[str, str] = {
    "read": "Records that the stage read.",
    "delivered": "Records that Kafka, or the peer, acknowledged.",
    "rejected": "Records rejected by name.",
    "capped": "Records cut off by a cap.",
    "faulted": "Records on which a filter failed.",
    "dead_lettered": "Records that could not be read.",
    "missing": "Records read that are in no class; 0 when in = out.",
}
"""Name and meaning of each column of an account."""


class PipelineCollector(Collector):
    """Give Prometheus the night that *latest* returns.

    Args:
        latest: Returns the last look, and when it was. [s since 1970]
    """

    def __init__(self, latest: Callable[[], tuple[PipelineState, float]]) -> None:
        self._latest = latest

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, from one and the same look."""
        seen, at = self._latest()
        yield _gauge("nightwire_exporter_last_look_timestamp_seconds", "When Kafka was last looked at.", at)
        yield from _accounts(seen)
        yield from _lag(seen)
        yield from _kafka(seen)


def register(registry: CollectorRegistry, latest: Callable[[], tuple[PipelineState, float]]) -> None:
    """Put the exporter's metrics into *registry*."""
    registry.register(PipelineCollector(latest))


def now() -> float:
    """Return the time. [s since 1970]"""
    return time.time()


def _accounts(seen: PipelineState) -> Iterator[Metric]:
    for column, meaning in CLASSES.items():
        yield _by_stage(f"nightwire_accounts_{column}", meaning, column, seen.stages)
    text = "Accounts that overlap, leave a gap or do not add up; 0 when in = out."
    yield _gauge("nightwire_accounts_discrepancies", text, len(seen.wrong))
    yield _labelled(
        "nightwire_visit_alerts", "Alerts delivered in the latest visit.", ["survey"], _one(seen.visit_alerts)
    )
    yield _labelled(
        "nightwire_visit_latest", "Number of the latest visit.", ["survey"], _one(seen.latest_visit)
    )


def _lag(seen: PipelineState) -> Iterator[Metric]:
    text = "Records that the stage has not accounted for yet."
    yield _labelled("nightwire_stage_lag_records", text, ["stage", "topic"], seen.stage_lag)
    text = "Records that retention removed before the stage read them."
    yield _labelled("nightwire_stage_expired_records", text, ["stage", "topic"], seen.expired)
    text = "Records ahead of a consumer group's commits."
    yield _labelled("nightwire_consumer_lag_records", text, ["group", "topic"], group_lag(seen.cluster))
    labels = ["broker", "group", "topic"]
    text = "The same of the groups of community brokers."
    yield _labelled("nightwire_broker_lag_records", text, labels, broker_lag(seen.cluster))
    read = CounterMetricFamily("nightwire_broker_read_records", "Records that it committed.", labels=labels)
    for label, count in sorted(broker_reads(seen.cluster).items()):
        read.add_metric(list(label), count)
    yield read


def _kafka(seen: PipelineState) -> Iterator[Metric]:
    written = CounterMetricFamily("nightwire_topic_records", "Records ever written.", labels=["topic"])
    for topic, count in sorted(records(seen.cluster).items()):
        written.add_metric([topic], count)
    yield written
    cluster = seen.cluster
    yield _gauge("nightwire_kafka_brokers", "Brokers in the cluster.", cluster.brokers)
    yield _gauge("nightwire_kafka_offline_partitions", "Partitions without a leader.", cluster.offline)
    text = "Partitions with a replica that is not in step."
    yield _gauge("nightwire_kafka_under_replicated_partitions", text, cluster.under_replicated)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _by_stage(name: str, text: str, column: str, stages: Iterable[StageTotal]) -> Metric:
    return _labelled(name, text, ["stage"], {(stage.stage,): getattr(stage, column) for stage in stages})


def _one(values: Mapping[str, int]) -> dict[tuple[str], int]:
    return {(label,): value for label, value in values.items()}


def _labelled(name: str, text: str, labels: list[str], values: Mapping[Label, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for label, value in sorted(values.items()):
        family.add_metric(list(label), value)
    return family
