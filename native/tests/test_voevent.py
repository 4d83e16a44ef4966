"""The native check of VOEvents beside libxml2, which is right where they differ.

The native check may say that it does not know; what it says must be what libxml2 says, byte for
byte where the event is, text for text in what it says.
"""

import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightwire.gateway import element_bytes
from nightwire.gateway.voevent.parsed_fields import parse_fields
from nightwire.gateway.voevent.validation import checker, schema_complaint
from nightwire.gateway.voevent.xml import XMLRefusedError, parse_xml

pytestmark = pytest.mark.native

COMMON = """
 <What><Param name="rate" value="3.5&lt;" unit="ct/s" dataType="float"/><Group name="sky" type="a">
  <Param name="note"><Value>far<!-- --> away</Value><Description>d</Description></Param></Group>
  <Table name="t"><Field name="f"/><Data><TR><TD>1</TD><TD>2</TD></TR></Data></Table></What>
 <How><Description>how &#233; \u00e9</Description><Reference uri="http://a.b:80/c?d=e#f" type="url"/></How>
 <Why importance="0.5" expires="2026-01-02T03:04:05Z"><Concept>c</Concept>
  <Inference probability="0.9" relation="r"><Name>n</Name></Inference></Why>
 <Citations><EventIVORN cite="supersedes">ivo://a/b#0</EventIVORN><Description>z</Description></Citations>
 <Description><![CDATA[<x> &amp;]]> and</Description><Reference uri="ivo://a"/>
</v:VOEvent>
"""
WHO = """<?xml version="1.0" encoding="UTF-8"?>
<v:VOEvent xmlns:v="http://www.ivoa.net/xml/VOEvent/v{0}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
 xsi:schemaLocation="a b" ivorn="ivo://a/b#1" role="observation" version="{0}">
 <Who><AuthorIVORN>ivo://a</AuthorIVORN><Date>2026-01-02T03:04:05</Date>
  <Author><title>t</title><contactName>c</contactName></Author></Who>
"""
PLACE = """ <WhereWhen id="w"><ObsDataLocation><ObservatoryLocation id="Palomar"/><ObservationLocation>
  <AstroCoordSystem id="UTC-ICRS-TOPO"/><AstroCoords coord_system_id="UTC-ICRS-TOPO">
   <Time unit="s"><TimeInstant><ISOTime>2026-01-02T03:04:05.184</ISOTime></TimeInstant>
    <Error>1e-3</Error></Time>
   <Position2D unit="deg"><Name1>ra</Name1><Name2>dec</Name2>
    <Value2><C1>10.5</C1><C2> -20.25 </C2></Value2><Error2Radius>0.1</Error2Radius></Position2D>
  </AstroCoords></ObservationLocation></ObsDataLocation></WhereWhen>
"""
OLD = """ <What><Param name="a" value="b"/><Group x="y"><Param/>text</Group></What>
 <WhereWhen><s:ObsDataLocation xmlns:s="http://www.ivoa.net/xml/STC/stc-v1.30.xsd"><s:any a="b">x</s:any>
 </s:ObsDataLocation></WhereWhen><How><Reference uri="x"/></How><Why importance="1"><Concept>c</Concept></Why>
 <Citations><EventIVORN cite="followup">ivo://a/b#0</EventIVORN></Citations>
</v:VOEvent>
"""
PACKETS = [
    (WHO.format("2.0") + PLACE + COMMON).encode(),
    (WHO.format("2.1") + PLACE + COMMON).encode(),
    (WHO.format("1.1") + OLD).encode(),
]
PIECES = [
    b"<", b">", b"&", b'"', b"'", b"/", b"=", b" ", b"]]>", b"<!--", b"-->", b"--", b"<?p q?>", b"<?xml?>",
    b":",
    b"<a/>", b"<Who/>", b"<What/>", b"<Description/>", b"<Name>x</Name>", b"<TD/>", b"<C1>1</C1>",
    b"<v:Who/>",
    b"x", b"\r\n", b"\t", b"\x00", b"\x0b", b"\xff", b"\xc3\xa9", b"\xef\xbf\xbe", b"&lt;", b"&#65;", b"&#0;",
    b"&#x1F600;", b"&e;", b"<![CDATA[ ]]>", b"<![CDATA[x]]>", b"<!DOCTYPE a>", b"1", b"-", b".", b"e5",
    b"NaN",
    b' a="b"', b' xmlns="urn:x"', b' xmlns:v="urn:y"', b' xmlns:w="http://w"', b' w:a="1"', b' id="w"',
    b' xsi:type="q"', b' xsi:nil="false"', b' xml:lang="en"', b' version="2.0"', b' role="test"', b"%",
    b"[", b"#",
]  # fmt: skip

