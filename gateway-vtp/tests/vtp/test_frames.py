import contextlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.gateway import FrameDecoder, FrameError, encode_frame

messages = st.lists(st.binary(min_size=1, max_size=300), max_size=8)


def decode(*chunks: bytes, max_length: int = 1000) -> list[bytes]:
    decoder = FrameDecoder(max_length=max_length)
    found = []
    for chunk in chunks:
        decoder.receive(chunk)
        found += decoder
    return found


def test_a_frame_on_the_wire_is_its_length_big_endian_and_the_message() -> None:
    assert encode_frame(b"<VOEvent/>") == b"\x00\x00\x00\x0a<VOEvent/>"
    assert encode_frame(b"x" * 258)[:4] == b"\x00\x00\x01\x02"
    assert decode(b"\x00\x00\x00\x03abc\x00\x00\x00\x01d") == [b"abc", b"d"]


@given(messages, st.data())
def test_messages_survive_however_tcp_cuts_them(sent: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(encode_frame(message) for message in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=7)))
    borders = [0, *cuts, len(stream)]
    pieces = [stream[a:b] for a, b in itertools.pairwise(borders)]
    assert decode(*pieces) == sent


@pytest.mark.parametrize(
    ("header", "length"),
    [(b"\x00\x00\x00\x00", 0), (b"\x00\x00\x03\xe9", 1001), (b"\xff\xff\xff\xff", 2**32 - 1)],
)
def test_a_length_out_of_bounds_is_refused_before_anything_is_stored(header: bytes, length: int) -> None:
    decoder = FrameDecoder(max_length=1000)
    decoder.receive(encode_frame(b"good") + header)
    found = iter(decoder)
    assert next(found) == b"good"
    with pytest.raises(FrameError) as refusal:
        next(found)
    assert refusal.value.length == length


def test_the_longest_message_passes() -> None:
    assert decode(encode_frame(b"x" * 1000)) == [b"x" * 1000]


def test_hanging_up_between_frames_is_fine_and_within_one_is_not() -> None:
    decoder = FrameDecoder()
    decoder.receive(encode_frame(b"whole"))
    assert list(decoder) == [b"whole"]
    decoder.close()
    decoder.receive(b"\x00\x00\x00\x09half")
    assert list(decoder) == []
    with pytest.raises(FrameError, match="8 bytes into a frame"):
        decoder.close()


@given(st.binary(max_size=200))
def test_garbage_gives_messages_or_a_frame_error_and_nothing_else(garbage: bytes) -> None:
    with contextlib.suppress(FrameError):
        decode(garbage, max_length=64)
