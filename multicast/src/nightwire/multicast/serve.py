"""`nightwire relay serve`: the relay is built, registered and run."""

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
from nightwire.multicast.announcement import ROTATION, announce_channel
from nightwire.multicast.group_sender import GroupSender, RateLimiter
from nightwire.multicast.lite import LiteForm
from nightwire.multicast.mapped_senders import MappedSenders
from nightwire.multicast.packing import Packer
from nightwire.multicast.positions import relay_group
from nightwire.multicast.relay import MAX_BATCH, Relay
from nightwire.schemas import AlertDecoder, MendableError, SchemaRegistry, surveys
from nightwire.schemas.topics import CHANNELS, VOEVENTS, named_survey, settings

log = logging.getLogger("nightwire.relay")

TIMEOUT = 10.0
"""Longest wait for the end of the topic `channels`. [s]"""
SESSION_TIMEOUT = 6_000
"""Time after a crash until another relay takes over. [ms]  Kafka's brokers allow no less."""
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
    """A relay cannot start; the message says what to do."""


@dataclass(frozen=True)
class RelaySettings:
    """The options of a relay.

    Attributes:
        topic: Its name.
        address: The multicast group; None: those of the topic's mapped channels.
        condition: SQL that chooses among the alerts; empty for all.
        full: Whether alerts are sent whole.
        rate: Most bytes a second.
        ttl: Of the datagrams.
        max_datagram: Longest datagram. [byte]
        endpoints: Of Kafka and the registry.
        metrics_port: Of the metrics page; 0 for none.
        interface: Name or address of the interface, for the groups of channels.
    """

    topic: str
    address: GroupAddress | None
    condition: str
    full: bool
    rate: int
    ttl: int
    max_datagram: int
    endpoints: Endpoints
    metrics_port: int
    interface: str | None = None

    @property
    def identity(self) -> str:
        """Names its consumer group and account: the multicast group, else the topic."""
        return self.address.name if self.address else self.topic

    @property
    def survey(self) -> str:
        """The survey that the topic names, or `voevents`; empty where it names none."""
        named = named_survey(self.topic)
        return named if named in (*surveys(), VOEVENTS) else ""


def serve(options: RelaySettings) -> None:
    """Run a relay until a signal.

    Raises:
        RelayError: There is no such topic.
        FilterError: The condition is no SQL condition.
        GroupAddressError: The group cannot be sent to.
        KafkaException: Kafka refuses.
    """
    setup_logging("nightwire.relay")
    kafka, name = enter(options.endpoints.kafka), f"relay {options.identity}"
    with ExitStack() as exits:
        stop = exits.enter_context(stopping())
        _check_topic(kafka, options.topic)
        gauges = exits.enter_context(_metrics_page(options.metrics_port))
        about = {"group": options.identity, "condition": options.condition, "full": options.full}
        ends = metrics_at(options.metrics_port)
        exits.enter_context(registered(kafka, name, topic=options.topic, endpoints=ends, capabilities=about))
        relay, limiter = exits.enter_context(_relay(options, kafka))
        relay.run(stop, partial(_tick, relay, limiter, gauges, kafka))
    log.info("left")


