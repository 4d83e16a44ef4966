"""A site's topics, their rates and newest records, and its consumer groups, as Kafka tells."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ClusterMetadata  # type: ignore[attr-defined]

from nightwire.core.kafka import END, NEWEST, GroupOffsets, TopicPartition, admin, list_offsets
from nightwire.directory.model import MemberRow, SiteRows
from nightwire.schemas import RegistryAwayError, SchemaError, SchemaRegistry

TIMEOUT = 10.0
"""Longest wait for Kafka's answer. [s]"""
WINDOW = 60.0
"""Time over which rates are means. [s]"""
INTERNAL = "__"
"""Kafka's own topics begin so; they are left out."""
SUFFIX = "-value"
"""What the subject of a topic's values ends with, by Confluent's rule."""
Ends = Mapping[TopicPartition, int]


class WrongClusterError(KafkaException):
    """At an address there is another Kafka than expected."""


def check_cluster(found: ClusterMetadata, cluster: str) -> None:
    """Check that *found* is of the Kafka *cluster*; empty for any.

    Raises:
        WrongClusterError: It is of another.
    """
    if cluster and found.cluster_id != cluster:
        why = f"this is the Kafka {found.cluster_id}, no longer {cluster}"
        raise WrongClusterError(KafkaError(KafkaError.UNKNOWN, why))


class TopicRates:
    """Records a second of each topic, from where its partitions ended.

    Args:
        window: Time over which a rate is a mean. [s]
    """

    def __init__(self, window: float = WINDOW) -> None:
        self._window, self._samples = window, deque[tuple[float, Counter[str]]]()

    def add(self, at: float, ends: Ends) -> None:
        """Add the end offsets of partitions *at* a time. [s, any steady clock]"""
        totals = Counter[str]()
        for (topic, _), end in ends.items():
            totals[topic] += end
        self._samples.append((at, totals))
        while len(self._samples) > 2 and at - self._samples[1][0] >= self._window:
            self._samples.popleft()

    def of(self, topic: str) -> float | None:
        """Return the rate of *topic* [1/s]; None until it was added twice."""
        (began, before), (now, after) = self._samples[0], self._samples[-1]
        if now <= began or topic not in before:
            return None
        return round(max(0, after[topic] - before[topic]) / (now - began), 3)


class SchemaIds:
    """The newest schema's id of each topic, of the registry at *url*."""

    def __init__(self, url: str) -> None:
        self._registry = SchemaRegistry(url) if url else None
        self._ids, self._again = dict[str, int](), 0.0

    def ids(self, at: float) -> Mapping[str, int]:
        """Return the ids by topic, asked anew each `WINDOW`. [*at*: s, any steady clock]"""
        if self._registry is not None and at >= self._again:
            with suppress(RegistryAwayError, SchemaError):
                subjects = [one for one in self._registry.subjects() if one.endswith(SUFFIX)]
                self._ids = {one.removesuffix(SUFFIX): self._registry.version(one)[1] for one in subjects}
                self._again = at + WINDOW
        return self._ids


class ClusterObserver:
    """Writes a site's topics and consumer groups to *rows*, as Kafka tells them.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        rows: The site's rows.
        registry: URL of its schema registry; empty for none.
        client: librdkafka's properties; None for our own.
        cluster: The expected Kafka's id; empty for any.
    """

    def __init__(
        self,
        bootstrap: str,
        rows: SiteRows,
        registry: str = "",
        client: Mapping[str, Any] | None = None,
        cluster: str = "",
    ) -> None:
        self._client, self._offsets = admin(bootstrap, client=client), GroupOffsets(bootstrap, client=client)
        self._rows, self._cluster = rows, cluster
        self._schemas = SchemaIds(registry)
        self._rates, self._ends, self._newest = TopicRates(), dict[TopicPartition, int](), dict[str, int]()

    def observe(self, at: float) -> None:
        """Observe once, *at* a time. [s, any steady clock]

        Raises:
            WrongClusterError: It is another Kafka than expected.
            KafkaException: Kafka did not answer.
        """
        found = self._client.list_topics(timeout=TIMEOUT)
        check_cluster(found, self._cluster)
        known = found.topics
        topics = {name: topic.partitions for name, topic in known.items() if not name.startswith(INTERNAL)}
        led = [(name, part) for name, parts in topics.items() for part in parts if parts[part].leader >= 0]
        ends = {one: found.offset for one, found in list_offsets(self._client, led, END).items()}
        self._rates.add(at, ends)
        self._note_newest(ends)
        members, schemas = self._members(), self._schemas.ids(at)
        with self._rows.batch():
            self._rows.set_topics(
                (name, len(parts), self._rates.of(name), self._newest.get(name), schemas.get(name))
                for name, parts in topics.items()
            )
            if members is not None:
                self._rows.set_members(members)

    def _note_newest(self, ends: Ends) -> None:
        """Ask for the newest record of partitions that have grown."""
        grown = [one for one, end in ends.items() if end and end != self._ends.get(one)]
        for (topic, _), found in list_offsets(self._client, grown, NEWEST).items():
            self._newest[topic] = max(self._newest.get(topic, 0), found.timestamp)
        self._ends = dict(ends)

    def _members(self) -> Iterable[MemberRow] | None:
        """Return the members of groups by topic; None without the right to describe groups."""
        try:
            listed = self._client.list_consumer_groups(request_timeout=TIMEOUT).result().valid
            names = [group.group_id for group in listed]
            asked = self._client.describe_consumer_groups(names, request_timeout=TIMEOUT) if names else {}
        except KafkaException:
            return None
        found = Counter[tuple[str, str]]()
        for name, future in asked.items():
            try:
                described = future.result()
            except KafkaException:  # it has just gone, or is another's
                continue
            for member in described.members:
                topics = {one.topic for one in member.assignment.topic_partitions}
                found.update((name, topic) for topic in topics)
        lags = self._lags(found)
        return [(*key, count, lags.get(key)) for key, count in found.items()]

    def _lags(self, reads: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], int]:
        """Return the records that lie ahead of each group in each topic, where it has committed."""
        topics, found = defaultdict[str, set[str]](set), Counter[tuple[str, str]]()
        for group, topic in reads:
            topics[group].add(topic)
        self._offsets.keep(topics)
        for group, read in topics.items():
            with suppress(KafkaException):  # it has just gone, or is another's
                asked = [one for one in self._ends if one[0] in read]
                for one, at in self._offsets.committed(group, asked, timeout=TIMEOUT).items():
                    found[group, one[0]] += max(0, self._ends[one] - at)
        return found
