"""Test events: they show subscribers that we reach them, and move no telescope."""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from nightwire.core.kafka import DeliveryError
from nightwire.gateway.eventlog.deduplicator import Deduplicator
from nightwire.gateway.voevent.test_event import test_event
from nightwire.gateway.voevent.validation import author_packet

log = logging.getLogger(__name__)


async def send_test_events(
    deduplicator: Deduplicator,
    ivoid: str,
    interval: float,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Put a test event into the log now and every *interval* [s], for ever.

    They go out to subscribers as all events in the log do.
    """
    while True:
        packet = author_packet(test_event(ivoid, now()))
        try:
            await deduplicator.admit(packet, "test")
        except DeliveryError as error:
            log.warning("test event %s is not in Kafka: %s", packet.ivorn, error)
        await asyncio.sleep(interval)
