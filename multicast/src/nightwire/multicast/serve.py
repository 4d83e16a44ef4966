"""`nightwire relay serve`, once its options are read."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry, Gauge

from nightwire.core.channels import ChannelFollower, ChannelMapping
from nightwire.core.datagrams import Channel, GroupAddress, channel_judge, parse_group
from nightwire.core.kafka import (
    DeliveryError,
    Writer,
    check_rights,
    cluster_id,
    consumer,
    ensure_topics,
    enter,
    login,
    producer,
)
from nightwire.core.presence import metrics_at, registered
from nightwire.core.runtime import Endpoints, MetricsPage, now_ms, setup_logging, stopping
from nightwire.multicast.announcing import ROTATION, announced
from nightwire.multicast.lite import LiteForm
from nightwire.multicast.mapped import MappedOutlets
from nightwire.multicast.outlet import Outlet, Pace
from nightwire.multicast.packing import Packer
from nightwire.multicast.positions import relay_group
from nightwire.multicast.relay import AT_ONCE, Relay
from nightwire.schemas import AlertDecoder, MendableError, SchemaRegistry, surveys
from nightwire.schemas.topics import CHANNELS, VOEVENTS, named_survey, settings

log = logging.getLogger("nightwire.relay")

PATIENCE = 10.0
"""Longest wait for what channels there are. [s]"""
SESSION_TIMEOUT = 6_000
"""After a crash, how long until another relay takes over. [ms]  Kafka's brokers allow no less."""
GAUGES = {
    "nightwire_relay_sent_records": "Records that were sent.",
    "nightwire_relay_left_out_records": "Records that the channel's condition left out.",
    "nightwire_relay_expired_records": "Records that Kafka had deleted before they were sent.",
    "nightwire_relay_datagrams": "Datagrams that were sent.",
    "nightwire_relay_bytes": "Their length.",
    "nightwire_relay_failed_datagrams": "Datagrams that could not be sent.",
    "nightwire_relay_partitions": "Partitions that this relay has.",
    "nightwire_relay_shed_records": "Records of lower priority left to Kafka, as the rate was short.",
}


class RelayError(MendableError):
    """A relay cannot begin; the message says what to do."""


@dataclass(frozen=True)
class RelaySettings:
    """What a relay was asked for.

    Attributes:
        topic: What it sends.
        address: Where to; None: as the topic's channels are mapped.
        condition: SQL that chooses among the alerts; empty for all.
        full: Whether alerts are sent whole.
        rate: Most bytes a second.
        ttl: How many routers may pass a datagram on, and one.
        longest: Longest datagram. [byte]
        endpoints: Where Kafka and the registry are.
        metrics_port: Port of the page of metrics; 0 for none.
        interface: Name or address of the interface, for the groups of channels.
    """

    topic: str
    address: GroupAddress | None
    condition: str
    full: bool
    rate: int
    ttl: int
    longest: int
    endpoints: Endpoints
    metrics_port: int
    interface: str | None = None

    @property
    def carried(self) -> str:
        """What names its consumer group and its account: the multicast group, else the topic."""
        return self.address.name if self.address else self.topic

    @property
    def survey(self) -> str:
        """The survey that the topic names, or `voevents`; empty where it names none."""
        named = named_survey(self.topic)
        return named if named in (*surveys(), VOEVENTS) else ""


def serve(asked: RelaySettings) -> None:
    """Send until a signal.

    Raises:
        RelayError: There is no such topic.
        FilterError: The condition is none.
        GroupAddressError: Nothing can be sent to the group.
        KafkaException: Kafka refuses.
    """
    setup_logging("nightwire.relay")
    kafka, name = enter(asked.endpoints.kafka), f"relay {asked.carried}"
    with ExitStack() as exits:
        stop = exits.enter_context(stopping())
        _check_topic(kafka, asked.topic)
        gauges = exits.enter_context(_page(asked.metrics_port))
        about = {"group": asked.carried, "condition": asked.condition, "full": asked.full}
        ends = metrics_at(asked.metrics_port)
        exits.enter_context(registered(kafka, name, topic=asked.topic, endpoints=ends, capabilities=about))
        relay, pace = exits.enter_context(_relay(asked, kafka))
        relay.run(stop, partial(_tick, relay, pace, gauges, kafka))
    log.info("left")


