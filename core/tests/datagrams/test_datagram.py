"""Datagrams: their literal bytes, what comes back, and that no bytes whatever break the parser."""

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.core.datagrams import (
    HEARTBEAT,
    PACKED,
    Beat,
    Datagram,
    Entry,
    RefusedDatagramError,
    Secret,
    check,
    decode,
    decode_beats,
    decode_pack,
    decode_record,
    encode,
    encode_beats,
    encode_pack,
    encode_record,
    is_newer,
    split,
)

ONE = Datagram(0, 0xCAFE0001, 3, 7, 0x1_0000_0002, 0x1_0000_0001, 0x0199_0000_0005, 0, 1, b"body")
KEY = Secret.of(b"k" * 32)
U48 = st.integers(0, (1 << 48) - 2)


def test_a_datagram_has_these_bytes() -> None:
    assert encode(ONE).hex(" ") == (
        "a8 00 ca fe 00 01 00 03 00 07 00 01 00 00 00 02 01 99 00 00 00 05 62 6f 64 79"
    )


def test_a_pack_has_these_bytes() -> None:
    pack = [Entry(ONE.offset, ONE.time, 64, b"a"), Entry(ONE.offset + 3, ONE.time - 1, 64, b"bc")]
    body = encode_pack(pack)
    assert body.hex(" ") == "40 00 00 00 00 00 00 00 01 61 40 00 03 ff ff ff ff 00 02 62 63"
    assert decode_pack(ONE._replace(flags=PACKED, body=body)) == pack
    for broken in (b"", body[:-1], body[:3], body + b"x", body + body):
        with pytest.raises(RefusedDatagramError):
            decode_pack(ONE._replace(flags=PACKED, body=broken))


def test_a_heartbeat_has_these_bytes() -> None:
    assert encode_beats([Beat(1, 2, 3, 4)]).hex(" ") == "00 01 00 02 00 00 00 00 00 04 00 00 00 00 00 05"


def test_a_gap_and_a_part_are_told_behind_the_header() -> None:
    made = encode(ONE._replace(previous=-1, flags=2, chunk=1, chunks=3))
    assert made[1] == 2 | 16
    assert made[22:32].hex(" ") == "00 00 00 00 00 00 00 01 00 03"


def test_a_signature_covers_all_before_it() -> None:
    made = encode(ONE, KEY)
    assert made[-20:-16] == struct.pack(">I", KEY.number)
    assert check(made, decode(made), {KEY.number: KEY.key}) is None
    for at in range(len(made)):
        broken = made[:at] + bytes([made[at] ^ 1]) + made[at + 1 :]
        try:
            wrong = check(broken, decode(broken), {KEY.number: KEY.key})
        except RefusedDatagramError:
            continue
        assert wrong in {"forged", "unsigned", "unknown_key"}, at


@given(
    st.builds(
        Datagram, st.just(0), st.integers(0, 2**32 - 1), st.integers(0, 65535), st.integers(0, 65535),
        U48, st.integers(-1, 2**48 - 3), U48, st.just(0), st.just(1), st.binary(max_size=200),
    ),
    st.sampled_from([None, KEY]),
)  # fmt: skip
def test_what_is_encoded_comes_back(one: Datagram, secret: Secret | None) -> None:
    one = one._replace(previous=min(one.previous, one.offset - 1))
    found = decode(encode(one, secret))
    assert found._replace(flags=0) == one
    assert check(encode(one, secret), found, {} if secret is None else {KEY.number: KEY.key}) is None


@given(
    st.none() | st.binary(max_size=40),
    st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=40)), max_size=4),
    st.none() | st.binary(max_size=200),
)
def test_a_record_comes_back(
    key: bytes | None, headers: list[tuple[str, bytes | None]], value: bytes | None
) -> None:
    assert decode_record(*encode_record(key, headers, value)) == (key, headers, value)


def test_a_key_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than a datagram can tell"):
        encode_record(bytes(70_000), [], b"")


@given(
    st.lists(
        st.builds(
            Beat, st.integers(0, 65535), st.integers(0, 65535), st.integers(-1, 2**47), st.integers(-1, 2**47)
        )
    )
)
def test_a_heartbeat_comes_back(beats: list[Beat]) -> None:
    assert list(decode_beats(encode_beats(beats))) == beats


def test_parts_fit_and_make_the_whole() -> None:
    body = random.Random(1).randbytes(136_000)
    for signed in (False, True):
        parts = list(split(ONE._replace(body=body, previous=5), 1472, signed=signed))
        assert b"".join(one.body for one in parts) == body
        assert max(len(encode(one, KEY if signed else None)) for one in parts) <= 1472


def test_1450_bytes_fill_one_frame_of_ethernet() -> None:
    assert [len(encode(one)) for one in split(ONE._replace(body=bytes(1450)), 1472, signed=False)] == [1472]


def test_epochs_go_round() -> None:
    assert is_newer(1, 0)
    assert is_newer(0, 65535)
    assert not is_newer(65535, 0)
    assert not is_newer(7, 7)


def _mutated(rng: random.Random) -> bytes:
    kind = rng.randrange(4)
    if kind == 0:
        return rng.randbytes(rng.randrange(80))
    flags = rng.choice([0, 2, 16, HEARTBEAT, PACKED, 64, 128])
    made = bytearray(encode(ONE._replace(flags=flags, body=rng.randbytes(rng.randrange(60)))))
    if kind == 1:
        return bytes(made[: rng.randrange(len(made))])
    for _ in range(kind):
        made[rng.randrange(len(made))] = rng.randrange(256)
    return bytes(made)


@pytest.mark.slow
def test_no_bytes_break_the_parser() -> None:
    rng, parsed = random.Random(18), 0
    for _ in range(100_000):
        try:
            one = decode(_mutated(rng))
            assert one.previous < one.offset
            assert one.chunk < one.chunks
            if one.kind == PACKED:
                offsets = [entry.offset for entry in decode_pack(one)]
                assert offsets == sorted(set(offsets))
            elif one.kind == HEARTBEAT:
                list(decode_beats(one.body))
            else:
                decode_record(one.flags, one.body)
            parsed += 1
        except RefusedDatagramError as error:
            assert error.reason in {"foreign", "malformed"}  # noqa: PT017
    assert parsed > 1000
