"""The registry over TLS: other machines read it, by our client and by Confluent's; they change
nothing.
"""

import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from nightwire.core.stack import free_port
from nightwire.core.tls.site import Site
from nightwire.schemas import RegistryAwayError, SchemaError, SchemaRegistry
from tests._serving import await_port

pytestmark = pytest.mark.kafka

SCHEMA = {"type": "record", "name": "Tls", "fields": [{"name": "id", "type": "long"}]}
SUBJECT = "alerts.tls-value"


class Doors:
    """A registry with both doors, and the site whose certificate it shows."""

    def __init__(self, kafka: str, folder: Path, host: str = "127.0.0.1") -> None:
        self.site, port, outside = Site(folder / "tls"), free_port(), free_port()
        self.site.init(["::1"])
        words = ["--port", str(port), "--tls", f"{host}:{outside}", "--tls-cert", str(self.site.server)]
        command = [sys.executable, "-m", "nightwire.core.cli", "schema", "serve", "--bootstrap", kafka]
        log = folder / "log"
        with log.open("wb") as out:
            self.child = subprocess.Popen([*command, *words], stdout=out, stderr=out)
        for one, at in ((port, "127.0.0.1"), (outside, host.strip("[]"))):
            await_port(one, lambda: self.child.poll() is None, log, host=at)
        self.inside, self.outside = f"http://127.0.0.1:{port}", f"https://{host}:{outside}"

    def stop(self) -> int:
        """Ask it to leave; return its exit status."""
        self.child.terminate()
        return self.child.wait(60)


def context_of(site: Site) -> ssl.SSLContext:
    """Return whom somebody believes who was given the site's authority."""
    return ssl.create_default_context(cafile=site.ca)


@pytest.fixture(scope="module")
def doors(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    one = Doors(kafka, tmp_path_factory.mktemp("registry"))
    with SchemaRegistry(one.inside) as operator:
        operator.register(SUBJECT, SCHEMA)
    yield one
    assert one.stop() == 0


@pytest.fixture
def outside(doors: Doors, tmp_path: Path) -> Iterator[Callable[[], SchemaRegistry]]:
    """Yield a function that makes our client of another machine, with a cache of its own."""
    made: list[SchemaRegistry] = []

    def make() -> SchemaRegistry:
        made.append(SchemaRegistry(doors.outside, cache_dir=tmp_path / "cache"))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("by", ["KAFKA_SSL_CA_PEM", "KAFKA_SSL_CA_LOCATION"])
def test_our_client_believes_the_authority_that_kafkas_clients_are_told(
    doors: Doors, outside: Callable[[], SchemaRegistry], monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    ca = doors.site.ca
    monkeypatch.setenv(by, ca.read_text() if by.endswith("PEM") else str(ca))
    assert outside().latest(SUBJECT)[2] == SCHEMA


def test_without_it_nothing_is_believed(outside: Callable[[], SchemaRegistry]) -> None:
    with pytest.raises(RegistryAwayError, match="certificate verify failed"):
        outside().latest(SUBJECT)


def test_without_tls_nothing_is_said(doors: Doors) -> None:
    with pytest.raises(httpx.HTTPError):
        httpx.get(doors.outside.replace("https", "http"), timeout=5)


def test_a_door_may_have_an_address_of_ipv6(kafka: str, tmp_path: Path) -> None:
    doors = Doors(kafka, tmp_path, "[::1]")
    try:
        answer = httpx.get(f"{doors.outside}/subjects", verify=context_of(doors.site), timeout=60)
        assert answer.is_success
    finally:
        doors.stop()


def test_confluents_client_reads(doors: Doors) -> None:
    context = SerializationContext("alerts.tls", MessageField.VALUE)
    latest = {"auto.register.schemas": False, "use.latest.version": True}
    with SchemaRegistryClient({"url": doors.outside, "ssl.ca.location": str(doors.site.ca)}) as client:
        written = AvroSerializer(client, conf=latest)({"id": 7}, context)
        assert AvroDeserializer(client)(written, context) == {"id": 7}


def test_other_machines_change_nothing(
    doors: Doors, outside: Callable[[], SchemaRegistry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_SSL_CA_LOCATION", str(doors.site.ca))
    client = outside()
    with pytest.raises(SchemaError, match="registered on the registry's own machine"):
        client.register(SUBJECT, SCHEMA | {"name": "Other"})
    with pytest.raises(SchemaError, match="registered on the registry's own machine"):
        client.set_compatibility("NONE", SUBJECT)
    for path in (f"/subjects/{SUBJECT}", f"/subjects/{SUBJECT}/versions/1", "/config"):
        with httpx.Client(base_url=doors.outside, verify=context_of(doors.site)) as anybody:
            assert anybody.delete(path).status_code == 403
    assert client.look_up(SUBJECT, SCHEMA)[0] == 1
    assert client.may_follow(SUBJECT, SCHEMA) == []


def test_a_renewed_certificate_is_shown_without_a_restart(doors: Doors) -> None:
    where = ("127.0.0.1", int(doors.outside.rpartition(":")[2]))
    first = ssl.get_server_certificate(where)
    assert ssl.get_server_certificate(where) == first
    doors.site.init()
    assert ssl.get_server_certificate(where) != first
