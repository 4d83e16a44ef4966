"""The night in numbers: what one look at Kafka and at the accounts says.  Pure: no Kafka, no clock."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nightwire.core.accounting import Account, StageTotal, discrepancies, totals
from nightwire.core.kafka import TopicPartition

RETURNS = "returns."
"""Beginning of the topics of what community brokers send back; the broker's name follows."""

VISIT = "visit/"
"""Beginning of the sources of the producer's accounts: ``visit/<survey>``, one account a visit."""


@dataclass(frozen=True)
class Range:
    """What a partition holds: offsets from *low* to before *end*."""

    low: int
    end: int


@dataclass(frozen=True)
class ClusterState:
    """Kafka at one moment.

    Attributes:
        brokers: How many are there.
        offline: Partitions without a leader.
        under_replicated: Partitions with a replica that is not in step.
        ranges: What each partition holds.
        committed: Each group's next offset, by partition.
    """

    brokers: int = 0
    offline: int = 0
    under_replicated: int = 0
    ranges: Mapping[TopicPartition, Range] = field(default_factory=dict)
    committed: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class PipelineState:
    """All that the exporter exports."""

    cluster: ClusterState = ClusterState()
    stages: Sequence[StageTotal] = ()
    wrong: Sequence[str] = ()
    stage_lag: Mapping[tuple[str, str], int] = field(default_factory=dict)
    expired: Mapping[tuple[str, str], int] = field(default_factory=dict)
    visit_alerts: Mapping[str, int] = field(default_factory=dict)
    latest_visit: Mapping[str, int] = field(default_factory=dict)


def pipeline_state(cluster: ClusterState, accounts: Sequence[Account]) -> PipelineState:
    """Return the night as *cluster* and *accounts* tell it."""
    lag, expired = stage_lag(cluster, accounts)
    visits = last_visits(accounts)
    return PipelineState(
        cluster=cluster,
        stages=totals(accounts),
        wrong=discrepancies(accounts),
        stage_lag=lag,
        expired=expired,
        visit_alerts={survey: visit.delivered for survey, visit in visits.items()},
        latest_visit={survey: visit.first for survey, visit in visits.items()},
    )


def records(cluster: ClusterState) -> dict[str, int]:
    """Return the records that each topic ever took: the sum of its partitions' ends."""
    sums: dict[str, int] = defaultdict(int)
    for (topic, _partition), held in cluster.ranges.items():
        sums[topic] += held.end
    return dict(sums)


def group_lag(cluster: ClusterState) -> dict[tuple[str, str], int]:
    """Return how many records lie ahead of each (group, topic); a partition without commit counts whole."""
    lag: dict[tuple[str, str], int] = {}
    for group, offsets in cluster.committed.items():
        for topic in {topic for topic, _partition in offsets}:
            spots = [spot for spot in cluster.ranges if spot[0] == topic]
            lag[group, topic] = sum(_ahead(cluster.ranges[spot], offsets.get(spot, 0)) for spot in spots)
    return lag


def _ahead(held: Range, position: int) -> int:
    return max(0, held.end - max(position, held.low))


def brokers(cluster: ClusterState) -> set[str]:
    """Return the community brokers: each has a topic for what it sends back."""
    return {topic.removeprefix(RETURNS) for topic, _partition in cluster.ranges if topic.startswith(RETURNS)}


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

    A stage's position in a partition is where its accounts end; of a topic that it reads, a partition
    without account counts whole.
    """
    positions: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    topics = {topic for topic, _partition in cluster.ranges}
    for account in accounts:
        if account.source in topics:
            read = positions[account.stage, account.source]
            read[account.partition] = max(read.get(account.partition, 0), account.last + 1)
    lag, expired = {}, {}
    for (stage, topic), read in positions.items():
        spots = [spot for spot in cluster.ranges if spot[0] == topic]
        lag[stage, topic] = sum(_ahead(cluster.ranges[spot], read.get(spot[1], 0)) for spot in spots)
        known = [(cluster.ranges[topic, part].low, at) for part, at in read.items() if (topic, part) in spots]
        expired[stage, topic] = sum(max(0, low - at) for low, at in known)
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
