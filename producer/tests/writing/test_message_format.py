"""What lies in Kafka, byte for byte."""

import hashlib
import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.core.kafka import Record
from nightwire.producer import AlertWriter
from nightwire.producer.writing.message_format import (
    TEST_HEADER,
    ContainerFormat,
    WireFormat,
    message_format,
)
from nightwire.producer.writing.writer import WriterOptions
from nightwire.schemas import SIM_ALERT_ID, Codec, EncodeError, survey
from nightwire.schemas.wire import is_container, read_container, varint

SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}


def test_wire_format_is_a_zero_the_id_and_the_body() -> None:
    assert WireFormat(1100).value(b"body") == b"\x00\x00\x00\x04\x4cbody"
    assert WireFormat(1100).headers() == []


def test_a_container_is_these_bytes() -> None:
    text = b'{"type":"record","name":"r","fields":[{"name":"n","type":"long"}]}'
    sync = hashlib.md5(text, usedforsecurity=False).digest()
    assert len(text) == 66
    head = (
        b"Obj\x01\x04" + b"\x16avro.schema" + b"\x84\x01" + text + b"\x14avro.codec" + b"\x08null" + b"\x00"
    )
    assert ContainerFormat(SCHEMA).value(b"\x54") == head + sync + b"\x02" + b"\x02" + b"\x54" + sync


@given(st.integers(-(2**63), 2**63 - 1))
def test_containers_are_read_by_fastavro_and_by_us(number: int) -> None:
    body = Codec(SCHEMA).encode({"n": number})
    value = message_format("container", SCHEMA, 1).value(body)
    assert body == varint(number)
    assert is_container(value)
    assert list(fastavro.reader(io.BytesIO(value))) == [{"n": number}]
    assert [one.body for one in read_container(value)] == [body]


def test_each_record_of_a_container_topic_has_hops_headers() -> None:
    first, second = (dict(ContainerFormat(SCHEMA).headers()) for _n in range(2))
    assert first["_format"] == b"avro"
    assert len(first["_id"]) == 16
    assert first["_id"] != second["_id"]


class Kept:
    """A producer that keeps what it is given."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def produce(self, topic: str, value: bytes, key: bytes, *, headers: Any, **_rest: Any) -> None:
        """Keep a record."""
        self.records.append(vars(Record(topic, value, key, headers)))

    def poll(self, _timeout: float) -> int:
        """Serve nothing."""
        return 0

    def flush(self, _timeout: float) -> int:
        """Return that all is acknowledged."""
        return 0


@pytest.mark.parametrize("form", ["wire", "container"])
def test_simulated_alerts_are_marked_as_tests_in_every_format(
    form: str, visit: list[dict[str, Any]], codec: Codec
) -> None:
    kept: Any = Kept()
    made = message_format(form, codec.schema, SIM_ALERT_ID)
    writer = AlertWriter(
        kept, survey("sim"), codec, SIM_ALERT_ID, options=WriterOptions(message_format=made, test=True)
    )
    writer.write(visit[0], visit=7)
    (record,) = kept.records
    assert record["headers"][:2] == [("visit", b"7"), TEST_HEADER]
    assert json.dumps(record["headers"][2:], default=str).count("_format") == (form == "container")


def test_an_alert_larger_than_a_record_may_be_is_refused_by_name(
    visit: list[dict[str, Any]], codec: Codec
) -> None:
    kept: Any = Kept()
    writer = AlertWriter(kept, survey("sim"), codec, SIM_ALERT_ID)
    with pytest.raises(
        EncodeError, match=rf"alert {visit[0]['diaSourceId']}: .* a record may have 4,194,304"
    ):
        writer.write(visit[0] | {"cutoutScience": bytes(5 << 20)})
    assert kept.records == []
