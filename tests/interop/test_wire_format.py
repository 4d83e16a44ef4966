"""Other people's clients read our topics, with the lines that the page gives them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import Message

from nightwire.core.kafka import read_to_end
from nightwire.schemas import Codec, sim_alert_schema, wire
from tests._secure_broker import CLIENT_ID, CLIENT_SECRET, SecureBroker, secure_broker
from tests.interop._page import blocks, line, nightwire, rubin_schema, run, write_as_rubin

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

ALERTS = 10
"""As many as the page's examples read."""

Alert = dict[str, Any]


@dataclass(frozen=True)
class Wire:
    """A Kafka with ten alerts in `alerts.sim`, and the same ones by Rubin's schema in
    `alerts.lsst`.

    Attributes:
        secure: The broker, which asks for tokens at one of its doors.
        where: What the environment of a reader says.
        sent: The records of `alerts.sim`.
        alerts: What is in them.
    """

    secure: SecureBroker
    where: dict[str, str]
    sent: list[Message] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)

    def play(self, folder: Path) -> None:
        """Write the alerts."""
        nightwire(f"simulate --alerts {ALERTS}", self.where, folder)
        self.sent.extend(read_to_end(self.secure.plain, ["alerts.sim"]))
        codec = Codec(sim_alert_schema())
        self.alerts.extend(codec.decode(wire.unframe(message.value() or b"")[1]) for message in self.sent)
        write_as_rubin(self.alerts, folder / "night.avro")
        nightwire("replay night.avro --survey lsst", self.where, folder)

    def read_by(self, client: str, number: int, folder: Path, **told: str) -> set[str]:
        """Return the lines that block *number* of the page's section on *client* prints."""
        return set(run("python", blocks(client, "python")[number], self.where | told, folder).splitlines())

    @property
    def lines(self) -> set[str]:
        """What the page's examples print of the alerts."""
        return set(map(line, self.alerts))


@pytest.fixture(scope="module")
def on_wire(
    tmp_path_factory: pytest.TempPathFactory, serve_registry: Callable[[str], AbstractContextManager[str]]
) -> Iterator[Wire]:
    """Yield a Kafka with alerts."""
    folder = tmp_path_factory.mktemp("interop")
    with secure_broker(folder) as secure, serve_registry(secure.plain) as url:
        one = Wire(secure, {"KAFKA_BOOTSTRAP_SERVERS": secure.plain, "NIGHTWIRE_SCHEMA_REGISTRY": url})
        one.play(folder)
        yield one


def test_ten_alerts_were_sent(on_wire: Wire) -> None:
    assert len(on_wire.lines) == ALERTS


def test_rubins_package_decodes_by_the_id_that_stands_in_the_message(on_wire: Wire, tmp_path: Path) -> None:
    assert on_wire.read_by("lsst-alert-packet", 0, tmp_path) == on_wire.lines


def test_rubins_package_decodes_simulated_alerts_by_our_registry(on_wire: Wire, tmp_path: Path) -> None:
    assert on_wire.read_by("lsst-alert-packet", 1, tmp_path) == on_wire.lines


def test_simulated_alerts_have_the_bytes_of_rubins_schema(on_wire: Wire) -> None:
    rubin = rubin_schema(1100)
    for message, alert in zip(on_wire.sent, on_wire.alerts, strict=True):
        _id, body = wire.unframe(message.value() or b"")
        assert rubin.deserialize(body) == alert
        assert rubin.serialize(alert) == body


@pytest.mark.data
def test_rubins_package_decodes_real_alerts_that_were_replayed(
    kafka: str, registry_url: str, data: Path, tmp_path: Path
) -> None:
    path = data / "alerts" / "lsst" / "rubin_real_v11_0.avro"
    where = {"KAFKA_BOOTSTRAP_SERVERS": kafka, "NIGHTWIRE_SCHEMA_REGISTRY": registry_url}
    nightwire(f"replay {path} --survey lsst", where, tmp_path)
    values = (message.value() or b"" for message in read_to_end(kafka, ["alerts.lsst"]))
    bodies = [body for number, body in map(wire.unframe, values) if number == 1100]
    found = {alert["diaSourceId"]: alert for alert in map(rubin_schema(1100).deserialize, bodies)}
    with path.open("rb") as file:
        real = {alert["diaSourceId"]: alert for alert in fastavro.reader(file)}
    assert len(real) == 32
    assert {name: found.get(name) for name in real} == real


def test_gcn_kafka_reads_in_plain(on_wire: Wire, tmp_path: Path) -> None:
    told = {"KAFKA_SECURITY_PROTOCOL": "plaintext"}
    assert on_wire.read_by("gcn-kafka", 0, tmp_path, **told) == on_wire.lines


def test_gcn_kafka_reads_with_a_token(on_wire: Wire, tmp_path: Path) -> None:
    told = {
        "KAFKA_BOOTSTRAP_SERVERS": on_wire.secure.oauth,
        "KAFKA_SECURITY_PROTOCOL": "sasl_plaintext",
        "KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": on_wire.secure.token_url,
        "CLIENT_ID": CLIENT_ID,
        "CLIENT_SECRET": CLIENT_SECRET,
    }
    assert on_wire.read_by("gcn-kafka", 0, tmp_path, **told) == on_wire.lines


@pytest.mark.kcat
def test_kcat_shows_keys_headers_and_sizes(on_wire: Wire, tmp_path: Path) -> None:
    shown = run("sh", blocks("kcat", "sh")[0], on_wire.where, tmp_path)
    assert sorted(shown.splitlines()) == sorted(map(shown_by_kcat, on_wire.sent))


def shown_by_kcat(message: Message) -> str:
    """Return what kcat is to show of *message*."""
    headers = ",".join(f"{name}={(value or b'').decode()}" for name, value in message.headers() or ())
    assert "visit=" in headers
    return f"{(message.key() or b'').decode()} {headers} {len(message.value() or b'')}"


@pytest.mark.kcat
def test_kcat_takes_an_alert_home(on_wire: Wire, tmp_path: Path) -> None:
    run("sh", blocks("kcat", "sh")[1], on_wire.where, tmp_path)
    assert (tmp_path / "one.cwf").read_bytes() in [message.value() for message in on_wire.sent]
