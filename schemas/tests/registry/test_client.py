"""The registry's client: asks, keeps, and works on while the registry is away."""

import gc
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from nightwire.schemas import (
    SIM_ALERT_ID,
    AlertDecoder,
    Codec,
    DecodeError,
    RegistryAwayError,
    SchemaError,
    SchemaRegistry,
    UnknownSchemaError,
    wire,
)
from nightwire.schemas.registry.client import IDENTITY_SECONDS
from tests._serving import answering

SCHEMA = {"type": "record", "name": "a", "fields": [{"name": "x", "type": "long"}]}
URL = "http://registry:8081"


class Fake:
    """A registry that knows some schemas, is away, or is busy for a while."""

    def __init__(self, schemas: dict[int, Any]) -> None:
        self.schemas = schemas
        self.asked: list[str] = []
        self.failures: list[Callable[[], httpx.Response]] = []
        self.gives = 1100

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.method} {request.url.path}")
        if self.failures:
            return self.failures.pop(0)()
        if request.method == "POST":
            return httpx.Response(200, json={"id": self.gives})
        schema_id = int(request.url.path.rsplit("/", 1)[-1])
        if schema_id not in self.schemas:
            return httpx.Response(404, json={"error_code": 40403, "message": "Schema not found"})
        return httpx.Response(200, json={"schema": json.dumps(self.schemas[schema_id])})


def refuse() -> httpx.Response:
    """Behave as a registry that is not there."""
    raise httpx.ConnectError("refused")


@pytest.fixture
def fake() -> Fake:
    return Fake({1100: SCHEMA})


@pytest.fixture
def client(fake: Fake, tmp_path: Path) -> SchemaRegistry:
    return connect(fake, tmp_path)


def connect(fake: Fake, cache: Path, url: str | None = URL) -> SchemaRegistry:
    """Return a client, as a process that just started has."""
    return SchemaRegistry(url, cache_dir=cache, transport=httpx.MockTransport(fake))


def test_a_schema_is_asked_for_once(client: SchemaRegistry, fake: Fake) -> None:
    assert client.schema(1100) == client.schema(1100) == SCHEMA
    assert client.codec(1100) is client.codec(1100)
    assert fake.asked == ["GET /schemas/ids/1100"]


def test_our_own_are_never_asked_for(client: SchemaRegistry, fake: Fake) -> None:
    assert client.codec(SIM_ALERT_ID).schema["name"] == "alert"
    assert fake.asked == []


@pytest.mark.slow
def test_what_was_seen_once_is_there_while_the_registry_is_away(fake: Fake, tmp_path: Path) -> None:
    connect(fake, tmp_path).schema(1100)
    fake.failures = [refuse] * 3
    assert connect(fake, tmp_path).schema(1100) == SCHEMA


def test_what_was_seen_once_is_there_when_the_registry_has_lost_it(fake: Fake, tmp_path: Path) -> None:
    """Rubin's registry is emptied for a moment at each deployment."""
    connect(fake, tmp_path).schema(1100)
    fake.schemas.clear()
    assert connect(fake, tmp_path).schema(1100) == SCHEMA


def test_the_registry_is_right_where_the_disk_differs(fake: Fake, tmp_path: Path) -> None:
    """Another registry may have come up at the same address with other ids."""
    connect(fake, tmp_path).schema(1100)
    fake.schemas[1100] = {**SCHEMA, "name": "b"}
    assert connect(fake, tmp_path).schema(1100)["name"] == "b"


@pytest.mark.slow
def test_registries_do_not_share_a_folder(fake: Fake, tmp_path: Path) -> None:
    connect(fake, tmp_path).schema(1100)
    fake.failures = [refuse] * 3
    with pytest.raises(RegistryAwayError):
        connect(fake, tmp_path, "http://other:8081").schema(1100)


def of_kafka(
    fake: Fake, cluster: str | None, known: Callable[[], str | None] = lambda: None
) -> SchemaRegistry:
    """Return a client with the user's own cache, whose registry tells that it is on *cluster*."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path != "/v1/metadata/id" or fake.failures:
            return fake(request)
        if cluster is None:
            return httpx.Response(404)
        return httpx.Response(200, json={"id": "", "scope": {"clusters": {"kafka-cluster": cluster}}})

    return SchemaRegistry(URL, cluster_id=known, transport=httpx.MockTransport(answer))


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
def test_what_another_kafkas_registry_gave_at_the_same_address_is_not_believed(fake: Fake) -> None:
    """Else the ids that the registry chooses would mean another schema, in silence."""
    of_kafka(fake, "first").schema(1100)
    fake.schemas.clear()
    assert of_kafka(fake, "first").schema(1100) == SCHEMA
    with pytest.raises(UnknownSchemaError):
        of_kafka(fake, "second").schema(1100)
    fake.failures = [refuse] * 9
    with pytest.raises(RegistryAwayError):
        of_kafka(fake, "second", known=lambda: "second").schema(1100)


@pytest.fixture
def port() -> Iterator[int]:
    """Give a port that nobody else gets."""
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        yield kept.getsockname()[1]


def renamed(field: str) -> dict[str, Any]:
    return {**SCHEMA, "fields": [{"name": field, "type": "long"}]}


@contextmanager
def served(port: int, cluster: str, schema: dict[str, Any]) -> Iterator[None]:
    """Serve a registry that has one schema, over HTTP, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            of_schema = self.path == "/schemas/ids/101000"
            identity = {"scope": {"clusters": {"kafka-cluster": cluster}}}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"schema": json.dumps(schema)} if of_schema else identity).encode())

    with answering(Handler, port):
        yield


