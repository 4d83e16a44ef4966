"""The planner: reads subscriptions, plans channels, writes their mappings."""

import logging
import math
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.channels import ChannelFollower, ChannelMapping
from nightwire.core.kafka import (
    Writer,
    consumer,
    ensure_topics,
    principal,
    producer,
    retry_while_unavailable,
    watermarks,
)
from nightwire.core.presence import registered
from nightwire.core.runtime import Stop, now_ms
from nightwire.core.subscriptions import SubscriptionFollower, subscriber_name
from nightwire.multicast.planning.measurement import demand_of, traffic_of
from nightwire.multicast.planning.plan import Change, Settings, plan
from nightwire.schemas import AlertDecoder, MendableError, surveys
from nightwire.schemas.topics import CHANNELS, SUBSCRIPTIONS, channel, named_survey
from nightwire.schemas.topics import settings as topic_settings

log = logging.getLogger("nightwire.channels")

PATIENCE = 10.0
"""Longest wait for the ends of `channels` and `subscriptions`. [s]"""
LEAD = 1.0
"""Time between writing a mapping and its first offset, for relays to read it. [s]"""
RATE_WINDOW = 5.0
"""Time over which the rate is measured that converts `LEAD` to offsets. [s]"""


class PlanError(MendableError):
    """Nothing can be planned; the message says why."""


@dataclass(frozen=True)
class Sample:
    """The measured alerts.

    Attributes:
        count: Newest alerts that are evaluated.
        seconds: Time over which the rate is measured. [s]
    """

    count: int = 300
    seconds: float = 600.0


class Planner:
    """Plans the channels of one topic, within a ``with`` block.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        topic: ``alerts.SURVEY``.
        registry: Knows the schemas of alerts.
        settings: Limits.
        sample: The measured alerts.

    Raises:
        PlanError: The topic is none of alerts.
    """

    def __init__(self, bootstrap: str, topic: str, registry: Any, settings: Settings, sample: Sample) -> None:
        self._bootstrap, self._topic, self._settings, self._sample = bootstrap, topic, settings, sample
        self._decoder, self._survey = AlertDecoder(registry), named_survey(topic) or ""
        if self._survey not in surveys():
            raise PlanError(f"plans are of alerts.SURVEY, with {', '.join(surveys())}; not of {topic!r}")
        self._channels, self._subscriptions = ChannelFollower(bootstrap), SubscriptionFollower(bootstrap)
        self._exits = ExitStack()

    def __enter__(self) -> "Planner":
        ensure_topics(self._bootstrap, [topic_settings(name) for name in (CHANNELS, SUBSCRIPTIONS)])
        for one in (self._channels, self._subscriptions):
            self._exits.enter_context(one)
            if not one.wait(PATIENCE):
                raise PlanError(f"Kafka at {self._bootstrap} does not say what there is")
        return self

    def __exit__(self, *_failure: object) -> None:
        self._exits.close()

    def changes(self) -> list[Change]:
        """Return the changes of the planner's channels.

        Raises:
            NoTrafficError: The topic has no alerts.
            KafkaException: Kafka cannot be reached.
        """
        traffic = traffic_of(
            self._bootstrap, self._topic, count=self._sample.count, seconds=self._sample.seconds
        )
        every = [one.mapping for one in self._channels.of()]
        now = [one for one in every if one.topic == self._topic]
        taken = {one.group for one in every if one.topic != self._topic}
        settings = replace(self._settings, groups=[one for one in self._settings.groups if one not in taken])
        demand = demand_of(
            traffic,
            [one.record["condition"] for one in self._subscriptions.live(self._topic)],
            [one.condition for one in now],
            self._survey,
            self._decoder,
            whole=settings.full or not settings.groups,
        )
        planner = subscriber_name(principal(self._bootstrap))
        return plan(now, demand, settings, self._topic, planner, datetime.now(UTC))

    @staticmethod
    def table(changes: Iterable[Change]) -> list[dict[str, Any]]:
        """Return *changes* as rows of a table."""
        return [
            {
                "action": one.action, "name": one.mapping.name, "receivers": one.receivers,
                "passes": one.share, "spares [byte/s]": one.spared, "group": one.mapping.group,
                "derived": one.mapping.derived, "condition": one.mapping.condition,
            }
            for one in changes
        ]  # fmt: skip

    def apply(self, changes: Iterable[Change]) -> None:
        """Write *changes*: all hold from the same offsets.

        Raises:
            DeliveryError: Kafka did not take them.
            KafkaException: Kafka cannot be reached.
        """
        pending = [one for one in changes if one.action != "keep"]
        removed = [one.mapping.key for one in pending if one.action == "forget"]
        since = offsets_ahead(self._bootstrap, self._topic, lead=LEAD) if pending else ()
        now = [replace(one.mapping, since=since) for one in pending if one.action != "forget"]
        if derived := [one for one in now if one.derived]:
            topics = [topic_settings(channel(one.topic, one.name)) for one in derived]
            ensure_topics(self._bootstrap, [replace(one, partitions=len(since)) for one in topics])
        write_mappings(self._bootstrap, now, removed)
        for one in pending:
            log.info("%s %s: %s", one.action, one.mapping.key, one.mapping.condition)

    def serve(self, stop: Stop, interval: float) -> None:
        """Plan and apply every *interval* [s] until *stop*, as a process of the directory."""
        about = {"groups": len(self._settings.groups), "derived": self._settings.derived}
        name = f"planner {self._topic}"
        with registered(self._bootstrap, name, topic=self._topic, capabilities=about):
            while not stop.is_set():
                try:
                    self.apply(self.changes())
                except (KafkaException, MendableError) as error:  # the registry may be away, too
                    log.warning("nothing is planned this time: %s", error)
                stop.wait(interval)


def offsets_ahead(bootstrap: str, topic: str, *, lead: float) -> tuple[int, ...]:
    """Return by partition the offset that a topic reaches in *lead* [s], at its latest rate.

    Raises:
        KafkaException: Kafka cannot be reached.
    """
    with consumer(bootstrap) as client:
        numbers = sorted(client.list_topics(topic, timeout=10).topics[topic].partitions)
        if not numbers:
            return ()
        since = now_ms() - round(1000 * RATE_WINDOW)
        asked = [TopicPartitionOffset(topic, number, since) for number in numbers]
        highs = [watermarks(client, topic, number).high for number in numbers]
        before = retry_while_unavailable(partial(client.offsets_for_times, asked, timeout=10), patience=10.0)
    counts = [high - at.offset if at.offset >= 0 else 0 for high, at in zip(highs, before, strict=True)]
    ahead = (math.ceil(count * lead / RATE_WINDOW) for count in counts)
    return tuple(high + count for high, count in zip(highs, ahead, strict=True))


def write_mappings(bootstrap: str, mappings: Sequence[ChannelMapping], removed: Sequence[str] = ()) -> None:
    """Write *mappings* into `channels`, and tombstones of the keys *removed*.

    Raises:
        DeliveryError: Kafka did not take them.
    """
    writer = Writer(producer(bootstrap))
    for one in mappings:
        writer.write(CHANNELS, one.encoded(), key=one.key.encode())
    for key in removed:
        writer.write(CHANNELS, None, key=key.encode())
    writer.flush()
