"""The exporter's metrics: all of them from the latest state of the pipeline, none counted here."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from nightwire.monitoring.exporter.pipeline_state import (
    PipelineState,
    broker_lag,
    broker_reads,
    group_lag,
    records_written,
)

Label = TypeVar("Label", bound=tuple[str, ...])

ACCOUNT_COLUMNS: dict[str, str] = {
    "read": "Records that the stage read.",
    "delivered": "Records that Kafka, or the peer, acknowledged.",
    "rejected": "Records rejected by name.",
    "capped": "Records over a filter's quota a visit.",
    "faulted": "Records on which a filter failed.",
    "dead_lettered": "Records that could not be read.",
    "missing": "Records read that are in no class; 0 when in = out.",
}
"""Name and meaning of each column of an account."""


class PipelineCollector(Collector):
    """Gives Prometheus the state of the pipeline that *latest* returns.

    Args:
        latest: Returns the latest state, and when it was observed. [s since 1970]
    """

    def __init__(self, latest: Callable[[], tuple[PipelineState, float]]) -> None:
        self._latest = latest

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, of one and the same state."""
        state, at = self._latest()
        yield _gauge("nightwire_exporter_last_look_timestamp_seconds", "When Kafka was last looked at.", at)
        yield from _accounts(state)
        yield from _lag(state)
        yield from _kafka(state)


def register(registry: CollectorRegistry, latest: Callable[[], tuple[PipelineState, float]]) -> None:
    """Put the exporter's metrics into *registry*."""
    registry.register(PipelineCollector(latest))


def _accounts(state: PipelineState) -> Iterator[Metric]:
    for column, meaning in ACCOUNT_COLUMNS.items():
        values = {(stage.stage,): getattr(stage, column) for stage in state.stages}
        yield _labelled(f"nightwire_accounts_{column}", meaning, ["stage"], values)
    text = "Accounts that overlap, leave a gap or do not add up; 0 when in = out."
    yield _gauge("nightwire_accounts_discrepancies", text, len(state.discrepancies))
    delivered = {(survey,): count for survey, count in state.visit_alerts.items()}
    text = "Alerts delivered in the latest visit."
    yield _labelled("nightwire_visit_alerts", text, ["survey"], delivered)
    latest = {(survey,): number for survey, number in state.latest_visit.items()}
    yield _labelled("nightwire_visit_latest", "Number of the latest visit.", ["survey"], latest)


def _lag(state: PipelineState) -> Iterator[Metric]:
    text = "Records that the stage has not accounted for yet."
    yield _labelled("nightwire_stage_lag_records", text, ["stage", "topic"], state.stage_lag)
    text = "Records that retention removed before the stage read them."
    yield _labelled("nightwire_stage_expired_records", text, ["stage", "topic"], state.expired)
    text = "Records ahead of a consumer group's commits."
    yield _labelled("nightwire_consumer_lag_records", text, ["group", "topic"], group_lag(state.cluster))
    labels = ["broker", "group", "topic"]
    text = "Records ahead of the commits of a community broker's group."
    yield _labelled("nightwire_broker_lag_records", text, labels, broker_lag(state.cluster))
    text = "Records that a community broker's group committed."
    read = CounterMetricFamily("nightwire_broker_read_records", text, labels=labels)
    for label, count in sorted(broker_reads(state.cluster).items()):
        read.add_metric(list(label), count)
    yield read


def _kafka(state: PipelineState) -> Iterator[Metric]:
    written = CounterMetricFamily("nightwire_topic_records", "Records ever written.", labels=["topic"])
    for topic, count in sorted(records_written(state.cluster).items()):
        written.add_metric([topic], count)
    yield written
    cluster = state.cluster
    yield _gauge("nightwire_kafka_brokers", "Brokers in the cluster.", cluster.brokers)
    yield _gauge("nightwire_kafka_offline_partitions", "Partitions without a leader.", cluster.offline)
    text = "Partitions with a replica that is not in step."
    yield _gauge("nightwire_kafka_under_replicated_partitions", text, cluster.under_replicated)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _labelled(name: str, text: str, labels: list[str], values: Mapping[Label, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for label, value in sorted(values.items()):
        family.add_metric(list(label), value)
    return family
