"""Alerts as JSON and as Avro containers, and the alert that a reader hands out."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import Message

from nightwire.consumers import ReceivedAlert
from nightwire.consumers.alert.record_decoder import RecordDecoder, survey_of
from nightwire.consumers.formats.container import AlertContainers, ContainerWriter, MixedSchemasError
from nightwire.consumers.formats.json import json_line, json_value
from nightwire.schemas import AlertDecoder, Codec, SchemaRegistry, records
from nightwire.schemas.wire import frame, varint

Encode = Callable[..., bytes]


def decoded(value: bytes, topic: str = "alerts.sim", **more: Any) -> ReceivedAlert:
    decoder = RecordDecoder(AlertDecoder(SchemaRegistry(None)), survey_name=more.pop("survey_name", None))
    message = Message(
        topic=topic,
        partition=2,
        offset=7,
        key=b"1005",
        value=value,
        timestamp=(1, 1_795_230_000_000),
        headers=[("visit", b"9")],
        **more,
    )
    return decoder.decode(message)


def test_a_record_becomes_an_alert_with_its_origin(encode: Encode) -> None:
    alert = decoded(encode(5))
    assert alert.position == ("alerts.sim", 2, 7)
    assert alert.timestamp == datetime(2026, 11, 21, 3, tzinfo=UTC)
    assert (alert.survey, alert.key, dict(alert.headers), alert.schema_id) == (
        "sim",
        b"1005",
        {"visit": b"9"},
        100_100,
    )
    assert alert.view is not None
    assert alert.view.flux == 3631.0
    assert alert.value.endswith(alert.body)
    assert list(alert.stamps) == ["science"]
    assert alert.stamps["science"].array.shape == (30, 30)
    assert repr(alert).startswith(
        "<ReceivedAlert id=5 object=1005 time (UTC)=2025-11-20 23:59:23 ra= 10.50000"
    )


def test_the_origin_is_where_a_filter_found_it(encode: Encode) -> None:
    alert = decoded(encode(5), topic="filter.me.bright")
    assert alert.origin == alert.position == ("filter.me.bright", 2, 7)
    place = {"topic": b"alerts.sim", "partition": b"3", "offset": b"99"}
    assert replace(alert, headers=place).origin == ("alerts.sim", 3, 99)
    assert replace(alert, headers=place | {"offset": b"?"}).origin == alert.position


def test_a_notebook_shows_the_row_and_the_picture(encode: Encode) -> None:
    page = decoded(encode(5))._repr_html_()
    assert "<td style='text-align:left'>1005</td>" in page
    assert "src='data:image/png;base64,iVBORw0KGgo" in page


@pytest.mark.parametrize(
    ("topic", "headers", "survey"),
    [
        ("alerts.ztf", {}, "ztf"),
        ("filter.me.bright", {"survey": b"lsst"}, "lsst"),
        ("alerts.ztf", {"survey": b"lsst"}, "lsst"),
        ("filter.me.bright", {}, None),
    ],
)
def test_the_survey_is_that_of_the_header_else_of_the_topic(
    topic: str, headers: dict[str, bytes], survey: str | None
) -> None:
    assert survey_of(topic, headers) == survey


def test_an_alert_of_no_known_survey_is_there_all_the_same(encode: Encode) -> None:
    alert = decoded(encode(5), topic="elsewhere")
    assert (alert.survey, alert.view, alert.stamps) == (None, None, {})
    assert alert.alert["diaSourceId"] == 5
    assert decoded(encode(5), topic="elsewhere", survey_name="sim").summary.id == 5


def test_a_voevent_is_decoded_and_shown(encode: Encode) -> None:
    event = dict.fromkeys(("author", "date", "event_time", "ra", "dec", "error", "coord_system"), None) | {
        "ivorn": "ivo://a/b#<c>",
        "role": "test",
        "version": "2.0",
        "params": [],
        "citations": [],
    }
    event |= {"origin": "author", "received": datetime(2026, 1, 1, tzinfo=UTC), "raw": b"<xml/>"}
    alert = decoded(records.VOEVENT.encode(event), topic="voevents")
    assert (alert.summary.id, alert.view, alert.alert["raw"]) == ("ivo://a/b#<c>", None, b"<xml/>")
    assert "ivo://a/b#&lt;c&gt;" in alert._repr_html_()


def test_json_is_one_object_a_line_without_bytes(encode: Encode) -> None:
    text = json_line(decoded(encode(5, psfFlux=float("nan"), x=float("inf"))))
    record = json.loads(text)
    assert "\n" not in text
    assert (record["id"], record["offset"], record["timestamp"]) == (5, 7, "2026-11-21T03:00:00Z")
    assert record["alert"]["diaSource"]["psfFlux"] is None
    assert record["alert"]["diaSource"]["x"] is None
    assert "cutoutScience" not in record["alert"]


def test_json_has_bytes_as_base64_on_request(encode: Encode) -> None:
    record = json.loads(json_line(decoded(encode(5)), with_bytes=True))
    assert record["alert"]["cutoutScience"].startswith("U0lNUExFICA9")


def test_json_leaves_bytes_out_wherever_they_are() -> None:
    value = {"a": [b"x", 1], "b": {"c": b"x"}, "t": datetime(2026, 1, 1, tzinfo=UTC)}
    assert json_value(value, with_bytes=False) == {"a": [None, 1], "b": {}, "t": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, b"\x00"), (-1, b"\x01"), (1, b"\x02"), (-64, b"\x7f"), (64, b"\x80\x01"), (8192, b"\x80\x80\x01")],
)
def test_longs_are_those_of_the_specification(value: int, encoded: bytes) -> None:
    assert varint(value) == encoded


def test_a_container_is_these_bytes() -> None:
    file = io.BytesIO()
    ContainerWriter(file, {"type": "record", "name": "r", "fields": []}, sync=b"s" * 16).write(b"BODY")
    assert file.getvalue() == (
        b'Obj\x01\x04\x16avro.schema\x5a{"type": "record", "name": "r", "fields": []}'
        b"\x14avro.codec\x08null\x00" + b"s" * 16 + b"\x02\x08BODY" + b"s" * 16
    )


def test_fastavro_reads_what_was_written(
    encode: Encode, make_alert: Callable[..., Any], tmp_path: Path
) -> None:
    containers = AlertContainers(tmp_path / "night.avro")
    for number in (1, 2):
        containers.write(decoded(encode(number)))
    containers.close()
    with (tmp_path / "night.avro").open("rb") as file:
        assert list(fastavro.reader(file)) == [make_alert(1), make_alert(2)]


def test_each_schema_gets_a_file_of_its_own(encode: Encode, tmp_path: Path) -> None:
    containers = AlertContainers(tmp_path / "night.avro")
    for alert in (decoded(encode(1)), decoded(small(3)), decoded(encode(2)), decoded(small(4))):
        containers.write(alert)
    containers.close()
    assert [path.name for path in containers.paths] == ["night.avro", "night-2.avro"]
    with containers.paths[1].open("rb") as file:
        assert list(fastavro.reader(file)) == [{"n": 3}, {"n": 4}]


def test_a_stream_refuses_a_second_schema_by_name(encode: Encode) -> None:
    containers = AlertContainers(None, io.BytesIO())
    containers.write(decoded(encode(1)))
    with pytest.raises(
        MixedSchemasError, match=r"alerts\.sim\[2\]@7 has another schema \(small\).*--out FILE"
    ):
        containers.write(decoded(small(3)))


def small(number: int) -> bytes:
    """Return a container of one record of another schema."""
    schema = {"type": "record", "name": "small", "fields": [{"name": "n", "type": "int"}]}
    file = io.BytesIO()
    ContainerWriter(file, schema).write(Codec(schema).encode({"n": number}))
    return file.getvalue()


def test_wire_format_keeps_the_body(encode: Encode) -> None:
    alert = decoded(encode(5))
    assert frame(100_100, alert.body) == alert.value
