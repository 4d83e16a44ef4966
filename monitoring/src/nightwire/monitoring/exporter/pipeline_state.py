"""The state of the pipeline: what Kafka and the accounts say at one time.  Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nightwire.core.accounting import Account, StageTotal, discrepancies, totals
from nightwire.core.kafka import TopicPartition, Watermarks

RETURNS = "returns."
"""Beginning of the topics of what community brokers send back; the broker's name follows."""

VISIT = "visit/"
"""Beginning of the sources of the producer's accounts: ``visit/<survey>``, one account a visit."""


@dataclass(frozen=True)
class ClusterState:
    """Kafka at one time.

    Attributes:
        brokers: How many are there.
        offline: Partitions without a leader.
        under_replicated: Partitions with a replica that is not in step.
        held: What each partition holds.
        committed: Each group's next offset, by partition.
    """

    brokers: int = 0
    offline: int = 0
    under_replicated: int = 0
    held: Mapping[TopicPartition, Watermarks] = field(default_factory=dict)
    committed: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class PipelineState:
    """All that the exporter exports.

    Attributes:
        cluster: Kafka.
        stages: Sums of each stage's accounts.
        discrepancies: Accounts that overlap, leave a gap or do not add up, a line each.
        stage_lag: Records that a stage has not accounted for yet, by (stage, topic).
        expired: Records that retention removed before the stage read them, likewise.
        visit_alerts: Alerts delivered in each survey's latest visit.
        latest_visit: Number of each survey's latest visit.
    """

    cluster: ClusterState = ClusterState()
    stages: Sequence[StageTotal] = ()
    discrepancies: Sequence[str] = ()
    stage_lag: Mapping[tuple[str, str], int] = field(default_factory=dict)
    expired: Mapping[tuple[str, str], int] = field(default_factory=dict)
    visit_alerts: Mapping[str, int] = field(default_factory=dict)
    latest_visit: Mapping[str, int] = field(default_factory=dict)


def pipeline_state(cluster: ClusterState, accounts: Sequence[Account]) -> PipelineState:
    """Return the state that *cluster* and *accounts* show."""
    lag, expired = stage_lag(cluster, accounts)
    visits = last_visits(accounts)
    return PipelineState(
        cluster=cluster,
        stages=totals(accounts),
        discrepancies=discrepancies(accounts),
        stage_lag=lag,
        expired=expired,
        visit_alerts={survey: visit.delivered for survey, visit in visits.items()},
        latest_visit={survey: visit.first for survey, visit in visits.items()},
    )


def records_written(cluster: ClusterState) -> dict[str, int]:
    """Return the records that each topic ever took: the sum of its partitions' ends."""
    sums: dict[str, int] = defaultdict(int)
    for (topic, _partition), marks in cluster.held.items():
        sums[topic] += marks.high
    return dict(sums)


def group_lag(cluster: ClusterState) -> dict[tuple[str, str], int]:
    """Return how many records lie ahead of each (group, topic).

    A partition without a commit counts whole.
    """
    lag: dict[tuple[str, str], int] = {}
    for group, offsets in cluster.committed.items():
        for topic in {topic for topic, _partition in offsets}:
            partitions = [one for one in cluster.held if one[0] == topic]
            lag[group, topic] = sum(_ahead(cluster.held[one], offsets.get(one, 0)) for one in partitions)
    return lag


def _ahead(held: Watermarks, position: int) -> int:
    return max(0, held.high - max(position, held.low))


def brokers(cluster: ClusterState) -> set[str]:
    """Return the community brokers: each has a topic for what it sends back."""
    return {topic.removeprefix(RETURNS) for topic, _partition in cluster.held if topic.startswith(RETURNS)}


def broker_lag(cluster: ClusterState) -> dict[tuple[str, str, str], int]:
    """Return how many records lie ahead of each (broker, group, topic), by the group's name."""
    return _by_broker(cluster, group_lag(cluster))


def broker_reads(cluster: ClusterState) -> dict[tuple[str, str, str], int]:
    """Return the records that each (broker, group, topic) has committed: the sum of its offsets."""
    sums: dict[tuple[str, str], int] = defaultdict(int)
    for group, offsets in cluster.committed.items():
        for (topic, _partition), offset in offsets.items():
            sums[group, topic] += offset
    return _by_broker(cluster, sums)


def _by_broker(
    cluster: ClusterState, values: Mapping[tuple[str, str], int]
) -> dict[tuple[str, str, str], int]:
    known = brokers(cluster)
    owned = ((group.partition(".")[0], group, topic, value) for (group, topic), value in values.items())
    return {(name, group, topic): value for name, group, topic, value in owned if name in known}


def stage_lag(
    cluster: ClusterState, accounts: Iterable[Account]
) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]:
    """Return how far each (stage, topic) is behind, and how much retention took before it was read.

    A stage's position in a partition is where its accounts end; of a topic that it reads, a
    partition without account counts whole.
    """
    positions: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    topics = {topic for topic, _partition in cluster.held}
    for account in accounts:
        if account.source in topics:
            read = positions[account.stage, account.source]
            read[account.partition] = max(read.get(account.partition, 0), account.last + 1)
    lag, expired = {}, {}
    for (stage, topic), read in positions.items():
        partitions = [one for one in cluster.held if one[0] == topic]
        lag[stage, topic] = sum(_ahead(cluster.held[one], read.get(one[1], 0)) for one in partitions)
        known = [
            (cluster.held[topic, number].low, offset)
            for number, offset in read.items()
            if (topic, number) in cluster.held
        ]
        expired[stage, topic] = sum(max(0, low - offset) for low, offset in known)
    return lag, expired


def last_visits(accounts: Iterable[Account]) -> dict[str, Account]:
    """Return each survey's latest visit, as its writer accounted for it."""
    latest: dict[str, Account] = {}
    for account in accounts:
        if account.source.startswith(VISIT):
            survey = account.source.removeprefix(VISIT)
            if survey not in latest or account.first > latest[survey].first:
                latest[survey] = account
    return latest
