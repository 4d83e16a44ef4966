"""The compose stack while things die and are replaced: nothing is lost."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from lxml import etree

from nightwire.gateway.voevent.samples import samples
from tests.compose.stack import Stack, Subscriber, Visit, await_

pytestmark = [pytest.mark.docker, pytest.mark.timeout(2400)]

ALERTS, EVENTS = 10_000, 1_000
MORE_ALERTS, MORE_EVENTS = 3_000, 300
SIM, BRIGHT = "alerts.sim", "filter.demo.bright"
Stages = Mapping[str, Mapping[str, int]]
TWISTD = "import dbm, sys; dbm.open('first', 'n').close(); from twisted.scripts.twistd import run; run()"
"""Comet's threads would import dbm's modules at once, and may be given one that is half there."""


@pytest.fixture(scope="module")
def comet(quiet: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Start Comet outside the network as a subscriber that saves events; return where."""
    folder = tmp_path_factory.mktemp("comet")
    (folder / "db").mkdir()
    words = ["--nodaemon", "--pidfile=", "comet", f"--eventdb={folder}/db", "--local-ivo=ivo://outside/comet"]
    words += [f"--remote=127.0.0.1:{quiet.port('VTP_SUBSCRIBERS_PORT')}", "--save-event"]
    inbox = folder / "inbox"
    with (folder / "comet.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", TWISTD, *words, f"--save-event-directory={inbox}"],
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    yield inbox
    process.terminate()
    process.wait()


@pytest.fixture(scope="module")
def subscriber(quiet: Stack, comet: Path) -> Subscriber:
    """Return a subscriber of our own; it and Comet are connected."""
    one = Subscriber(quiet.port("VTP_SUBSCRIBERS_PORT"))
    one.start()
    query = 'nightwire_gateway_connections{role="subscriber"}'
    connected = "our subscriber and Comet are connected"
    await_(lambda: [one["value"][1] for one in quiet.prometheus(query)] == ["2"], connected)
    return one


def sent_events(first: int, count: int) -> set[str]:
    """Return the IVORNs of the samples: a feed gives all of them to who asks for nothing else."""
    return {str(etree.fromstring(document).get("ivorn")) for _, document in samples(count, first)}


def saved(inbox: Path) -> list[str]:
    """Return the IVORNs of what Comet saved."""
    return [str(etree.parse(str(file)).getroot().get("ivorn")) for file in inbox.glob("*")]


def send(stack: Stack, first: int, count: int) -> subprocess.Popen[str]:
    """Begin to send samples from outside."""
    to = f"127.0.0.1:{stack.port('VTP_AUTHORS_PORT')}"
    words = ["send", "--to", to, "--samples", str(count), "--first-sample", str(first), "--json"]
    command = [
        sys.executable,
        "-m",
        "nightwire.core.cli",
        *words,
        "--patience",
        "300",
        "--timeout",
        "300",
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def acknowledged(sending: subprocess.Popen[str]) -> set[str]:
    """Return the IVORNs that were acknowledged; all must be."""
    said, _ = sending.communicate(timeout=900)
    results = json.loads(said)["results"]
    assert {one["verdict"] for one in results} == {"ack"}
    return {one["ivorn"] for one in results}


def read(stack: Stack, topic: str, count: int, user: dict[str, str]) -> list[int]:
    """Return the ids of the last *count* alerts of *topic*, read from outside."""
    words = ["subscribe", topic, "--last", str(count), "--no-follow", "--format", "json"]
    lines = stack.nightwire(*words, "--fields", "diaSourceId", user=user).splitlines()
    return [json.loads(line)["diaSourceId"] for line in lines]


def more(before: Stages, after: Stages, stage: str, what: str) -> int:
    """Return how many more a stage has counted."""
    return after[stage][what] - before.get(stage, {}).get(what, 0)


def judged(stack: Stack) -> bool:
    """Say whether the filter engine has judged all that was written."""
    found = stack.stages()
    return found["filters"]["read"] == found["producer"]["delivered"]


def test_a_broker_dies_amid_a_visit_and_everything_arrives(
    quiet: Stack, owner: dict[str, str], subscriber: Subscriber, comet: Path
) -> None:
    before = quiet.stages()
    visit, sending = Visit(quiet, ALERTS), send(quiet, 0, EVENTS)
    visit.start()
    await_(lambda: len(visit.sent) > ALERTS // 5, "a part of the visit")
    quiet.compose("kill", "kafka-2")
    assert not visit.done()
    assert len(acknowledged(sending)) == EVENTS
    await_(visit.done, "the visit is written")
    expected = sent_events(0, EVENTS)
    await_(lambda: set(subscriber.ivorns) >= expected, "our subscriber has every event")
    await_(lambda: len(saved(comet)) >= len(expected), "Comet has every event")
    assert Counter(subscriber.ivorns) == Counter(expected)
    assert sorted(saved(comet)) == sorted(expected)
    assert sorted(read(quiet, SIM, ALERTS, owner)) == sorted(visit.sent)
    await_(lambda: judged(quiet), "every alert is judged")
    found = quiet.stages()
    assert more(before, found, "gateway", "delivered") == EVENTS
    assert more(before, found, BRIGHT, "read") == ALERTS
    passed = more(before, found, BRIGHT, "delivered")
    mine = read(quiet, BRIGHT, passed, owner)
    assert len(set(mine)) == passed
    assert set(mine) <= set(visit.sent)
    quiet.compose("start", "kafka-2")
    query = "nightwire_kafka_under_replicated_partitions"
    await_(lambda: [one["value"][1] for one in quiet.prometheus(query)] == ["0"], "kafka-2 has caught up")


def test_a_rolling_restart_amid_a_visit_loses_nothing(
    quiet: Stack, owner: dict[str, str], subscriber: Subscriber, comet: Path
) -> None:
    before = quiet.stages()
    subscriber.ivorns.clear()
    already = set(saved(comet))
    visit, sending = Visit(quiet, MORE_ALERTS), send(quiet, EVENTS, MORE_EVENTS)
    visit.start()
    for service in ("filters", "gateway", "kafka-1", "kafka-2", "kafka-3"):
        quiet.compose("restart", service)
        await_(lambda service=service: quiet.services()[service]["Health"] == "healthy", f"{service} is back")
    assert len(acknowledged(sending)) == MORE_EVENTS
    await_(visit.done, "the visit is written")
    expected = sent_events(EVENTS, MORE_EVENTS)
    await_(lambda: set(subscriber.ivorns) >= expected, "our subscriber has every event")
    await_(lambda: set(saved(comet)) - already >= expected, "Comet has every event")
    assert set(subscriber.ivorns) == expected
    assert sorted(read(quiet, SIM, MORE_ALERTS, owner)) == sorted(visit.sent)
    await_(lambda: judged(quiet), "every alert is judged")
    found = quiet.stages()
    assert more(before, found, "gateway", "delivered") == MORE_EVENTS
    assert more(before, found, BRIGHT, "read") == MORE_ALERTS
    passed = more(before, found, BRIGHT, "delivered")
    assert set(read(quiet, BRIGHT, passed, owner)) <= set(visit.sent)
