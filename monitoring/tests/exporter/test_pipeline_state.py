"""The state of the pipeline, from accounts and offsets, without Kafka."""

import pytest
from prometheus_client import CollectorRegistry

from nightwire.core.accounting import Account, FilterClasses
from nightwire.core.kafka import Watermarks
from nightwire.monitoring.exporter.metrics import register
from nightwire.monitoring.exporter.pipeline_state import (
    ClusterState,
    PipelineState,
    broker_lag,
    broker_reads,
    group_lag,
    last_visits,
    pipeline_state,
    records_written,
    stage_lag,
)

SIM = "alerts.sim"


def read(first: int, last: int, partition: int = 0, **classes: int) -> Account:
    count = last - first + 1
    return Account("filters", SIM, partition, first, last, read=count, **{"delivered": count, **classes})


def cluster(*ranges: tuple[int, int], **committed: dict[tuple[str, int], int]) -> ClusterState:
    held = {(SIM, number): Watermarks(*one) for number, one in enumerate(ranges)}
    return ClusterState(brokers=3, held=held, committed=committed)


@pytest.mark.parametrize(
    ("ranges", "accounts", "lag", "expired"),
    [
        ([(0, 10)], [read(0, 9)], 0, 0),
        ([(0, 10)], [read(0, 4)], 5, 0),
        ([(0, 10)], [read(0, 4), read(5, 7)], 2, 0),
        ([(0, 10), (0, 8)], [read(0, 9)], 8, 0),  # a partition without account counts whole
        ([(0, 10), (3, 8)], [read(0, 9)], 5, 0),  # … what is left of it
        ([(7, 10)], [read(0, 4)], 3, 2),  # 5 and 6 are gone
    ],
)
def test_a_stage_lags_from_where_its_accounts_end(
    ranges: list[tuple[int, int]], accounts: list[Account], lag: int, expired: int
) -> None:
    assert stage_lag(cluster(*ranges), accounts) == ({("filters", SIM): lag}, {("filters", SIM): expired})


def test_a_stage_that_reads_no_topic_has_no_lag() -> None:
    visit = Account("producer", "visit/sim", 0, 7, 7, read=3, delivered=3)
    assert stage_lag(cluster((0, 3)), [visit]) == ({}, {})


def test_a_group_lags_from_its_commits_and_whole_where_it_has_none() -> None:
    state = cluster((0, 10), (4, 10), mine={(SIM, 0): 7})
    assert group_lag(state) == {("mine", SIM): 3 + 6}


def test_a_brokers_groups_are_told_by_its_name() -> None:
    topics = {(SIM, 0): Watermarks(0, 10), (SIM, 1): Watermarks(4, 10), ("returns.fink", 0): Watermarks(0, 1)}
    commits = {"fink.live": {(SIM, 0): 7, (SIM, 1): 9}, "finkish.x": {(SIM, 0): 7}, "mine": {(SIM, 0): 7}}
    state = ClusterState(brokers=3, held=topics, committed=commits)
    assert broker_lag(state) == {("fink", "fink.live", SIM): 3 + 1}
    assert broker_reads(state) == {("fink", "fink.live", SIM): 7 + 9}


def test_the_latest_visit_is_the_one_with_the_highest_number() -> None:
    accounts = [Account("producer", "visit/sim", 0, n, n, read=n, delivered=n) for n in (4, 9, 5)]
    assert {survey: visit.first for survey, visit in last_visits(accounts).items()} == {"sim": 9}


def test_records_ever_written_are_the_ends_of_all_partitions() -> None:
    assert records_written(cluster((0, 10), (4, 10))) == {SIM: 20}


def test_one_alert_in_no_class_shows_in_the_metrics() -> None:
    filters = {"demo/bright": FilterClasses(evaluated=10, passed=4, rejected=5)}
    short = Account(
        "filters", SIM, 0, 0, 9, read=10, delivered=4, rejected={"no-filter-passed": 5}, filters=filters
    )
    registry = CollectorRegistry()
    register(registry, lambda: (pipeline_state(cluster((0, 12), watchers={(SIM, 0): 2}), [short]), 17.0))

    def sample(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"nightwire_{name}", labels)

    assert sample("accounts_read", stage="filters") == 10
    assert sample("accounts_rejected", stage="filters") == 5
    assert sample("accounts_missing", stage="filters") == 1
    assert sample("accounts_missing", stage="filter.demo.bright") == 1
    assert sample("accounts_discrepancies") == 2
    assert sample("stage_lag_records", stage="filters", topic=SIM) == 2
    assert sample("consumer_lag_records", group="watchers", topic=SIM) == 10
    assert sample("topic_records_total", topic=SIM) == 12
    assert sample("kafka_brokers") == 3
    assert sample("exporter_last_look_timestamp_seconds") == 17


def test_before_the_first_observation_there_is_a_page_all_the_same() -> None:
    registry = CollectorRegistry()
    register(registry, lambda: (PipelineState(), 0.0))
    assert registry.get_sample_value("nightwire_accounts_discrepancies") == 0