VALUES: list[tuple[str, str, list[str]]] = [
    ("importance", '<Why importance="{}"><Name/></Why>', [
        "1", " 1 ", "+.5", "5.", "1E+5", "1e400", "INF", "-INF", "NaN", "", ".", "-", "nan", "+INF",
        "1e5.", "0x1",
        "1e", "\u0661", "1 2", "--1", "e5"]),
    ("probability", '<Why><Inference probability="{}"><Name/></Inference></Why>', [
        "0", "1", "-0", "0.5", "1.1", "-1", "INF", "NaN", "1.00000000000001", "1.0000001", "x"]),
    ("date", "<Who><Date>{}</Date></Who>", [
        "2026-01-02T03:04:05", "2026-01-02T03:04:05.1Z", "2024-02-29T00:00:00", "2100-02-29T00:00:00",
        "2000-02-29T00:00:00", "2026-01-02T24:00:00", "2026-01-02T24:00:01", "2026-13-01T00:00:00",
        "2026-04-31T00:00:00", "2026-01-02T03:04:60", "2026-01-02T03:60:00", "2026-01-02T03:04:05.",
        "0000-01-01T00:00:00",
        "2026-01-02T03:04:05+14:00", "2026-01-02T03:04:05+14:01", "2026-01-02T03:04:05-00:60",
        "-2026-01-02T03:04:05",
        "12026-01-02T03:04:05", "2026-01-02", "", " 2026-01-02T03:04:05", "2026-01-02t03:04:05",
        "2026-01-00T03:04:05"]),
    ("uri", '<Reference uri="{}"/>', [
        "", "http://a b", "%zz", "%20", "\u00e9", "http://a:80/", "http://a:b/", "a:b", "1:b", ":b", "##",
        "a#b#c", "?",
        "//", "http://u@h:1/p", "http://[::1]/", "http://[", "[1]", "http://a#[1]", "{x}", "http:", "*:a",
        "//a:b@c",
        "http://a:99999999999/", "http://a:/", "a%2g", "ivo://a/b#c d"]),
    ("role", "<Citations><EventIVORN cite=\"{}\">x</EventIVORN></Citations>", [
        "followup", " followup", "supersedes", "Followup", "", "retraction "]),
    ("id", '<WhereWhen id="{}"/>', ["a", "a-1.b_c", "1", "", "a:b", " a", "\u00e9"]),
]  # fmt: skip


def by_libxml2(document: bytes) -> dict[str, Any]:
    """Return what libxml2 says, None for what it does not come to."""
    try:
        root = parse_xml(document)
    except XMLRefusedError:
        return {"well_formed": False, "valid": False}
    return {"well_formed": True, "valid": schema_complaint(root) is None, "root": root}


def agree(document: bytes) -> str:
    """Hold the native check's answer against libxml2's, and return it in a word."""
    said, wanted = checker().check(document), by_libxml2(document)
    if said.well_formed is None:
        return "unsure"
    assert said.well_formed == wanted["well_formed"], (said.reason, document)
    if not said.well_formed:
        return "malformed"
    start, end = said.element or (0, 0)
    root = wanted["root"]
    assert document[start:end] == element_bytes(document)
    for name in ("ivorn", "role", "version"):
        assert said.attribute(name) == root.get(name)
    assert said.facts() == parse_fields(root)
    if said.valid is None:
        return "not judged"
    assert said.valid == wanted["valid"], (said.line, said.reason, schema_complaint(root), document)
    if not said.valid:
        assert re.search(rf"\bline {said.line}\)?$", str(schema_complaint(root)))
    return "valid" if said.valid else "invalid"


@pytest.mark.parametrize("document", PACKETS, ids=["2.0", "2.1", "1.1"])
def test_packets_of_all_versions_are_looked_at(document: bytes) -> None:
    assert agree(document) == (
        "invalid" if b"v2.1" in document and b"Error>1e-3" not in document else "valid"
    )


@pytest.mark.parametrize(
    ("template", "value"),
    [pytest.param(text, value, id=f"{name}-{value}") for name, text, values in VALUES for value in values],
)
def test_values_of_simple_types(template: str, value: str) -> None:
    for version in ("2.0", "1.1"):
        document = WHO.format(version).split(" <Who>")[0] + template.format(value) + "</v:VOEvent>"
        assert agree(document.encode()) != "malformed"


