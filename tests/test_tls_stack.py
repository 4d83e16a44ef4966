"""A stranger's laptop: over TLS, with a password or a certificate, it uses Kafka, the registry and
VTP; without, it gets nothing; and while certificates and passwords change, nothing is lost.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

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
    one.run("up", "--light", "--ports", "free", "--state", ".nightwire", *tls)
    yield one
    one.run("down")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    with laptop(tmp_path_factory.mktemp("laptop")) as one:
        yield one


def without(keys: Mapping[str, str], *parts: str) -> dict[str, str]:
    return {name: value for name, value in keys.items() if not any(part in name for part in parts)}


def test_an_owner_far_away_submits_a_filter_and_reads_what_passes(site: Site, stranger: Laptop) -> None:
    ann = site.let_in("user", "add", "ann", "--no-quota")
    (stranger.home / "mine.py").write_text(FILTER)
    asked = stranger.run(ann, "filter", "submit", "mine.py", "--name", "mine", "--owner", "ann")
    assert asked.returncode == 0, asked.stdout + asked.stderr
    site.run("simulate", "--alerts", "100")
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
