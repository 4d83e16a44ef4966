"""Documents that mean harm, or were damaged on their way: refused or taken, and nothing else."""

import importlib.util
import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.gateway import InvalidEventError, author_packet
from nightwire.gateway.voevent.samples import samples
from nightwire.gateway.voevent.xml import Refusal


def _hostile() -> ModuleType:
    file = Path(__file__).with_name("hostile.py")
    spec = importlib.util.spec_from_file_location("hostile", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


stands: Callable[[bytes], None] = _hostile().stands

DOCUMENTS = [document for _, document in samples(40)]
TOKENS = [
    b"<!DOCTYPE v [<!ENTITY a 'aaaaaaaa'>]>",
    b"&a;",
    b"&#0;",
    b"&#x41;",
    b"<![CDATA[",
    b"]]>",
    b"<!--",
    b"-->",
    b"<?xml version='1.0' encoding='UTF-16'?>",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\x00",
    b" xmlns:voe='urn:other'",
    b" ivorn='ivo://a/b#1'",
    b' role="&lt;"',
    b"</voe:VOEvent>",
    b"<ISOTime>2026-13-41T25:61:61</ISOTime>",
    b"<C1>1e999</C1>",
    b"<a>" * 70,
]
"""What a fuzzer that knows XML puts in."""


def _tar_header(size: bytes) -> bytes:
    """Return the header of a folder in a tar archive, whose size is written as *size*."""
    header = bytearray(512)
    header[:1], header[124:136], header[156:157], header[257:262] = (
        b"d",
        size.ljust(12, b"\0"),
        b"5",
        b"ustar",
    )
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


SEEDS = [
    # tried each way to cut it: for ever
    b"<a ivorn='x'>x</a><?p </a> " + b"<!--a-->" * 5000 + b" y?>",
    # a DTD that libxml2 got to read
    b"<!--" + b"x" * 5000 + b"--><!DOCTYPE v [<!ENTITY a 'a'>]><v>&a;</v>",
    _tar_header(b"-1000") * 3,  # a file that ends before it begins: read again and again
    # well-formed to the native check alone
    b"<v:VOEvent xmlns:v='http://a&#32;b' ivorn='ivo://a/b#1'/>",
]
"""What was once not stood."""

BOMB = (
    b"<!DOCTYPE v [<!ENTITY a '"
    + b"a" * 100
    + b"'>"
    + b"".join(b"<!ENTITY %c '%s'>" % (97 + level, b"&%c;" % (96 + level) * 10) for level in range(1, 10))
)
PARAMETER_BOMB = b"<!DOCTYPE v [<!ENTITY % p SYSTEM 'file:///etc/passwd'> %p;"


def mutated(document: bytes, choice: random.Random) -> bytes:
    """Return *document* with a few bytes changed, cut out, doubled, or put in."""
    found = bytearray(document)
    for _ in range(choice.randint(1, 4)):
        at, length = choice.randrange(len(found) + 1), choice.choice((1, 4, 40, 400))
        new: bytes = choice.choice(
            (
                b"",
                choice.choice(TOKENS),
                bytes(found[at : at + length]) * 2,
                choice.randbytes(choice.randint(1, 4)),
            )
        )
        found[at : at + (length if choice.random() < 0.5 else 0)] = new
    return bytes(found)


@given(st.sampled_from(DOCUMENTS), st.randoms(use_true_random=False))
def test_a_damaged_packet_is_refused_or_taken_and_both_checks_agree(
    document: bytes, choice: random.Random
) -> None:
    stands(mutated(document, choice))


@given(st.lists(st.sampled_from([*TOKENS, b"<voe:VOEvent", b"<trn:Transport", b">", b"/>"]), max_size=8))
def test_pieces_of_xml_in_any_order_are_refused_or_taken(pieces: list[bytes]) -> None:
    stands(b"".join(pieces))


@pytest.mark.data
@pytest.mark.proof
def test_damaged_packets_of_the_corpus_are_refused_or_taken(data: Path) -> None:
    choice = random.Random(20261122)
    files = sorted((data / "voevent" / "corpus").rglob("*.xml"))
    assert len(files) > 500
    for file in files:
        for _ in range(20):
            stands(mutated(file.read_bytes(), choice))


@pytest.mark.parametrize("document", SEEDS, ids=range(len(SEEDS)))
def test_what_was_once_not_stood_is(document: bytes) -> None:
    stands(document)
    stands(document.replace(b"<a ", b"<VOEvent ").replace(b"</a>", b"</VOEvent>"))


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        (BOMB + b"]><VOEvent ivorn='ivo://a/b#1'>&j;</VOEvent>", Refusal.DOCTYPE),
        (PARAMETER_BOMB + b"]><VOEvent/>", Refusal.DOCTYPE),
        (b"<!--" + b"x" * 5000 + b"-->" + BOMB + b"]><VOEvent>&j;</VOEvent>", Refusal.DOCTYPE),
        (b"<VOEvent>" + b"<a>" * 100 + b"</a>" * 100 + b"</VOEvent>", Refusal.DEPTH),
        (b"<VOEvent>&undefined;</VOEvent>", Refusal.MALFORMED),
        (b"<VOEvent " + b"a" * 90_000, Refusal.MALFORMED),
    ],
    ids=["entities", "parameter-entity", "behind-a-comment", "depth", "undefined-entity", "endless-tag"],
)
def test_a_bomb_is_refused_before_it_goes_off(document: bytes, kind: Refusal) -> None:
    with pytest.raises(InvalidEventError) as refusal:
        author_packet(document)
    assert refusal.value.kind is kind


def test_an_author_may_be_held_to_less_depth() -> None:
    document = DOCUMENTS[0]
    assert author_packet(document, max_depth=12).raw == document
    with pytest.raises(InvalidEventError, match="nested more than 3 deep"):
        author_packet(document, max_depth=3)