Y_OR_0 = {**SCHEMA, "fields": [{"name": "y", "type": "long", "default": 0}]}


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize(("reader", "first"), [(None, {"x": 1}), (Y_OR_0, {"y": 0})])
def test_a_process_that_lives_on_notices_that_another_stack_took_the_address(
    port: int, reader: dict[str, Any] | None, first: dict[str, Any]
) -> None:
    value = wire.frame(101_000, b"\x02")
    with SchemaRegistry(f"http://127.0.0.1:{port}") as client:
        decoder = AlertDecoder(client, reader=reader)
        with served(port, "first", renamed("x")):
            assert decoder.decode(value).alert == first
        client.doubt()
        assert decoder.decode(value).alert == first, "while the registry is away all goes on"
        with served(port, "second", renamed("y")):
            client.doubt()
            assert decoder.decode(value).alert == {"y": 1}


@pytest.mark.usefixtures("own_cache")
def test_without_any_doubt_it_is_noticed_within_a_minute(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with SchemaRegistry(f"http://127.0.0.1:{port}") as client:
        with served(port, "first", renamed("x")):
            client.codec(101_000)
        with served(port, "second", renamed("y")):
            assert client.codec(101_000).schema == renamed("x")
            later = time.monotonic() + IDENTITY_SECONDS
            monkeypatch.setattr(time, "monotonic", lambda: later)
            assert client.codec(101_000).schema == renamed("y")


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
def test_an_id_that_the_old_stack_had_is_not_taken_from_disk_while_the_new_one_starts(fake: Fake) -> None:
    """The registry is not up yet, but Kafka is."""
    clusters = ["first", "second"]
    client = of_kafka(fake, "first", lambda: clusters[-1])
    fake.schemas[1101] = SCHEMA
    client.schema(1100)
    of_kafka(fake, "first").schema(1101)
    fake.failures = [refuse] * 9
    with pytest.raises(RegistryAwayError):
        client.schema(1101)


def test_who_it_is_is_not_asked_at_each_lookup(fake: Fake, own_cache: Path) -> None:
    client = of_kafka(fake, "first")
    asked = [client.codec(1100) for _ in range(1000)]
    fake.failures = [refuse] * 2
    client.doubt()
    assert all(client.codec(1100) is one for one in asked)
    assert len(fake.failures) == 1, "a registry that is away is asked once"
    assert any(own_cache.iterdir())


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
def test_while_the_registry_is_away_kafka_itself_tells_whose_schemas_are_kept(fake: Fake) -> None:
    of_kafka(fake, "first").schema(1100)
    fake.failures = [refuse] * 12
    assert of_kafka(fake, "first", known=lambda: "first").schema(1100) == SCHEMA
    fake.failures = [refuse] * 12
    with pytest.raises(RegistryAwayError):
        of_kafka(fake, "first").schema(1100)


def test_a_registry_that_tells_nobody_whose_it_is_has_no_cache(fake: Fake, own_cache: Path) -> None:
    of_kafka(fake, None).schema(1100)
    assert not [path for path in own_cache.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("own_cache")
def test_whoever_registers_asks_the_registry_alone(fake: Fake) -> None:
    of_kafka(fake, "first").schema(1100)
    assert of_kafka(fake, "first").registered(1100) == SCHEMA
    fake.schemas.clear()
    assert of_kafka(fake, "first").registered(1100) is None


@pytest.mark.slow
def test_a_damaged_cache_is_as_none(fake: Fake, tmp_path: Path) -> None:
    connect(fake, tmp_path).schema(1100)
    for file in tmp_path.glob("*/*.json"):
        file.write_text("{")
    fake.failures = [refuse] * 3
    with pytest.raises(
        RegistryAwayError, match="does not answer GET /schemas/ids/1100: ConnectError refused"
    ):
        connect(fake, tmp_path).schema(1100)


def test_a_cache_that_cannot_be_written_is_no_reason_to_stop(fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert connect(fake, tmp_path / "file").schema(1100) == SCHEMA


@pytest.mark.slow
def test_a_busy_registry_is_asked_again(client: SchemaRegistry, fake: Fake) -> None:
    fake.failures = [refuse, lambda: httpx.Response(503, json={"message": "not yet"})]
    assert client.schema(1100) == SCHEMA
    assert len(fake.asked) == 3


def test_an_unknown_id_is_not_asked_for_again_at_once(client: SchemaRegistry, fake: Fake) -> None:
    for _ in range(3):
        with pytest.raises(UnknownSchemaError, match=r"40403|Schema not found") as caught:
            client.schema(7)
        assert not isinstance(caught.value, RegistryAwayError)
    assert len(fake.asked) == 1


def test_registering_keeps_the_schema(client: SchemaRegistry, fake: Fake) -> None:
    assert client.register("alerts.lsst-value", SCHEMA, schema_id=1100) == 1100
    assert client.schema(1100) == SCHEMA
    assert fake.asked == ["POST /subjects/alerts.lsst-value/versions"]


def test_a_registry_that_gives_another_id_is_named(client: SchemaRegistry, fake: Fake) -> None:
    """Apicurio does: messages with the survey's id could not be read with its schemas."""
    fake.gives = 1
    with pytest.raises(SchemaError, match=r"gave alerts.lsst-value the id 1 where 1100 was asked for"):
        client.register("alerts.lsst-value", SCHEMA, schema_id=1100)


def test_a_refusal_says_why(client: SchemaRegistry, fake: Fake) -> None:
    fake.failures = [lambda: httpx.Response(409, json={"error_code": 409, "message": "not compatible"})]
    with pytest.raises(SchemaError, match="refuses POST /subjects/a-value/versions: not compatible"):
        client.register("a-value", SCHEMA)


def test_without_a_registry_only_our_own_are_known(tmp_path: Path, fake: Fake) -> None:
    client = connect(fake, tmp_path, None)
    assert client.codec(SIM_ALERT_ID)
    with pytest.raises(RegistryAwayError, match="no schema registry is configured"):
        client.schema(1100)
    assert fake.asked == []


def test_messages_in_wire_format_are_decoded(client: SchemaRegistry) -> None:
    decoded = AlertDecoder(client).decode(b"\x00\x00\x00\x04\x4c\x06")
    assert (decoded.alert, decoded.schema_id, decoded.body) == ({"x": 3}, 1100, b"\x06")
    assert decoded.schema == SCHEMA


def test_containers_of_one_alert_are_decoded(client: SchemaRegistry) -> None:
    import io

    import fastavro

    def container(*records: dict[str, Any]) -> bytes:
        stream = io.BytesIO()
        fastavro.writer(stream, SCHEMA, records)
        return stream.getvalue()

    decoded = AlertDecoder(client).decode(container({"x": 3}))
    assert (decoded.alert, decoded.schema_id, decoded.body) == ({"x": 3}, None, b"\x06")
    assert decoded.schema == SCHEMA
    for records in ([], [{"x": 1}, {"x": 2}]):
        with pytest.raises(DecodeError, match=f"holds {len(records)} records; a message is one alert"):
            AlertDecoder(client).decode(container(*records))


def test_a_message_of_an_unknown_schema_is_told_from_a_malformed_one(client: SchemaRegistry) -> None:
    decoder = AlertDecoder(client)
    with pytest.raises(UnknownSchemaError):
        decoder.decode(wire.frame(7, b""))
    with pytest.raises(DecodeError):
        decoder.decode(wire.frame(1100, b""))
    with pytest.raises(DecodeError):
        decoder.decode(b"<xml/>")


def test_a_codec_of_ones_own_will_do() -> None:
    class One:
        def codec(self, schema_id: int) -> Codec:
            return Codec(SCHEMA)

    assert AlertDecoder(One()).decode(wire.frame(1, b"\x06")).alert == {"x": 3}


def test_what_a_schema_refers_to_is_written_out_in_it(tmp_path: Path) -> None:
    """The alert names the band itself, and a source that names it too: it is written out once."""
    band = {"type": "enum", "name": "s.band", "symbols": ["g", "r"]}
    source = {"type": "record", "name": "s.source", "fields": [{"name": "band", "type": "band"}]}
    fields = [
        {"name": "source", "type": ["null", "source"]},
        {"name": "history", "type": {"type": "array", "items": "s.source"}},
        {"name": "band", "type": "s.band"},
    ]
    alert = {"type": "record", "name": "s.alert", "fields": fields}
    refers = {
        name: {"name": f"s.{name}", "subject": f"{name}-value", "version": 3} for name in ("source", "band")
    }
    registry = {
        "/schemas/ids/7": {"schema": json.dumps(alert), "references": [refers["source"], refers["band"]]},
        "/subjects/source-value/versions/3": {"schema": json.dumps(source), "references": [refers["band"]]},
        "/subjects/band-value/versions/3": {"schema": json.dumps(band)},
    }
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=registry[request.url.path]))
    codec = SchemaRegistry(URL, cache_dir=tmp_path, transport=transport).codec(7)
    value = {"source": {"band": "r"}, "history": [{"band": "g"}], "band": "r"}
    assert codec.encode(value) == bytes.fromhex("02 02 02 00 00 02")
    assert codec.decode(codec.encode(value)) == value


def test_one_that_nobody_holds_any_more_has_closed_its_connections(tmp_path: Path) -> None:
    closed: list[bool] = []

    class Transport(httpx.MockTransport):
        def close(self) -> None:
            closed.append(True)

    registry = SchemaRegistry(
        URL, cache_dir=tmp_path, transport=Transport(lambda _: httpx.Response(200, json=["a-value"]))
    )
    assert (registry.subjects(), closed) == (["a-value"], [])
    del registry
    gc.collect()
    assert closed == [True]
