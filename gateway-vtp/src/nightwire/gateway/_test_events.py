"""Test events: they show subscribers that the way from here to them works, and move no telescope."""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from xml.sax.saxutils import escape, quoteattr

from nightwire.core import __version__
from nightwire.core.kafka import DeliveryError
from nightwire.gateway._admission import Admission
from nightwire.gateway._validation import author_packet

log = logging.getLogger(__name__)

MARK = "#TestEvent-"
"""What the local part of their ivorn begins with, as Comet's does."""


def test_event(ivoid: str, now: datetime) -> bytes:
    """Return a VOEvent 2.0 of role *test* by *ivoid*, named after *now*."""
    stamp = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    name = f"{ivoid.partition('#')[0]}{MARK}{stamp}"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<voe:VOEvent xmlns:voe="http://www.ivoa.net/xml/VOEvent/v2.0"'
        f' ivorn={quoteattr(name)} role="test" version="2.0">\n'
        f"  <Who><AuthorIVORN>{escape(ivoid)}</AuthorIVORN><Date>{stamp}</Date></Who>\n"
        f"  <What><Description>Test event of nightwire {__version__}</Description></What>\n"
        "</voe:VOEvent>\n"
    ).encode()


def is_test_of(ivoid: str, ivorn: str) -> bool:
    """Say whether the event *ivorn* is a test event by the gateway *ivoid*."""
    return ivorn.startswith(f"{ivoid.partition('#')[0]}{MARK}")


async def send_test_events(
    admission: Admission,
    ivoid: str,
    interval: float,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Put a test event into the log now and every *interval* [s], for ever.

    They go out to subscribers as all that is in the log does.
    """
    while True:
        packet = author_packet(test_event(ivoid, now()))
        try:
            await admission.admit(packet, "test")
        except DeliveryError as error:
            log.warning("test event %s is not in Kafka: %s", packet.ivorn, error)
        await asyncio.sleep(interval)