def test_what_is_usual_is_judged() -> None:
    template = WHO.format("2.0").split(" <Who>")[0] + "{}</v:VOEvent>"
    judged = [
        agree(template.format(text.format(value)).encode()) for _, text, values in VALUES for value in values
    ]
    assert judged.count("not judged") + judged.count("unsure") < len(judged) / 4
    assert {"valid", "invalid"} <= set(judged)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ((b'encoding="UTF-8"', b'encoding="ISO-8859-1"'), "unsure"),
        ((b"<Who>", b"<!DOCTYPE a><Who>"), "malformed"),
        ((b"<Who>", b"<a>" * 63 + b"</a>" * 63 + b"<Who>"), "invalid"),
        ((b"<Who>", b"<a>" * 64 + b"</a>" * 64 + b"<Who>"), "malformed"),
        ((b"<How>", b"&undefined;<How>"), "unsure"),
        ((b"<How>", b"<How >"), "valid"),
        ((b"</How>", b"</How\n>"), "valid"),
        ((b"</How>", b"</Hov>"), "malformed"),
        ((b"<How>", b'<How a="1" a="2">'), "malformed"),
        ((b"<How>", b'<How xmlns:a="http://x" xmlns:b="http://x" a:c="1" b:c="2">'), "malformed"),
        ((b"<How>", b"<a:How>"), "malformed"),
        ((b"<How>", b'<How><a xmlns:p="http://x"/><p:b/>'), "malformed"),
        ((b"<How>", b'<How><a xmlns:p="http://x"><p:b/></a><c p:d=""/>'), "malformed"),
        ((b"<How>", b'<How xsi:type="x">'), "not judged"),
        ((b'role="observation"', b'role="dance"'), "invalid"),
        ((b' role="observation"', b""), "valid"),
        ((b' ivorn="ivo://a/b#1"', b""), "invalid"),
        ((b'version="2.0"', b'version="2.1"'), "invalid"),
        ((b"<TD>1</TD><TD>2</TD>", b""), "invalid"),
        ((b"</C2>", b"</C2><C1>3</C1>"), "invalid"),
        ((b"<C1>10.5</C1>", b""), "invalid"),
        ((b"<C1>10.5</C1>", b"<C1>10.5<a/></C1>"), "invalid"),
        ((b"</Who>", b"stray</Who>"), "invalid"),
        ((b"</Who>", b"</Who><Who/>"), "invalid"),
        ((b'<Reference uri="ivo://a"/>', b'<Reference uri="ivo://a"> </Reference>'), "invalid"),
        ((b'<Reference uri="ivo://a"/>', b'<Reference uri="ivo://a"><!-- --></Reference>'), "valid"),
        ((b'<Reference uri="ivo://a"/>', b"<Reference/>"), "invalid"),
        ((b"</v:VOEvent>\n", b"</v:VOEvent><?a </v:VOEvent><?b ?>"), "valid"),
        ((b"</v:VOEvent>\n", b"</v:VOEvent><!-- </v:VOEvent> -->"), "valid"),
        ((b"</v:VOEvent>\n", b"</v:VOEvent>x"), "malformed"),
        ((b"</v:VOEvent>\n", b"</v:VOEvent><a/>"), "malformed"),
        ((b"</v:VOEvent>\n", b""), "malformed"),
        ((b"<Concept>c</Concept>", b"<Concept>\xff</Concept>"), "malformed"),
        ((b"<Concept>c</Concept>", b"<Concept>]]></Concept>"), "malformed"),
        ((b"<Concept>c</Concept>", b"<Concept>\x0b</Concept>"), "malformed"),
        ((b"<Concept>c</Concept>", b"<Concept>\xef\xbf\xbf</Concept>"), "malformed"),
        ((b"<Concept>c</Concept>", b"<Concept><!-- -- --></Concept>"), "malformed"),
        ((b"v2.0", b"v3.0"), "invalid"),
    ],
)
def test_changes_of_a_packet(change: tuple[bytes, bytes], verdict: str) -> None:
    document = PACKETS[0].replace(*change, 1)
    assert document != PACKETS[0]
    assert agree(document) == verdict


@st.composite
def changed(draw: Callable[..., Any]) -> bytes:
    """Draw a packet with some stretches left out, said twice, moved or replaced."""
    document = draw(st.sampled_from(PACKETS))
    for _ in range(draw(st.integers(1, 3))):
        marks = [at for at, byte in enumerate(document) if byte in b'<>"= '] or [0]
        first, second = sorted((draw(st.sampled_from(marks)), draw(st.sampled_from(marks))))
        inside = document[first:second]
        new = draw(st.sampled_from([b"", inside * 2, inside, *PIECES]))
        if draw(st.booleans()):
            second = first  # put there, rather than in its place
        document = document[:first] + new + document[second:]
    return bytes(document)


@pytest.mark.slow
@settings(max_examples=400)
@given(changed())
def test_packets_that_were_changed_are_what_libxml2_says(document: bytes) -> None:
    agree(document)


@pytest.mark.parametrize("seed", range(3))
def test_bytes_that_were_changed_never_break_it(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(400):
        document = bytearray(PACKETS[seed])
        for _ in range(choose.randrange(1, 4)):
            at = choose.randrange(len(document))
            document[at : at + choose.randrange(3)] = choose.choice([*PIECES, bytes([choose.randrange(256)])])
        agree(bytes(document[: choose.choice([len(document), choose.randrange(len(document))])]))


NOWHERE = '{"namespace": "", "types": [], "simple": [], "roots": [{"namespace": "", "name": "a", "type": 0}]}'


@pytest.mark.parametrize("table", ["", "{}", NOWHERE])
def test_tables_that_lead_nowhere_are_refused(table: str) -> None:
    with pytest.raises(ValueError, match="no table of a schema"):
        type(checker())([table])
