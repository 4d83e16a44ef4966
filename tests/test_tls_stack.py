"""A stranger's laptop: over TLS, with a password or a certificate, it uses Kafka, the registry and
VTP; without, it gets nothing; and while certificates and passwords change, nothing is lost.
"""

import json
import shlex
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from nightwire.core.kafka import environment, read_to_end
from nightwire.core.stack.kafka.public_listener import PER_ADDRESS
from nightwire.schemas.records import VOEVENT
from tests._laptop import SERVER, Laptop, laptop
from tests._secure_broker import AUDIENCE, Issuer
from tests._waiting import until
from tests.test_stack import Stack

pytestmark = [pytest.mark.kafka, pytest.mark.netns, pytest.mark.slow, pytest.mark.timeout(600)]

FILTER = "def keep(alert):\n    return alert.id % 37 == 0\n"
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
CROWDS = """
import socket, sys, time
crowd = []
for _ in range(int(sys.argv[3])):
    crowd.append(socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20))
    time.sleep(0.012)  # a hundred a second are let in
def stays(connection):
    connection.settimeout(0.01)
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False
time.sleep(2)
print(sum(map(stays, crowd)))
"""
"""Opens connections; prints how many of them stay."""
GCN = """
import sys
from gcn_kafka import Consumer
kafka, token_url, ca = sys.argv[1:]
config = {
    "bootstrap.servers": kafka,
    "sasl.oauthbearer.token.endpoint.url": token_url,
    "ssl.ca.location": ca,
    "group.id": "cleo.gcn",
    "auto.offset.reset": "earliest",
}
consumer = Consumer(config, client_id="cleo", client_secret="cleo's secret")
consumer.subscribe(["alerts.sim"])
print(len([one for one in consumer.consume(5, timeout=60) if not one.error()]))
consumer.close()
"""
"""Reads alerts with GCN's client, as its page says; prints how many."""
REGISTERS = """
import os
from nightwire.schemas import SchemaRegistry
with SchemaRegistry(os.environ["NIGHTWIRE_SCHEMA_REGISTRY"]) as registry:
    try:
        print(registry.register("returns.gaia-value", {"type": "record", "name": "a", "fields": []}))
    except Exception as error:
        print(error)
"""
"""Registers a schema of a broker's; prints its id, or why not."""
READS_UNTIL_REFUSED = """
from nightwire.core.kafka import consumer
from confluent_kafka import TopicPartition
import os
one = consumer(os.environ["KAFKA_BOOTSTRAP_SERVERS"])
one.assign([TopicPartition("alerts.sim", number, 0) for number in range(4)])
print("reading" if one.consume(1, timeout=60) else "nothing", flush=True)
while True:
    for message in one.consume(100, timeout=0.5):
        if message.error():
            print(message.error().name())
            raise SystemExit
"""
"""Reads a survey's stream until that is refused; prints why."""
ASKS = """
import sys
from nightwire.core.presence import SiteHttpError, request
login, *urls = sys.argv[1:]
for url in urls:
    try:
        print(request("GET", url, login=tuple(login.split(":")) if login else None).status_code)
    except SiteHttpError as error:
        print(error.status)
"""
"""Asks by HTTPS, with name and password or without; prints how each is answered."""
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
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    """Yield an OpenID provider that knows two clients; one of them the operator never heard of."""
    keys = tmp_path_factory.mktemp("issuer") / "jwks.json"
    clients = {"cleo": "cleo's secret", "nobody": "nobody's secret"}
    with Issuer(keys, clients, issuer=None, host=SERVER) as one:
        yield one


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer, stranger: Laptop) -> Iterator[Site]:
    one = Site(tmp_path_factory.mktemp("site"))
    doors = ("--auth", "scram", "--tls", SERVER, "--oidc", issuer.url, "--oidc-audience", AUDIENCE)
    one.run("up", "--light", "--archive", "--ports", "free", "--state", ".nightwire", *doors, *STREAM)
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
    own = ("schema_registry", "directory", "users", "gateway", "filters", "portal", "exporter", "stream")
    own += ("archive", "flows")
    assert {name: found.pop(name) for name in own} == {
        name: f"nightwire.{name.replace('_', '-')}" for name in own
    }
    assert set(found.values()) <= {""}


