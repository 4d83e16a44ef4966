"""Wire format and containers: literal bytes, any bytes, bad bytes."""

import bz2
import contextlib
import io
import json
import lzma
import zlib
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from nightwire.schemas import Codec, DecodeError, wire

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "n", "type": "long"}, {"name": "s", "type": "string", "default": ""}],
}
SYNC = bytes(range(16))

CONTAINER = (
    b"Obj\x01"
    b"\x04"  # two entries of metadata
    b"\x14avro.codec\x08null"
    # 66 bytes
    b'\x16avro.schema\x84\x01{"type":"record","name":"r","fields":[{"name":"n","type":"int"}]} '
    b"\x00"
    b"0123456789abcdef"
    b"\x04\x06"  # two records in three bytes:
    b"\x02\x80\x01"  # 1 and 64
    b"0123456789abcdef"
)
"""A container by hand, after the specification."""


PACK: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": lambda block: zlib.compress(block, wbits=-15),
    "snappy": lambda block: (
        pa.Codec("snappy").compress(block, asbytes=True) + zlib.crc32(block).to_bytes(4, "big")
    ),
    "zstandard": lambda block: zstandard.ZstdCompressor(write_content_size=False).compress(block),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


def container(records: list[dict[str, Any]], codec: str = "null", interval: int = 1000) -> bytes:
    """Return a container of *records*, *interval* of them in a block."""
    schema = json.dumps(SCHEMA).encode()
    entries = (b"avro.codec", codec.encode(), b"avro.schema", schema)
    out = b"Obj\x01\x04" + b"".join(long(len(entry)) + entry for entry in entries) + b"\x00" + SYNC
    for start in range(0, len(records), interval):
        some = records[start : start + interval]
        packed = PACK[codec](b"".join(map(Codec(SCHEMA).encode, some)))
        out += long(len(some)) + long(len(packed)) + packed + SYNC
    return out


def long(number: int) -> bytes:
    """Return an Avro long."""
    zigzag, out = number << 1, bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes(out) + bytes([zigzag])


def test_a_frame_is_a_zero_byte_a_big_endian_id_and_the_body() -> None:
    """Rubin's captured packets of schema 9.0 begin so."""
    assert wire.frame(900, b"body") == b"\x00\x00\x00\x03\x84body"
    assert wire.unframe(b"\x00\x00\x00\x03\x84body") == (900, b"body")


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.binary())
def test_unframes_what_was_framed(schema_id: int, body: bytes) -> None:
    assert wire.unframe(wire.frame(schema_id, body)) == (schema_id, body)


@pytest.mark.parametrize("schema_id", [-1, 2**32])
def test_an_id_must_fit_into_four_bytes(schema_id: int) -> None:
    with pytest.raises(ValueError, match="four bytes"):
        wire.frame(schema_id, b"")


@pytest.mark.parametrize(
    "value", [b"", b"\x00\x00\x00\x03", b"\x01\x00\x00\x03\x84body", b"Obj\x01....", b"PK\x03\x04."]
)
def test_what_is_not_in_wire_format_is_a_decode_error(value: bytes) -> None:
    with pytest.raises(DecodeError, match="not in wire format"):
        wire.unframe(value)


def test_a_container_written_by_hand_is_read() -> None:
    records = list(wire.read_container(CONTAINER))
    assert [(one.body, one.record) for one in records] == [(b"\x02", {"n": 1}), (b"\x80\x01", {"n": 64})]
    assert records[0].schema["name"] == "r"


@pytest.mark.parametrize("codec", list(PACK))
@pytest.mark.parametrize("interval", [1, 7, 1000], ids=["a record a block", "some a block", "all in one"])
def test_bodies_come_out_as_they_were_written(codec: str, interval: int) -> None:
    records = [{"n": n * n - 50, "s": "x" * n} for n in range(40)]
    read = list(wire.read_container(container(records, codec, interval)))
    assert [one.record for one in read] == records
    assert [one.body for one in read] == [Codec(SCHEMA).encode(record) for record in records]


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_containers_of_fastavro_are_read(codec: str) -> None:
    records = [{"n": n, "s": "x" * n} for n in range(40)]
    stream = io.BytesIO()
    fastavro.writer(stream, SCHEMA, records, codec=codec, sync_interval=100)
    assert [one.record for one in wire.read_container(stream.getvalue())] == records


