import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.gateway import InvalidEventError, author_packet, broker_packet, element_bytes, voevent_fields
from nightwire.gateway.voevent.times import utc_from_iso, utc_from_mjd_tai
from nightwire.gateway.voevent.validation import native_packet
from tests._voevents import packet

ELEMENT = b'<v:VOEvent xmlns:v="u" ivorn="ivo://a/b#1"><What><!-- </v:VOEvent> --></What></v:VOEvent>'

FULL = b"""<?xml version="1.0"?>
<voe:VOEvent xmlns:voe="http://www.ivoa.net/xml/VOEvent/v2.0"
 ivorn="ivo://a/b#1" role="observation" version="2.0"><Who><AuthorIVORN>ivo://a</AuthorIVORN><Date>2026-01-02T03:04:05</Date></Who>
 <What><Param name="rate" value="3.5" unit="ct/s" ucd="phot.count"/>
  <Group name="sky"><Param name="note"><Value>far</Value></Param></Group></What>
 <WhereWhen><ObsDataLocation><ObservatoryLocation id="Palomar"/><ObservationLocation>
  <AstroCoordSystem id="TT-ICRS-TOPO"/><AstroCoords coord_system_id="TT-ICRS-TOPO">
   <Time><TimeInstant><ISOTime>2026-01-02T03:04:05.184</ISOTime></TimeInstant></Time>
   <Position2D unit="deg">
    <Value2><C1>10.5</C1><C2>-20.25</C2></Value2><Error2Radius>0.1</Error2Radius></Position2D>
  </AstroCoords></ObservationLocation></ObsDataLocation></WhereWhen>
 <Citations><EventIVORN cite="supersedes">ivo://a/b#0</EventIVORN></Citations>
</voe:VOEvent>"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b""),
        (b'<?xml version="1.0"?>\n<!-- <v:VOEvent> -->\n', b"\n<!-- </v:VOEvent> -->\n"),
        (b"\xef\xbb\xbf", b"<!-- =====BEGIN PGP SIGNATURE===== -->"),
        (b'<?xml-stylesheet href="a>b"?>', b"<?after </v:VOEvent>?>"),
    ],
)
def test_an_element_is_from_its_first_to_its_last_bracket(before: bytes, after: bytes) -> None:
    assert element_bytes(before + ELEMENT + after) == ELEMENT


def test_closing_tags_in_cdata_and_with_space_are_told_apart() -> None:
    element = b"<VOEvent ivorn='x'><![CDATA[</VOEvent><!-- -->]]></VOEvent\n >"
    assert element_bytes(element + b"\n<!--</VOEvent>-->") == element
    assert element_bytes(b"<VOEvent ivorn='x' /> <!-- a -->") == b"<VOEvent ivorn='x' />"


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_two_byte_encodings_are_cut_at_whole_characters(codec: str) -> None:
    element = "<VOEvent ivorn='ivo://a#é'></VOEvent>"
    document = ("\ufeff<?xml version='1.0' encoding='utf-16'?>" + element + "<!-- z -->").encode(codec)
    assert element_bytes(document) == element.encode(codec)


@given(st.text("<>!-? abV\n/", max_size=60))
def test_a_comment_behind_an_event_makes_no_new_event(text: str) -> None:
    comment = text.replace("--", "").strip("->").encode()
    assert element_bytes(ELEMENT + b"<!--" + comment + b" -->") == ELEMENT


def test_the_same_event_with_a_signature_is_the_same_event_and_in_another_version_is_not() -> None:
    one = packet("ivo://a/b#1")
    assert author_packet(one).hash == author_packet(one + b"<!-- signed -->").hash
    assert author_packet(one).hash != author_packet(packet("ivo://a/b#1", version="1.1")).hash


def test_fields_of_a_packet() -> None:
    fields = voevent_fields(author_packet(FULL))
    assert fields.pop("raw") == FULL
    assert fields == {
        "ivorn": "ivo://a/b#1",
        "role": "observation",
        "version": "2.0",
        "author": "ivo://a",
        "date": "2026-01-02T03:04:05",
        "event_time": "2026-01-02T03:02:56.000",  # TT - UTC = 69.184 s
        "ra": 10.5,
        "dec": -20.25,
        "error": 0.1,
        "coord_system": "TT-ICRS-TOPO",
        "params": [
            {"name": "rate", "value": "3.5", "unit": "ct/s", "ucd": "phot.count", "group": None},
            {"name": "note", "value": "far", "unit": None, "ucd": None, "group": "sky"},
        ],
        "citations": [{"ivorn": "ivo://a/b#0", "cite": "supersedes"}],
    }


@pytest.mark.parametrize(
    ("text", "scale", "utc"),
    [
        ("2026-01-01T00:00:00Z", "UTC", "2026-01-01T00:00:00"),
        ("2026-01-01T00:00:37", "TAI", "2026-01-01T00:00:00.000"),
        ("2026-01-01T00:00:18", "GPS", "2026-01-01T00:00:00.000"),
        ("2026-01-01T00:01:09.184", "TT", "2026-01-01T00:00:00.000"),
        ("2026-13-01T00:00:00", "TT", None),
        ("2026-01-01T23:59:60", "TT", None),
        ("2017-01-01T00:00:36", "TAI", "2016-12-31T23:59:60.000"),
        ("4026-01-01T00:00:00", "TDB", "4025-12-31T23:58:50.817"),
        ("yesterday", "UTC", None),
        ("2026-01-01T00:00:00", "LST", None),
    ],
)
def test_times_become_utc_or_nothing(text: str, scale: str, utc: str | None) -> None:
    assert utc_from_iso(text, scale) == utc


def test_tai_is_never_written_as_utc() -> None:
    assert utc_from_mjd_tai(61041.0) == "2025-12-31T23:59:23.000"  # 37 s


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ((b"<What>", b"<What><Bogus/>"), "Bogus.*line 4"),
        ((b'role="observation"', b'role="dance"'), "role.*dance.*line [23]"),
        ((b'ivorn="ivo://a/b#1"', b'ivorn="ivo://a/b#"'), "no local part"),
        ((b'ivorn="ivo://a/b#1"', b'ivorn="http://a/b#1"'), "not of the form"),
        ((b'ivorn="ivo://a/b#1"', b""), "no ivorn"),
        ((b"VOEvent/v2.0", b"VOEvent/v3.0"), "v3.0.* is none of"),
        ((b"</Who>", b""), "not well-formed.*line"),
        ((b"<C1>10.5</C1>", b"<C1>north</C1>"), "C1.*north.*line 10"),
    ],
)
def test_an_author_is_told_what_is_wrong_and_where(change: tuple[bytes, bytes], complaint: str) -> None:
    with pytest.raises(InvalidEventError, match=f"(?s){complaint}"):
        author_packet(FULL.replace(*change))


def test_from_a_broker_an_event_need_only_be_readable() -> None:
    assert broker_packet(FULL.replace(b"<What>", b"<What><Bogus/>")).ivorn == "ivo://a/b#1"
    with pytest.raises(InvalidEventError, match="root element is Transport"):
        broker_packet(b'<Transport role="ack"/>')


BOMB = b'<!DOCTYPE b [<!ENTITY a "aaaaaaaaaa">%s]><VOEvent ivorn="ivo://a#1">&z;</VOEvent>' % b"".join(
    b'<!ENTITY %c "%s">' % (letter, b"&%c;" % (letter - 1) * 10) for letter in range(ord("b"), ord("z") + 1)
)


@pytest.mark.parametrize(
    "document",
    [
        BOMB,
        b"<!--" + b" " * 2000 + b"-->" + BOMB,
        b'<!DOCTYPE v SYSTEM "file:///etc/passwd"><VOEvent ivorn="ivo://a#1"/>',
        b'<!DOCTYPE v [<!ENTITY x SYSTEM "file:///etc/passwd">]><VOEvent ivorn="ivo://a#1">&x;</VOEvent>',
        b'<VOEvent ivorn="ivo://a#1">&undefined;</VOEvent>',
        b"<a>" * 5000 + b"</a>" * 5000,
        b"<a>" * 100 + b"</a>" * 100,
        b"",
        b"\x00\x01\x02",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_hostile_documents_are_refused(document: bytes) -> None:
    with pytest.raises(InvalidEventError):
        author_packet(document)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_packet_or_refused(document: bytes) -> None:
    with pytest.raises(InvalidEventError):
        author_packet(document)


@pytest.mark.native
def test_the_native_check_alone_tells_events_from_messages_of_the_protocol() -> None:
    event = native_packet(FULL)
    assert event is not None
    assert event.ivorn == "ivo://a/b#1"
    assert native_packet(b'<Transport role="ack"/>') is None
    assert native_packet(FULL[:-3]) is None
