"""What is read of plain acks without a parser is what the parser reads."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nightwire.gateway import Transport, encode_transport, read_transport
from nightwire.gateway.voevent.xml import XMLRefusedError, parse_xml
from nightwire.gateway.vtp.session import ack, encode_now
from nightwire.gateway.vtp.transport import plain_transport

COMET = b"""<?xml version='1.0' encoding='UTF-8'?>
<trn:Transport xmlns:trn="http://www.telescope-networks.org/xml/Transport/v1.1" \
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" version="1.0" role="ack" \
xsi:schemaLocation="http://telescope-networks.org/schema/Transport/v1.1 http://x/Transport-v1.1.xsd">
  <Origin>ivo://a/b#c</Origin>
  <Response>ivo://comet</Response>
  <TimeStamp>2026-11-22T09:00:00Z</TimeStamp>
</trn:Transport>
"""


def test_acks_of_comet_and_of_ours_are_plain() -> None:
    assert plain_transport(COMET) == Transport("ack", "ivo://a/b#c", "ivo://comet")
    assert plain_transport(encode_now(ack("ivo://a/b#'c'", "ivo://we"))) == Transport(
        "ack", "ivo://a/b#'c'", "ivo://we"
    )
    assert plain_transport(encode_now(ack("ivo://a/b#é", "ivo://we"))) is None


@pytest.mark.parametrize(
    "change",
    [
        (b"</trn:", b"</t:"),
        (b'xmlns:trn="', b'xmlns:other="'),
        (b"ivo://a/b#c", b"ivo://a/b&amp;c"),
        (b"ivo://a/b#c", b"ivo://a/b\xffc"),
        (b"ivo://a/b#c", b"a]]>b"),
        (b'version="1.0" role', b'role="nak" role'),
        (b'role="ack"', b'role="nak"'),
        (b"UTF-8", b"latin-1"),
        (b"</Response>", b"</Response><Meta/>"),
        (b"<?xml", b"<!DOCTYPE x><?xml"),
    ],
)
def test_what_is_not_plain_is_left_to_the_parser(change: tuple[bytes, bytes]) -> None:
    assert plain_transport(COMET.replace(*change, 1)) is None


@given(st.binary(max_size=8), st.integers(0, len(COMET)), st.integers(0, 8))
@example(b"", 0, 0)
@example(b'"', 14, 1)  # another quote behind the version than before it
@example(b" ", 65, 0)  # a namespace that is no URI
@example(b"\r", 311, 0)  # which is read as a line feed
def test_whatever_is_changed_both_read_the_same(piece: bytes, at: int, length: int) -> None:
    document = COMET[:at] + piece + COMET[at + length :]
    found = plain_transport(document)
    if found is not None:
        assert found == read_transport(parse_xml(document))


@given(st.text(), st.text(), st.sampled_from(["ack", "iamalive", "nak"]))
def test_whatever_is_said_both_read_the_same(origin: str, response: str, role: str) -> None:
    try:
        document = encode_transport(Transport(role, origin, response), datetime.now(UTC))
        parsed = read_transport(parse_xml(document))
    except (XMLRefusedError, UnicodeEncodeError):
        return
    assert plain_transport(document) in (None, parsed)