def tokens_of(site: Site, issuer: Issuer, client: str, secret: str) -> dict[str, str]:
    """Return the variables by which a client of *issuer* enters."""
    cleo = site.let_in("user", "add", "cleo", "--no-password", "--no-quota")
    assert cleo["KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL"] == issuer.token_url
    named = {"sasl.username": client, "sasl.oauthbearer.client.id": client}
    return cleo | environment(named | {"sasl.oauthbearer.client.secret": secret})


def test_an_owner_far_away_comes_with_tokens_of_an_issuer(
    site: Site, stranger: Laptop, issuer: Issuer
) -> None:
    cleo = tokens_of(site, issuer, "cleo", "cleo's secret")
    (stranger.home / "hers.py").write_text(FILTER)
    asked = stranger.run(cleo, "filter", "submit", "hers.py", "--name", "hers")
    assert asked.returncode == 0, asked.stdout + asked.stderr
    read = stranger.run(cleo, "subscribe", "alerts.sim", "--since", "1h", "--limit", "1", "--format", "json")
    assert json.loads(read.stdout.splitlines()[0])["alert"]["diaSourceId"]
    assert stranger.run(cleo | {"KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET": "guessed"}, "topics").returncode == 1
    nobody = tokens_of(site, issuer, "nobody", "nobody's secret")
    assert stranger.run(nobody, "topics", "--json").stdout.strip() == "[]"


def test_gcn_kafka_and_hop_client_log_in_as_their_pages_say(
    site: Site, stranger: Laptop, issuer: Issuer
) -> None:
    cleo = tokens_of(site, issuer, "cleo", "cleo's secret")
    ca = stranger.home / "ca.pem"
    ca.write_text(cleo["KAFKA_SSL_CA_PEM"])
    kafka = cleo["KAFKA_BOOTSTRAP_SERVERS"]
    assert int(stranger.python(GCN, kafka, issuer.token_url, str(ca))) > 0
    dora = site.let_in("user", "add", "dora", "--no-quota")
    row = f"dora,{dora['KAFKA_SASL_PASSWORD']},{kafka},SASL_SSL,SCRAM-SHA-512,{ca}"
    columns = "username,password,hostname,protocol,mechanism,ssl_ca_location"
    (stranger.home / "dora.csv").write_text(f"{columns}\n{row}\n")
    hop = (sys.executable, "-m", "hop")
    added = stranger.start(*hop, "auth", "add", "dora.csv")
    _, err = added.communicate(timeout=60)
    assert added.returncode == 0, err
    listed = stranger.start(*hop, "list-topics", f"kafka://{kafka}")
    out, err = listed.communicate(timeout=60)
    assert "alerts.sim" in out, err


def test_who_is_invited_chooses_a_password_and_changes_it_by_himself(site: Site, stranger: Laptop) -> None:
    (stranger.home / "eva.invitation").write_text(site.run("user", "invite", "eva"))
    first, second = "eva's first password", "eva's second password"
    accept = ("user", "accept", "eva.invitation")
    taken = stranger.run({"NIGHTWIRE_NEW_PASSWORD": first}, *accept)
    assert taken.returncode == 0, taken.stderr
    eva = dict(word.split("=", 1) for word in shlex.split(taken.stdout) if word != "export")
    assert stranger.run(eva, "topics").returncode == 0
    again = stranger.run({"NIGHTWIRE_NEW_PASSWORD": "an impostor's"}, *accept)
    assert (again.returncode, "this invitation holds no more" in again.stderr) == (1, True)
    assert stranger.run(eva | {"NIGHTWIRE_NEW_PASSWORD": second}, "user", "password").returncode == 0
    assert stranger.run(eva, "topics").returncode == 1
    assert stranger.run(eva | {"KAFKA_SASL_PASSWORD": second}, "topics").returncode == 0
    (stranger.home / "eva.invitation").write_text(site.run("user", "invite", "eva"))
    site.run("user", "remove", "eva")
    assert "holds no more" in stranger.run({"NIGHTWIRE_NEW_PASSWORD": first}, *accept).stderr


