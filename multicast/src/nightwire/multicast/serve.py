"""`nightwire relay serve`, once its options are read."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry, Gauge

from nightwire.core.datagrams import Channel, GroupAddress, channel_judge
from nightwire.core.kafka import (
    DeliveryError,
    Writer,
    check_rights,
    cluster_id,
    consumer,
    enter,
    login,
    producer,
)
from nightwire.core.presence import metrics_at, registered
from nightwire.core.runtime import Endpoints, MetricsPage, now_ms, setup_logging, stopping
from nightwire.multicast.announcing import ROTATION, announced
from nightwire.multicast.lite import LiteForm
from nightwire.multicast.packing import Packer
from nightwire.multicast.positions import relay_group
from nightwire.multicast.relay import Relay
from nightwire.multicast.sender import Sender
from nightwire.schemas import AlertDecoder, MendableError, SchemaRegistry, surveys

log = logging.getLogger("nightwire.relay")

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
}


class RelayError(MendableError):
    """A relay cannot begin; the message says what to do."""


@dataclass(frozen=True)
class RelaySettings:
    """What a relay was asked for.

    Attributes:
        topic: What it sends.
        address: Where to.
        condition: SQL that chooses among the alerts; empty for all.
        full: Whether alerts are sent whole.
        rate: Most bytes a second.
        ttl: How many routers may pass a datagram on, and one.
        longest: Longest datagram. [byte]
        endpoints: Where Kafka and the registry are.
        metrics_port: Port of the page of metrics; 0 for none.
    """

    topic: str
    address: GroupAddress
    condition: str
    full: bool
    rate: int
    ttl: int
    longest: int
    endpoints: Endpoints
    metrics_port: int

    @property
    def survey(self) -> str:
        """The survey that the topic names; empty where it names none that is known."""
        named = self.topic.removeprefix("alerts.")
        return named if named != self.topic and named in surveys() else ""


def serve(asked: RelaySettings) -> None:
    """Send until a signal.

    Raises:
        RelayError: There is no such topic.
        FilterError: The condition is none.
        GroupAddressError: Nothing can be sent to the group.
        KafkaException: Kafka refuses.
    """
    setup_logging("nightwire.relay")
    kafka, name = enter(asked.endpoints.kafka), f"relay {asked.address.name}"
    with ExitStack() as exits:
        stop = exits.enter_context(stopping())
        _check_topic(kafka, asked.topic)
        gauges = exits.enter_context(_page(asked.metrics_port))
        about = {"group": asked.address.name, "condition": asked.condition, "full": asked.full}
        ends = metrics_at(asked.metrics_port)
        exits.enter_context(registered(kafka, name, topic=asked.topic, endpoints=ends, capabilities=about))
        relay, sender = exits.enter_context(_relay(asked, kafka))
        relay.run(stop, partial(_tick, relay, sender, gauges, kafka))
    log.info("left")


@contextmanager
def _relay(asked: RelaySettings, kafka: str) -> Iterator[tuple[Relay, Sender]]:
    """Yield a relay, whose channel is known in Kafka."""
    wanted = Channel(asked.topic, asked.address.name, asked.condition, asked.survey, asked.full)
    writer = Writer(producer(kafka))
    with ExitStack() as exits:
        registry = SchemaRegistry(
            asked.endpoints.schema_registry, cluster_id=partial(cluster_id, kafka), login=login(kafka)
        )
        exits.enter_context(registry)
        decoder = AlertDecoder(registry)
        judge = {"judge": channel_judge(asked.condition, asked.survey, decoder)} if asked.condition else {}
        sender = Sender(asked.address, asked.rate, asked.ttl)
        exits.callback(sender.close)
        packer = Packer(announced(kafka, wanted, now_ms()), asked.longest, **_lite(asked, registry))
        client = consumer(
            kafka,
            group=relay_group(asked.address.name),
            session_timeout_ms=SESSION_TIMEOUT,
            partition_assignment_strategy="cooperative-sticky",
        )
        log.info(
            "%s to %s, %s", asked.topic, asked.address.name, "signed" if packer.channel.keys else "unsigned"
        )
        yield Relay(client, sender, packer, writer, **judge), sender


def _lite(asked: RelaySettings, registry: SchemaRegistry) -> dict[str, LiteForm]:
    if asked.full or not asked.survey or registry.url is None:
        return {}
    return {"lite": LiteForm(registry, asked.survey, asked.topic)}


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


def _tick(relay: Relay, sender: Sender, gauges: dict[str, Gauge], kafka: str) -> None:
    """Show what was done; sign with a new key where the old one has served."""
    counts = (relay.sent, relay.left_out, relay.expired, sender.count, sender.bytes, sender.failed)
    for gauge, count in zip(gauges.values(), (*counts, len(relay.positions)), strict=True):
        gauge.set(count)
    channel = relay.packer.channel
    if channel.keys and now_ms() - channel.rotated > ROTATION:
        with suppress(KafkaException, DeliveryError):  # tried again in a second
            relay.packer.channel = announced(kafka, channel, now_ms())
