"""A stranger's laptop: over TLS, with a password or a certificate, it uses Kafka, the registry and
VTP; without, it gets nothing; and while certificates and passwords change, nothing is lost.
"""

import json
import shlex
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from nightwire.core.kafka import read_to_end
from nightwire.schemas.records import VOEVENT
from tests._laptop import SERVER, Laptop, laptop
from tests.test_stack import Stack, until

pytestmark = [pytest.mark.kafka, pytest.mark.netns, pytest.mark.slow, pytest.mark.timeout(600)]

FILTER = "def keep(alert):\n    return alert.id % 20 == 0\n"
CONNECTS = """
import json, socket, sys
def connects(port):
    try:
        socket.create_connection((sys.argv[1], port), timeout=5).close()
    except OSError:
        return False
    return True
print(json.dumps([port for port in json.loads(sys.argv[2]) if connects(port)]))
"""
"""Prints to which ports of a machine one can connect."""
ALERT = "1503"
"""How TLS says that it was not understood: an alert of version 3, in hexadecimal."""
HEARS = """
import socket, sys
for words in (b"GET / HTTP/1.0\\r\\n\\r\\n", b"", bytes(64)):
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3) as connection:
        try:
            connection.sendall(words)
            print(connection.recv(1 << 16).hex())
        except OSError:
            print()
"""
"""Prints what a port says to somebody who does not speak TLS."""


WRITES = """
import os, sys, threading
from nightwire.core.kafka import Writer, producer
writer, leave, number = Writer(producer(os.environ["KAFKA_BOOTSTRAP_SERVERS"])), threading.Event(), 0
threading.Thread(target=lambda: (sys.stdin.read(), leave.set())).start()
while not leave.wait(0.01):
    writer.write("returns.fink", str(number).encode())
    number += 1
writer.flush()
print(number)
"""
"""Writes to a broker's topic until its standard input ends; prints how many were acknowledged."""
SENDS = """
import sys, threading
from pathlib import Path
from nightwire.gateway import Author, Submission
from nightwire.gateway.net.addresses import read_address
from nightwire.gateway.net.tls import TLSSettings
from nightwire.gateway.voevent.samples import samples
tls = TLSSettings(Path(sys.argv[2]), ca=Path(sys.argv[3]))
author = Author(read_address(sys.argv[1], 0), 60, 120, tls=tls)
leave, acked = threading.Event(), []
threading.Thread(target=lambda: (sys.stdin.read(), leave.set())).start()
for name, document in samples(100_000, 1000):
    if leave.wait(0.05):
        break
    receipt = author.send(Submission(name, document))
    assert receipt.verdict == "ack", receipt
    acked.append(receipt.ivorn)
print(*acked)
"""
"""Sends VOEvents until its standard input ends; prints those that were acknowledged."""
READS = """
where="--group fink.all --fields diaSourceId --format json"
exec "$0" -m nightwire.core.cli subscribe alerts.sim $where > alerts.json
"""
"""Reads a survey's stream into a file."""
QUIET = {"log_level": 0, "error_cb": lambda _error: None}
STREAM = ("--stream", "sim", "--alerts", "20", "--interval", "2s")


class Site(Stack):
    """A stack that other machines reach."""

    def state(self) -> dict[str, Any]:
        """Return its state file."""
        found: dict[str, Any] = json.loads((self.folder / ".nightwire" / "state.json").read_text())
        return found

    def let_in(self, *words: str) -> dict[str, str]:
        """Let somebody in; return the variables that are printed."""
        said = shlex.split(self.run(*words))
        return dict(word.split("=", 1) for word in said if word != "export")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    one = Site(tmp_path_factory.mktemp("site"))
    tls = ("--auth", "scram", "--tls", SERVER)
    one.run("up", "--light", "--ports", "free", "--state", ".nightwire", *tls, *STREAM)
    yield one
    one.run("down")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    with laptop(tmp_path_factory.mktemp("laptop")) as one:
        yield one


def test_each_process_is_a_user_of_its_own_and_only_the_supervisor_is_all_of_them(site: Site) -> None:
    def user(pid: int) -> str:
        words = Path(f"/proc/{pid}/environ").read_text().split("\0")
        return dict(word.split("=", 1) for word in words if word)["KAFKA_SASL_USERNAME"]

    found = {one["name"]: user(one["pid"]) for one in site.state()["processes"] if one["name"] != "kafka"}
    own = ("schema_registry", "gateway", "filters", "exporter", "stream")
    assert {name: found.pop(name) for name in own} == {
        name: f"nightwire.{name.replace('_', '-')}" for name in own
    }
    assert set(found.values()) <= {""}


def without(keys: Mapping[str, str], *parts: str) -> dict[str, str]:
    return {name: value for name, value in keys.items() if not any(part in name for part in parts)}


def test_an_owner_far_away_submits_a_filter_and_reads_what_passes(site: Site, stranger: Laptop) -> None:
    ann = site.let_in("user", "add", "ann", "--no-quota")
    (stranger.home / "mine.py").write_text(FILTER)
    asked = stranger.run(ann, "filter", "submit", "mine.py", "--name", "mine", "--owner", "ann")
    assert asked.returncode == 0, asked.stdout + asked.stderr
    mine = ("subscribe", "filter.ann.mine", "--no-follow", "--format", "json", "--group", "ann.archive")
    read: list[str] = []

    def some_passed() -> bool:
        done = stranger.run(ann, *mine)
        read.extend(done.stdout.splitlines())
        return bool(read)

    until(some_passed, "something passes the filter")
    assert {json.loads(line)["alert"]["diaSourceId"] % 20 for line in read} == {0}
    listed = stranger.run(ann, "schema", "list", "--json")
    assert "alerts.sim-value" in {one["subject"] for one in json.loads(listed.stdout)}


