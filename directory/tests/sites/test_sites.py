"""Three sites, each with a real Kafka and a directory: what each learns of the others, and refuses.

`near` is told of `middle` alone, which asks who is there; `middle` and `far` are told of each
other.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Producer

from conftest import mock_cluster
from directory.tests.serve.served import Directory
from nightwire.core.kafka import ensure_topics
from nightwire.core.presence import Presence, entry, entry_key
from nightwire.core.stack import Broker, free_port
from nightwire.directory.ingest import Follower
from nightwire.directory.ingest.cluster_observer import ClusterObserver, WrongClusterError
from nightwire.directory.model import SiteRows, View
from nightwire.directory.sites import SiteAddress
from nightwire.directory.sites.identity import identify
from nightwire.schemas.records import ENTRY
from nightwire.schemas.topics import DIRECTORY, FILTERS, settings
from tests._waiting import until

pytestmark = pytest.mark.kafka

NAMES = ("near", "middle", "far")
PLAIN = "listener.name.client.plain.sasl.jaas.config"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
ASKS_WHO_IS_THERE = {
    "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.client.sasl.enabled.mechanisms": "PLAIN",
    PLAIN: f'{LOGIN} username="middle" password="m" user_middle="m" user_guest="g";',
}


def rights(prefix: str, name: str, password: str) -> dict[str, str]:
    """Return the variables of who reads or runs a site."""
    said = {"SECURITY_PROTOCOL": "SASL_PLAINTEXT", "SASL_MECHANISM": "PLAIN"}
    said |= {"SASL_USERNAME": name, "SASL_PASSWORD": password}
    return {f"{prefix}KAFKA_{key}": value for key, value in said.items()}


GUEST = rights("NIGHTWIRE_SITE_MIDDLE_", "guest", "g")


@dataclass
class World:
    """Sites, by name.

    Attributes:
        folder: For logs.
        brokers: Their Kafkas.
        directories: Their directories.
    """

    folder: Path
    brokers: dict[str, Broker] = field(default_factory=dict)
    directories: dict[str, Directory] = field(default_factory=dict)

    def kafka(self, name: str) -> str:
        """Return the address of a site's Kafka."""
        return self.brokers[name].bootstrap

    def serve(self, name: str, *words: str, **more: str) -> Directory:
        """Start the directory of a site."""
        environment = {**os.environ, "NIGHTWIRE_SITE": name, **more}
        self.directories[name] = Directory(self.kafka(name), self.folder, *words, environment=environment)
        return self.directories[name]

    def serve_near(self, *words: str) -> Directory:
        """Start the directory of `near`, which knows `middle`, and itself."""
        sites = ("--site", f"middle={self.kafka('middle')}", "--site", self.kafka("near"))
        return self.serve("near", *sites, *words, **GUEST)

    @property
    def near(self) -> Directory:
        """The directory that is asked."""
        return self.directories["near"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    found = World(tmp_path_factory.mktemp("sites"))
    for name in NAMES:
        found.brokers[name] = Broker(
            found.folder / name,
            port=free_port(),
            controller=free_port(),
            heap="256m",
            properties=ASKS_WHO_IS_THERE if name == "middle" else {},
        )
    try:
        for broker in found.brokers.values():
            broker.start()
        for name in ("near", "far"):
            ensure_topics(found.kafka(name), [settings(DIRECTORY), settings(FILTERS)])
        with pytest.MonkeyPatch.context() as patch:
            for variable, value in rights("", "middle", "m").items():
                patch.setenv(variable, value)
            ensure_topics(found.kafka("middle"), [settings(DIRECTORY), settings(FILTERS)])
        found.serve("far", "--site", f"middle={found.kafka('middle')}", **GUEST)
        found.serve("middle", "--site", found.kafka("far"), **rights("", "middle", "m"))
        found.serve_near()
        yield found
    finally:
        for directory in found.directories.values():
            directory.stop()
        for broker in found.brokers.values():
            broker.kill()


def sites_of(directory: Directory) -> set[str]:
    """Return the names of the sites that a directory knows."""
    return {row["site"] for row in directory.ask("SELECT site FROM sites")}


def age(directory: Directory, site: str) -> float:
    """Return how old the rows of a site are. [s]"""
    return float(directory.ask(f"SELECT age FROM sites WHERE site = '{site}'")[0]["age"])  # noqa: S608


@contextmanager
def living_at(world: World, site: str, name: str) -> Iterator[None]:
    """Keep a process of a site in its directory within the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NIGHTWIRE_SITE", site)
        presence = Presence(world.kafka(site), "process", name)
    ended = threading.Event()

    def beat() -> None:
        presence.beat()
        while not ended.wait(2.0):
            presence.beat()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    yield
    ended.set()
    thread.join()
    presence.goodbye()


def test_one_address_is_enough_to_learn_the_rest(world: World) -> None:
    until(lambda: sites_of(world.near) == {*NAMES}, "near knows all")
    until(lambda: sites_of(world.directories["far"]) == {"far", "middle"}, "far knows whom it chose")
    with living_at(world, "far", "observer"):
        sql = "SELECT site, state, bootstrap FROM peers WHERE name = 'observer'"
        wanted = [{"site": "far", "state": "live", "bootstrap": world.kafka("far")}]
        until(lambda: world.near.ask(sql) == wanted, "near sees who lives at far")
    asked = "SELECT DISTINCT site, name, endpoints ->> '$.kafka' AS kafka FROM peers WHERE kind = 'neighbour'"
    pairs = (("near", "middle"), ("near", "far"), ("middle", "far"), ("far", "middle"))
    wanted = [{"site": at, "name": name, "kafka": world.kafka(name)} for at, name in sorted(pairs)]
    until(lambda: world.near.ask(f"{asked} ORDER BY site, name") == wanted, "each lists whom it follows")
    assert "nightwire_directory_refused_sites 0.0" in world.near.metrics(), "a loop is no offence"


def test_a_site_writes_its_own_rows_alone(world: World) -> None:
    until(lambda: "far" in sites_of(world.near), "far is known")
    client = Producer({"bootstrap.servers": world.kafka("far")})
    for site in ("near", "middle", "nowhere", "far"):
        forged = {**entry("broker", "forged"), "site": site}
        client.produce(DIRECTORY, ENTRY.encode(forged), entry_key(forged), partition=0)
    client.produce(DIRECTORY, None, "near/process/directory", partition=0)
    client.produce(DIRECTORY, b"noise", "far/broker/noise", partition=0)
    assert client.flush(30) == 0
    until(lambda: world.near.ask("SELECT 1 FROM peers WHERE name = 'forged'") != [], "far's own row is there")
    refused = "SELECT site, refused FROM sites WHERE refused > 0"
    until(lambda: world.near.ask(refused) == [{"site": "far", "refused": 5}], "five are refused")
    assert world.near.ask("SELECT site FROM peers WHERE name = 'forged'") == [{"site": "far"}]
    assert world.near.state("directory") is not None
    client.produce(DIRECTORY, None, "far/broker/forged", partition=0)
    assert client.flush(30) == 0


def test_a_site_that_is_cut_off_keeps_its_rows_and_converges_once_it_is_healed(
    world: World, record_testsuite_property: Callable[[str, object], None]
) -> None:
    until(lambda: "far" in sites_of(world.near), "far is known")
    kafka, client = (
        world.brokers["far"]._process,
        Producer({"bootstrap.servers": world.kafka("far"), "log_level": 0}),
    )
    assert kafka is not None
    sql = "SELECT state FROM processes WHERE site = 'far' AND name = 'directory'"
    rows = "SELECT kind, name, owner, state FROM peers WHERE site = 'far' ORDER BY kind, name"
    until(lambda: world.near.ask(sql) == [{"state": "live"}], "far lives")
    kafka.send_signal(signal.SIGSTOP)
    try:
        for number in range(100):
            found = {**entry("broker", f"late-{number}", owner="ann"), "site": "far"}
            client.produce(DIRECTORY, ENTRY.encode(found), entry_key(found), partition=0)
        until(lambda: age(world.near, "far") > 15, "its rows age")
        assert world.near.ask(sql) == [{"state": "live"}], "as it was heard last"
        assert age(world.near, "middle") < 10
    finally:
        kafka.send_signal(signal.SIGCONT)
    healed = time.monotonic()
    new = "SELECT count(*) AS n FROM peers WHERE site = 'far' AND name LIKE 'late-%'"
    until(lambda: world.near.ask(new) == [{"n": 100}], "what was written meanwhile is there")
    until(lambda: world.near.ask(rows) == world.directories["far"].ask(rows), "near and far say the same")
    record_testsuite_property("converged_s", round(time.monotonic() - healed, 2))
    assert client.flush(30) == 0
    for number in range(100):
        client.produce(DIRECTORY, None, f"far/broker/late-{number}", partition=0)
    assert client.flush(30) == 0
    with living_at(world, "far", "returned"):
        there = "SELECT state FROM processes WHERE name = 'returned'"
        until(lambda: world.near.ask(there) == [{"state": "live"}], "near hears of it")
        until(lambda: age(world.near, "far") < 5, "its rows are young")


def test_who_is_taken_out_is_learnt_again_and_who_is_bound_elsewhere_is_not(world: World) -> None:
    until(lambda: sites_of(world.near) == {*NAMES}, "near knows all")
    shut_out = {"kind": "neighbour", "name": "far", "capabilities": {"cluster": "none"}}
    assert world.near.http.post("/entries", json=shut_out).status_code == 201
    until(lambda: sites_of(world.near) == {"near", "middle"}, "far is left")
    until(lambda: "refused_sites 1.0" in world.near.metrics(), "far is refused")
    assert world.near.ask("SELECT name FROM peers WHERE site = 'far'") == []
    assert world.near.http.delete("/entries/neighbour/far").status_code == 204
    until(lambda: sites_of(world.near) == {*NAMES}, "far is learnt again")
    bound = "SELECT name FROM peers WHERE site = 'near' AND kind = 'neighbour'"
    until(lambda: {"name": "far"} in world.near.ask(bound), "and bound")


@contextmanager
def impostor(name: str) -> Iterator[str]:
    """Yield the address of a Kafka that says it is the site *name*: librdkafka's mock cluster."""
    said = {**entry("site", name, instance="1", interval=2.0), "site": name}
    host, address = mock_cluster()
    host.produce(DIRECTORY, ENTRY.encode(said), f"{name}/site/{name}", partition=0)
    assert host.flush(30) == 0
    yield address
    del host  # the cluster lives as long as this client


def test_names_that_are_ours_or_anothers_are_refused_said_once_and_counted(world: World) -> None:
    until(lambda: sites_of(world.near) == {*NAMES}, "near knows all")
    world.near.stop()
    with impostor("near") as ours, impostor("far") as anothers:
        near = world.serve_near("--site", ours, "--site", anothers)
        until(lambda: sites_of(near) == {*NAMES}, "near knows all again, by its own log")
        until(lambda: "nightwire_directory_refused_sites 2.0" in near.metrics(), "both are refused")
        assert near.ask("SELECT bootstrap FROM sites WHERE site = 'far'") == [
            {"bootstrap": world.kafka("far")}
        ]
        said = near.log.read_text()
        assert said.count(f"the site at {ours}: it is refused") == 1
        assert said.count(f"the site at {anothers}: it is refused") == 1


@pytest.fixture
def view() -> Iterator[View]:
    one = View()
    yield one
    one.close()


def test_our_own_rights_are_shown_to_nobody_else(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    """With ours, a Kafka that asks nobody would not understand us."""
    with impostor("far") as address:
        for variable, value in rights("", "me", "secret").items():
            monkeypatch.setenv(variable, value)
        where = SiteAddress(address)
        found = identify(where)
        assert found.resolve_name() == "far"
        follower = Follower(address, SiteRows(view, "far"), client=where.client, cluster=found.cluster)
        follower.start()
        until(lambda: view.query("SELECT 1 FROM peers WHERE kind = 'site'").rows, "its log is read")
        until(lambda: view.query("SELECT 1 FROM streams").rows, "its topics are seen")
        follower.stop()


def test_another_kafka_at_the_same_address_is_not_read(view: View) -> None:
    with impostor("far") as address:
        rows = SiteRows(view, "far")
        follower = Follower(address, rows, client=SiteAddress(address).client, cluster="lost")
        follower.start()
        assert not follower.wait(2.0)
        follower.stop()
        with pytest.raises(WrongClusterError, match="no longer lost"):
            ClusterObserver(address, rows, cluster="lost").observe(0.0)
        assert view.query("SELECT * FROM peers").rows == view.query("SELECT * FROM streams").rows == []
