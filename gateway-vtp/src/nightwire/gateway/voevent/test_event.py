"""The test event of a gateway: role *test*, named after the time."""

from datetime import UTC, datetime
from xml.sax.saxutils import escape, quoteattr

from nightwire.core import __version__

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
