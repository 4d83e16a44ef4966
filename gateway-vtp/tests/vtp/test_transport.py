from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.gateway import Transport, encode_transport, read_transport
from nightwire.gateway.voevent.samples import samples
from nightwire.gateway.voevent.xml import XMLRefusedError, parse_xml
from nightwire.gateway.vtp.transport import begins_transport

NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)

texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zs", "Cn"]), min_size=1)
transports = st.builds(
    Transport,
    role=st.sampled_from(["iamalive", "authenticate", "ack", "nak"]),
    origin=texts,
    response=st.none() | texts,
    result=st.none() | texts,
    params=st.lists(st.tuples(texts, texts), max_size=3).map(tuple),
)


def test_a_nak_on_the_wire() -> None:
    message = Transport("nak", "ivo://a/b#1", "ivo://broker", result="bad <What>, line 3")
    assert encode_transport(message, NOON) == (
        b"<?xml version='1.0' encoding='UTF-8'?>\n"
        b'<trn:Transport xmlns:trn="http://www.telescope-networks.org/xml/Transport/v1.1"'
        b' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" version="1.0"'
        b' xsi:schemaLocation="http://telescope-networks.org/schema/Transport/v1.1'
        b' http://www.telescope-networks.org/schema/Transport-v1.1.xsd" role="nak">'
        b"<Origin>ivo://a/b#1</Origin><Response>ivo://broker</Response>"
        b"<TimeStamp>2026-11-20T12:00:00Z</TimeStamp>"
        b"<Meta><Result>bad &lt;What&gt;, line 3</Result></Meta></trn:Transport>"
    )


def test_time_stamps_are_utc_wherever_we_are() -> None:
    there = NOON.astimezone(timezone(timedelta(hours=9)))
    assert b"2026-11-20T12:00:00Z" in encode_transport(Transport("iamalive", "ivo://b"), there)


@given(transports)
def test_what_is_written_is_what_is_read(message: Transport) -> None:
    assert read_transport(parse_xml(encode_transport(message, NOON))) == message


@pytest.mark.parametrize(
    "namespace",
    [
        ' xmlns="http://telescope-networks.org/xml/Transport/v1.1"',
        ' xmlns="http://telescope-networks.org/schema/Transport/v1.1"',
        ' xmlns:trn="http://www.telescope-networks.org/xml/Transport/v1.1"',
        "",
    ],
)
def test_every_namespace_in_use_is_understood(namespace: str) -> None:
    prefix = "trn:" if "xmlns:trn" in namespace else ""
    tag = f"{prefix}Transport"
    text = f'<{tag}{namespace} role="ack" version="1.0"><Origin> ivo://x#1 </Origin></{tag}>'
    assert read_transport(parse_xml(text.encode())) == Transport("ack", "ivo://x#1")


def test_filters_are_found_in_both_spellings_and_under_both_roles() -> None:
    text = (
        b'<Transport role="authenticationresponse"><Origin>ivo://b</Origin><Meta>'
        b'<Param name="xpath-filter" value="//Who"/><Param name="contact" value="me"/>'
        b'<filter type="xpath">//What</filter></Meta></Transport>'
    )
    message = read_transport(parse_xml(text))
    assert message.role == "authenticate"
    assert message.xpath_filters == ["//Who", "//What"]


def test_an_unknown_role_is_refused_by_name() -> None:
    with pytest.raises(XMLRefusedError, match="'dance'"):
        read_transport(parse_xml(b'<Transport role="dance"/>'))


@given(transports)
def test_a_transport_message_is_known_by_its_beginning(message: Transport) -> None:
    assert begins_transport(encode_transport(message, NOON))
    assert begins_transport(b"<!-- <a> --><?x?>\n<Transport role='ack'/>")


def test_no_event_begins_like_one() -> None:
    documents = [document for _, document in samples(20)]
    assert not any(map(begins_transport, [*documents, b"", b"<!" * 1000, b"Transport", b"<Transported/>"]))