def test_a_body_that_another_writer_would_write_otherwise_is_kept() -> None:
    """A long may have superfluous bytes: only slicing, not encoding again, keeps them."""
    value = CONTAINER.replace(bytes.fromhex("0406028001"), bytes.fromhex("0408 8200 8001"))
    assert [(one.body, one.record["n"]) for one in wire.read_container(value)] == [
        (b"\x82\x00", 1),
        (b"\x80\x01", 64),
    ]


@given(
    st.lists(
        st.fixed_dictionaries({"n": st.integers(-(2**63), 2**63 - 1), "s": st.text(max_size=9)}), max_size=9
    ),
    st.sampled_from(list(PACK)),
)
def test_reads_what_was_written(records: list[dict[str, Any]], codec: str) -> None:
    assert [one.record for one in wire.read_container(container(records, codec))] == records


@given(st.data())
def test_a_container_that_is_cut_off_is_a_decode_error(data: st.DataObject) -> None:
    value = container([{"n": n, "s": "abc"} for n in range(9)], data.draw(st.sampled_from(list(PACK))))
    header = value.index(SYNC) + len(SYNC)  # cut there, it is a container of no records
    cut = data.draw(st.integers(0, len(value) - 1).filter(lambda at: at != header))
    with pytest.raises(DecodeError):
        list(wire.read_container(value[:cut]))


@given(st.data())
def test_a_container_with_a_changed_byte_is_read_or_a_decode_error(data: st.DataObject) -> None:
    value = bytearray(
        container([{"n": n, "s": "abc"} for n in range(9)], data.draw(st.sampled_from(list(PACK))))
    )
    value[data.draw(st.integers(0, len(value) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(DecodeError):
        list(wire.read_container(bytes(value)))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b"Obj\x01", b"Obj\x02", "not an Avro container"),
        (b"null", b"lzma", "unknown codec 'lzma'"),
        (b"avro.schema", b"avro.schemb", "no avro.schema"),
        (b'"int"', b'"inx"', "unknown type 'inx'"),
        (b'{"type":"record"', b'["type":"record"', "schema cannot be used"),
        (b"\x80\x010123", b"\x80\x010x23", "wrong sync marker"),
        (b"\x04\x06\x02", b"\x06\x06\x02", "record 2 of 3"),
        (b"\x04\x06\x02", b"\x02\x06\x02", "goes on for 2 bytes"),
        (b"\x04\x06\x02", b"\x03\x06\x02", "claims -2 records"),
        (b"\x04\x06\x02", b"\x04\x7e\x02", "wants 63 bytes"),
    ],
)
def test_what_is_wrong_with_a_container_is_said(old: bytes, new: bytes, says: str) -> None:
    assert CONTAINER.count(old) == 1
    with pytest.raises(DecodeError, match=says):
        list(wire.read_container(CONTAINER.replace(old, new)))


def test_records_ahead_of_the_damage_come_out() -> None:
    value = container([{"n": n, "s": "x"} for n in range(3)], interval=1)
    records = wire.read_container(value[:-20])
    assert [next(records).record["n"], next(records).record["n"]] == [0, 1]
    with pytest.raises(DecodeError, match="cut off"):
        next(records)


def test_a_block_that_claims_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes of deflate may hold gigabytes."""
    monkeypatch.setattr("nightwire.schemas.avro.container.MAX_BLOCK", 1000)
    for codec in list(PACK)[1:]:
        with pytest.raises(DecodeError, match="does not decompress"):
            list(wire.read_container(container([{"n": 0, "s": "x" * 5000}], codec)))


@pytest.mark.parametrize(
    ("value", "is_one"), [(CONTAINER, True), (b"Obj\x02", False), (b"\x00\x00\x00\x03\x84", False)]
)
def test_a_container_is_known_by_its_magic(value: bytes, is_one: bool) -> None:
    assert wire.is_container(value) is is_one
