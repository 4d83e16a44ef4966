"""100,000 mutated frames, VOEvents, XPath expressions (a proof: ten million): a value, or an error.

Each is either taken or refused by its own error, and memory stays bounded.
"""

import numpy as np
import pytest

from nightwire.gateway.voevent import samples
from nightwire.gateway.voevent.packet import voevent_fields
from nightwire.gateway.voevent.validation import InvalidEventError, author_packet
from nightwire.gateway.vtp.frames import FrameDecoder, FrameError, encode_frame
from nightwire.gateway.xpath.filters import XPathRefusedError, compile_filter
from tests._mutated import COUNTS, ROOM, most_memory, mutated

pytestmark = pytest.mark.slow

EVENTS = [document for _, document in samples(50)]
EXPRESSIONS = [
    b"//Who/Author[contains(shortName, 'Swift')]",
    b"//Param[@name='magnitude' and @value < 19.5] or /*[@role='observation']",
    b"count(//Param) > 3 and starts-with(@ivorn, 'ivo://nasa.gsfc.gcn/')",
    b"//*[local-name()='VOEvent']/WhereWhen//C1 > 10 and not(//Citations)",
    b'number(//Param[@name="FAR"]/@value) * 3.2e7 < 1 | //How/Reference[@uri]',
]


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(20261123)


@pytest.mark.parametrize("count", COUNTS)
def test_mutated_frames(random: np.random.Generator, count: int) -> None:
    stream = b"".join(encode_frame(document[: 40 * number]) for number, document in enumerate(EVENTS[:6], 1))
    before, messages, broken = most_memory(), 0, 0
    for _ in range(count):
        decoder, sent = FrameDecoder(max_length=4096), mutated(random, stream)
        try:
            for part in (sent[:100], sent[100:]):
                decoder.receive(part)
                messages += sum(len(message) <= 4096 for message in decoder)
        except FrameError:
            broken += 1
        assert decoder.partial <= len(sent)
    assert most_memory() - before < ROOM
    assert min(messages, broken) > count / 20


@pytest.mark.parametrize("count", COUNTS)
def test_mutated_voevents(random: np.random.Generator, count: int) -> None:
    before, outcomes = most_memory(), [0, 0]
    for number in range(count):
        try:
            packet = author_packet(mutated(random, EVENTS[number % len(EVENTS)]))
        except InvalidEventError:
            outcomes[0] += 1
        else:
            voevent_fields(packet)
            outcomes[1] += 1
    assert most_memory() - before < ROOM
    assert min(outcomes) > count / 50


@pytest.mark.parametrize("count", COUNTS)
def test_mutated_expressions(random: np.random.Generator, count: int) -> None:
    before, outcomes = most_memory(), [0, 0]
    packets = [author_packet(document) for document in EVENTS]
    for number in range(count):
        text = mutated(random, EXPRESSIONS[number % len(EXPRESSIONS)]).decode("utf-8", "replace")
        try:
            one = compile_filter(text)
        except XPathRefusedError:
            outcomes[0] += 1
        else:
            one.matches(packets[number % len(packets)].root)
            outcomes[1] += 1
    assert most_memory() - before < ROOM
    assert min(outcomes) > count / 50