def test_a_token_opens_the_registry_for_a_while_and_a_revoked_user_gets_nothing_any_more(
    site: Site, stranger: Laptop
) -> None:
    gaia = site.let_in("broker", "add", "gaia", "--survey", "sim", "--no-quota")

    def registers(login: str) -> str:
        return stranger.python(REGISTERS, **gaia, NIGHTWIRE_SCHEMA_REGISTRY_LOGIN=login).strip()

    def token_for(life: str) -> str:
        return stranger.run(gaia, "user", "token", "--life", life).stdout.strip()

    token = token_for("1h")
    assert registers(token).isdecimal()
    for useless in (token[:-8] + "AAAAAAAA", token_for("1s"), "x.y.z"):
        assert "wrong, or has ended" in registers(useless) or "or a token" in registers(useless)
    open_one = stranger.start(sys.executable, "-c", READS_UNTIL_REFUSED, **gaia)
    assert open_one.stdout is not None
    assert open_one.stdout.readline() == "reading\n"
    site.run("broker", "revoke", "gaia")
    out, err = open_one.communicate(timeout=10)
    assert "TOPIC_AUTHORIZATION_FAILED" in out, err
    assert stranger.run(gaia, "topics").returncode == 1
    until(lambda: "no right" in registers(token), "the token opens nothing")
    back = site.let_in("broker", "add", "gaia", "--survey", "sim", "--no-quota")
    assert stranger.run(back, "topics").returncode == 0


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
    assert {json.loads(line)["alert"]["diaSourceId"] % 37 for line in read} == {0}
    listed = stranger.run(ann, "schema", "list", "--json")
    assert "alerts.sim-value" in {one["subject"] for one in json.loads(listed.stdout)}


def test_archive_and_portal_answer_who_shows_a_password_and_trusts_the_site(
    site: Site, stranger: Laptop
) -> None:
    fay = site.let_in("user", "add", "fay", "--no-quota")
    login = f"{fay['KAFKA_SASL_USERNAME']}:{fay['KAFKA_SASL_PASSWORD']}"
    archive, portal = fay["NIGHTWIRE_ARCHIVE_HTTP"], site.state()["endpoints"]["public"]["portal"]
    urls = (f"{archive}/surveys", f"{portal}/api/alerts")
    for shown, status in ((login, "200"), ("", "401"), (login + "x", "401")):
        assert stranger.python(ASKS, shown, *urls, **fay).split() == [status] * 2
    assert "https://" in archive
    assert stranger.python(ASKS, login, *urls).split() == ["0", "0"]  # it does not trust who answers


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
    assert len(public) == 8
    with ThreadPoolExecutor(len(public)) as pool:  # most say nothing for three seconds
        heard = pool.map(lambda port: stranger.python(HEARS, SERVER, str(port)), public)
    for said in "".join(heard).splitlines():
        assert said == "" or said.startswith(ALERT), said


def test_one_machine_takes_so_many_connections_and_no_more(site: Site, stranger: Laptop) -> None:
    port = str(site.state()["ports"]["public_kafka"])
    assert int(stranger.python(CROWDS, SERVER, port, str(PER_ADDRESS + 50))) == PER_ADDRESS
    eva = site.let_in("user", "add", "eve", "--no-quota")
    until(lambda: stranger.run(eva, "topics").returncode == 0, "there is room again")


def test_without_the_password_or_the_authority_an_owner_gets_nothing(site: Site, stranger: Laptop) -> None:
    bob = site.let_in("user", "add", "bob", "--no-quota")
    assert stranger.run(bob, "topics").returncode == 0
    wrongs = (
        without(bob, "SASL", "SECURITY"),
        without(bob, "SSL_CA"),
        bob | {"KAFKA_SASL_PASSWORD": "guessed"},
        bob | {"KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT"},
    )
    with ThreadPoolExecutor(len(wrongs)) as pool:
        tried = [*pool.map(lambda wrong: stranger.run(wrong, "topics"), wrongs)]
    for wrong, done in zip(wrongs, tried, strict=True):
        assert (done.returncode, done.stdout) == (1, "")
        assert ("is not trusted; KAFKA_SSL_CA" in done.stderr) == ("KAFKA_SSL_CA_PEM" not in wrong)


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


@pytest.mark.proof
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