class Outlets:
    """Opens outlets of a topic's channels, each made known in Kafka before.

    Args:
        asked: What the relay was asked for.
        kafka: Where Kafka is.
        registry: Knows the schemas of alerts.
    """

    def __init__(self, asked: RelaySettings, kafka: str, registry: SchemaRegistry) -> None:
        self._asked, self._kafka, self._decoder = asked, kafka, AlertDecoder(registry)
        self.pace = Pace(asked.rate)
        self._lite: dict[str, Any] = {}
        if asked.survey in surveys() and registry.url is not None:  # several channels may carry an alert
            self._lite["lite"] = lru_cache(AT_ONCE)(LiteForm(registry, asked.survey, asked.topic))

    def open(
        self,
        address: GroupAddress,
        condition: str,
        *,
        full: bool,
        priority: int = 0,
        since: Sequence[int] = (),
    ) -> Outlet:
        """Return an outlet.

        Raises:
            ChannelTakenError: A relay that is at work carries something else on that group.
            FilterError: The condition is none.
            GroupAddressError: Nothing can be sent to the group.
            DeliveryError: Kafka did not take it.
            KafkaException: Kafka cannot be reached.
        """
        asked = self._asked
        judge = channel_judge(condition, asked.survey, self._decoder) if condition else None
        wanted = Channel(asked.topic, address.name, condition, asked.survey, full)
        lite = {} if full else self._lite
        packer = Packer(announced(self._kafka, wanted, now_ms()), asked.longest, **lite)
        signed = "signed" if packer.channel.keys else "unsigned"
        log.info("%s to %s, %s", asked.topic, address.name, signed)
        return Outlet(packer, address, self.pace, asked.ttl, judge, priority, since)

    def of(self, mapping: ChannelMapping) -> Outlet:
        """Return the outlet of a channel with a group; errors as of `open`."""
        address = parse_group(str(mapping.group), self._asked.interface)
        how: Any = {"full": mapping.full, "priority": mapping.priority, "since": mapping.since}
        return self.open(address, mapping.chooses, **how)


@contextmanager
def _relay(asked: RelaySettings, kafka: str) -> Iterator[tuple[Relay, Pace]]:
    """Yield a relay, whose channels are known in Kafka."""
    with ExitStack() as exits:
        registry = SchemaRegistry(
            asked.endpoints.schema_registry, cluster_id=partial(cluster_id, kafka), login=login(kafka)
        )
        exits.enter_context(registry)
        outlets = Outlets(asked, kafka, registry)
        first, refresh = list[Outlet](), None
        if asked.address is None:
            ensure_topics(kafka, [settings(CHANNELS)])
            follower = exits.enter_context(ChannelFollower(kafka))
            follower.wait(PATIENCE)
            mapped = MappedOutlets(partial(follower.of, asked.topic), outlets.of)
            exits.callback(mapped.close)
            refresh = mapped.refresh
        else:
            first = [outlets.open(asked.address, asked.condition, full=asked.full)]
            exits.callback(first[0].close)
        client = consumer(
            kafka,
            group=relay_group(asked.carried),
            session_timeout_ms=SESSION_TIMEOUT,
            partition_assignment_strategy="cooperative-sticky",
        )
        accounts, stage = Writer(producer(kafka)), f"relay.{asked.carried}"
        yield Relay(client, asked.topic, first, outlets.pace, accounts, stage, refresh), outlets.pace


def _check_topic(kafka: str, topic: str) -> None:
    client = consumer(kafka)
    try:
        there = client.list_topics(timeout=30).topics
        if topic not in there:
            check_rights(client, [topic])
            named = ", ".join(sorted(name for name in there if not name.startswith("_")))
            raise RelayError(f"no topic {topic}; there are: {named or 'none'}")
    finally:
        client.close()


@contextmanager
def _page(port: int) -> Iterator[dict[str, Gauge]]:
    registry = CollectorRegistry()
    gauges = {name: Gauge(name, text, registry=registry) for name, text in GAUGES.items()}
    page = MetricsPage(registry, port=port)
    if port:
        page.start()
    try:
        yield gauges
    finally:
        page.stop()


def _tick(relay: Relay, pace: Pace, gauges: dict[str, Gauge], kafka: str) -> None:
    """Show what was done; sign with a new key where the old one has served."""
    sent = (pace.counts[name] for name in ("datagrams", "bytes", "failed"))
    counts = (relay.sent, relay.left_out, relay.expired, *sent, len(relay.positions), relay.shed)
    for gauge, count in zip(gauges.values(), counts, strict=True):
        gauge.set(count)
    for packer in (outlet.packer for outlet in relay.outlets):
        if packer.channel.keys and now_ms() - packer.channel.rotated > ROTATION:
            with suppress(KafkaException, DeliveryError):  # tried again in a second
                packer.channel = announced(kafka, packer.channel, now_ms())