def test_an_author_and_a_telescope_far_away_show_their_certificates(site: Site, stranger: Laptop) -> None:
    site.run("tls", "client", "lco")
    tls, public = site.folder / ".nightwire" / "tls", site.state()["endpoints"]["public"]
    shown = ("--tls-cert", str(tls / "lco.client.pem"), "--tls-ca", str(tls / "ca.pem"))
    sent = stranger.run({}, "send", "--to", public["vtp_authors"], "--samples", "3", *shown)
    assert sent.returncode == 0, sent.stderr
    assert stranger.run({}, "gateway", "ping", public["vtp_subscribers"], *shown).returncode == 0
    for less in ((), shown[2:]):
        refused = stranger.run(
            {}, "send", "--to", public["vtp_authors"], "--samples", "1", "--patience", "1", *less
        )
        assert refused.returncode != 0


def test_no_other_port_is_reached_and_these_say_nothing_without_tls(site: Site, stranger: Laptop) -> None:
    ports = site.state()["ports"]
    public = {port for name, port in ports.items() if name.startswith("public_")}
    found = json.loads(stranger.python(CONNECTS, SERVER, json.dumps(sorted(ports.values()))))
    assert set(found) == public
    assert len(public) == 4
    for port in public:
        for said in stranger.python(HEARS, SERVER, str(port)).splitlines():
            assert said == "" or said.startswith(ALERT), said


def test_without_the_password_or_the_authority_an_owner_gets_nothing(site: Site, stranger: Laptop) -> None:
    bob = site.let_in("user", "add", "bob", "--no-quota")
    assert stranger.run(bob, "topics").returncode == 0
    for wrong in (
        without(bob, "SASL", "SECURITY"),
        without(bob, "SSL_CA"),
        bob | {"KAFKA_SASL_PASSWORD": "guessed"},
        bob | {"KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT"},
    ):
        done = stranger.run(wrong, "topics")
        assert (done.returncode, done.stdout) == (1, "")


def renew(site: Site) -> None:
    """Renew the certificate, and wait until each port shows the new one."""
    ports = [port for name, port in site.state()["ports"].items() if name.startswith("public_")]
    before = {port: ssl.get_server_certificate(("127.0.0.1", port)) for port in ports}
    site.run("tls", "init")
    for port, old in before.items():
        until(
            lambda p=port, o=old: ssl.get_server_certificate(("127.0.0.1", p)) != o,
            f"{port} shows the new one",
        )


def records(site: Site, topic: str) -> list[bytes]:
    """Return the values in a topic, as the operator reads them."""
    with pytest.MonkeyPatch.context() as here:
        here.setenv("NIGHTWIRE_STATE", str(site.folder / ".nightwire"))
        return [record.value() or b"" for record in read_to_end(site.kafka, [topic])]


def ended(child: subprocess.Popen[str]) -> str:
    """End the standard input of *child*; return what it printed."""
    out, err = child.communicate(timeout=200)
    assert child.returncode == 0, err
    return out


def test_certificates_and_the_stacks_password_change_under_load_and_nothing_is_lost(
    site: Site, stranger: Laptop
) -> None:
    fink = site.let_in("broker", "add", "fink", "--survey", "sim", "--no-quota")
    site.run("tls", "client", "lco")
    folder, keys = site.folder / ".nightwire", "kafka-client.json"
    tls, old = folder / "tls", (folder / keys).read_text()
    python = (sys.executable, "-c")
    writer = stranger.start(*python, WRITES, **fink)
    shown = (str(tls / "lco.client.pem"), str(tls / "ca.pem"))
    author = stranger.start(*python, SENDS, site.state()["endpoints"]["public"]["vtp_authors"], *shown)
    reader = stranger.start("sh", "-c", READS, sys.executable, **fink)
    for _ in range(2):
        renew(site)
    site.run("down")
    site.run("up", "--light", "--new-password", *STREAM)
    assert (folder / keys).read_text() != old
    renew(site)
    written, acked = int(ended(writer)), ended(author).split()
    site.run("down")
    site.run("up", "--light")  # without the stream, so that its topic ends somewhere
    assert sorted(map(int, records(site, "returns.fink"))) == list(range(written))
    assert set(acked) <= {VOEVENT.decode(value)["ivorn"] for value in records(site, "voevents")}
    assert min(written, len(acked)) > 20
    alerts = len(records(site, "alerts.sim"))
    until(lambda: len(set(read_by(stranger))) == alerts, "the reader has every alert")
    reader.terminate()
    ended(reader)
    assert site.json("accounts")["discrepancies"] == []
    stranger_now = AdminClient({"bootstrap.servers": site.kafka, **QUIET, **json.loads(old)})
    with pytest.raises(KafkaException):
        stranger_now.list_topics(timeout=3)


def read_by(stranger: Laptop) -> list[int]:
    """Return the ids of the alerts that the reader has."""
    whole = (stranger.home / "alerts.json").read_text().rpartition("\n")[0]
    return [json.loads(line)["diaSourceId"] for line in whole.splitlines()]