class SenderFactory:
    """Opens the senders of a topic's channels, after announcing each in Kafka.

    Args:
        options: The relay's.
        kafka: Kafka's address.
        registry: Knows the schemas of alerts.
    """

    def __init__(self, options: RelaySettings, kafka: str, registry: SchemaRegistry) -> None:
        self._options, self._kafka, self._decoder = options, kafka, AlertDecoder(registry)
        self.limiter = RateLimiter(options.rate)
        self._lite: dict[str, Any] = {}
        if options.survey in surveys() and registry.url is not None:  # several channels may carry an alert
            self._lite["lite"] = lru_cache(MAX_BATCH)(LiteForm(registry, options.survey, options.topic))

    def open(
        self,
        address: GroupAddress,
        condition: str,
        *,
        full: bool,
        priority: int = 0,
        since: Sequence[int] = (),
    ) -> GroupSender:
        """Return a sender.

        Raises:
            GroupInUseError: A running relay carries another channel on that group.
            FilterError: The condition is no SQL condition.
            GroupAddressError: The group cannot be sent to.
            DeliveryError: Kafka did not take it.
            KafkaException: Kafka cannot be reached.
        """
        options = self._options
        judge = channel_judge(condition, options.survey, self._decoder) if condition else None
        wanted = Channel(options.topic, address.name, condition, options.survey, full)
        lite = {} if full else self._lite
        packer = Packer(announce_channel(self._kafka, wanted, now_ms()), options.max_datagram, **lite)
        signed = "signed" if packer.channel.keys else "unsigned"
        log.info("%s to %s, %s", options.topic, address.name, signed)
        return GroupSender(packer, address, self.limiter, options.ttl, judge, priority, since)

    def open_mapped(self, mapping: ChannelMapping) -> GroupSender:
        """Return the sender of a mapped channel; errors as of `open`."""
        address = parse_group(str(mapping.group), self._options.interface)
        how: Any = {"full": mapping.full, "priority": mapping.priority, "since": mapping.since}
        return self.open(address, mapping.chooses, **how)


@contextmanager
def _relay(options: RelaySettings, kafka: str) -> Iterator[tuple[Relay, RateLimiter]]:
    """Yield a relay, whose channels are announced."""
    with ExitStack() as exits:
        registry = SchemaRegistry(
            options.endpoints.schema_registry, cluster_id=partial(cluster_id, kafka), login=login(kafka)
        )
        exits.enter_context(registry)
        senders = SenderFactory(options, kafka, registry)
        fixed, refresh = list[GroupSender](), None
        if options.address is None:
            ensure_topics(kafka, [settings(CHANNELS)])
            follower = exits.enter_context(ChannelFollower(kafka))
            follower.wait(TIMEOUT)
            mapped = MappedSenders(partial(follower.of, options.topic), senders.open_mapped)
            exits.callback(mapped.close)
            refresh = mapped.refresh
        else:
            fixed = [senders.open(options.address, options.condition, full=options.full)]
            exits.callback(fixed[0].close)
        client = consumer(
            kafka,
            group=relay_group(options.identity),
            session_timeout_ms=SESSION_TIMEOUT,
            partition_assignment_strategy="cooperative-sticky",
        )
        accounts, stage = Writer(producer(kafka)), f"relay.{options.identity}"
        yield Relay(client, options.topic, fixed, senders.limiter, accounts, stage, refresh), senders.limiter


def _check_topic(kafka: str, topic: str) -> None:
    with consumer(kafka) as client:
        there = client.list_topics(timeout=30).topics
        if topic not in there:
            check_rights(client, [topic])
            named = ", ".join(sorted(name for name in there if not name.startswith("_")))
            raise RelayError(f"no topic {topic}; there are: {named or 'none'}")


@contextmanager
def _metrics_page(port: int) -> Iterator[dict[str, Gauge]]:
    registry = CollectorRegistry()
    gauges = {name: Gauge(name, text, registry=registry) for name, text in GAUGES.items()}
    page = MetricsPage(registry, port=port)
    if port:
        page.start()
    try:
        yield gauges
    finally:
        page.stop()


def _tick(relay: Relay, limiter: RateLimiter, gauges: dict[str, Gauge], kafka: str) -> None:
    """Update the gauges; announce channels with new keys if `ROTATION` has passed."""
    sent = (limiter.counts[name] for name in ("datagrams", "bytes", "failed"))
    counts = (relay.sent, relay.left_out, relay.expired, *sent, len(relay.positions), relay.shed)
    for gauge, count in zip(gauges.values(), counts, strict=True):
        gauge.set(count)
    for packer in (sender.packer for sender in relay.senders):
        if packer.channel.keys and now_ms() - packer.channel.rotated > ROTATION:
            with suppress(KafkaException, DeliveryError):  # tried again in a second
                packer.channel = announce_channel(kafka, packer.channel, now_ms())
