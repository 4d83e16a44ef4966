"""A simulator or a replay that is killed, or has a twin, leaves counts that agree."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import httpx
import pytest

from conftest import PAGES
from nightwire.core.accounting import discrepancies, read_accounts
from nightwire.core.kafka import Writer, admin, ensure_topics, headers_of, producer, read_to_end
from nightwire.core.stack import Broker, free_port
from nightwire.producer.visits.abandoned import known_visits
from nightwire.producer.visits.visit_ids import VisitIdAllocator
from nightwire.producer.visits.visit_topic import VisitTopic
from nightwire.producer.visits.writer_id import WriterId
from nightwire.schemas import sim_alert_schema
from nightwire.schemas.topics import settings
from tests._waiting import until

pytestmark = pytest.mark.kafka

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
VISIT = 2019030143200
TOPICS = ("alerts.sim", "visits", "accounts", "dead-letters")


def start(kafka: str, *words: str) -> "subprocess.Popen[str]":
    """Start a verb."""
    command = [sys.executable, "-m", "nightwire.core.cli", *words, "--json"]
    env = os.environ | {"KAFKA_BOOTSTRAP_SERVERS": kafka}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)


def run(kafka: str, *words: str) -> dict[str, Any]:
    """Run a verb, and return its counts."""
    with start(kafka, *words) as process:
        out, _err = process.communicate(timeout=120)
    counts: dict[str, Any] = json.loads(out)
    return counts


def marked(kafka: str, name: str, number: int) -> int:
    """Return how many alerts have *number* in their header *name*."""
    wanted = str(number).encode()
    return sum(headers_of(message).get(name) == wanted for message in read_to_end(kafka, ["alerts.sim"]))


def written(kafka: str) -> int:
    """Return how many alerts there are."""
    return sum(1 for _message in read_to_end(kafka, ["alerts.sim"]))


def process(number: int) -> WriterId:
    """Return the id of a process that is no more."""
    return WriterId(socket.gethostname(), 1 << 22, number)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a Kafka of these tests' own."""
    one = Broker(tmp_path_factory.mktemp("kafka"), port=free_port(), controller=free_port())
    one.start()
    yield one.bootstrap
    one.kill()


@pytest.fixture
def quiet(own: str) -> Iterator[str]:
    """Yield the address of a Kafka that has our topics, and nothing in them."""
    ensure_topics(own, [settings(name) for name in TOPICS])
    yield own
    client = admin(own)  # it waits for its answers as long as it is held
    for done in client.delete_topics([*TOPICS]).values():
        done.result(30)


def test_of_two_who_want_a_visit_number_the_first_in_the_topic_has_it(quiet: str) -> None:
    writers = [Writer(producer(quiet)) for _n in range(2)]
    visit_topics = [VisitTopic(writer, "sim", writer_id=process(n)) for n, writer in enumerate(writers)]
    allocators = [VisitIdAllocator(quiet, "sim", visit_topics[n], writers[n], process(n)) for n in range(2)]
    first = allocators[0].claim(VISIT, NOON)
    visit_topics[0].close(first)
    second = allocators[1].claim(VISIT, NOON)
    third = allocators[0].claim(VISIT, NOON)
    assert [one.visit for one in (first, second, third)] == [VISIT, VISIT + 1, VISIT + 2]
    writers[1].flush()
    latest = known_visits(quiet, "sim")
    assert latest[VISIT].record["closed"] is not None  # the loser put back what it had covered
    assert latest[VISIT + 1].record["closed"] is None
    for one in allocators:
        one.close()


@pytest.mark.slow
def test_two_simulators_at_once_have_visits_of_their_own(quiet: str) -> None:
    words = ("simulate", "--visits", "3", "--alerts", "5", "--interval", "0s")
    twins = [start(quiet, *words) for _n in range(2)]
    counts = [json.loads(twin.communicate(timeout=120)[0]) for twin in twins]
    numbers = [visit["visit"] for count in counts for visit in count["visits"]]
    assert len(set(numbers)) == 6
    assert {one.first: (one.read, one.delivered) for one in read_accounts(quiet)} == dict.fromkeys(
        numbers, (5, 5)
    )


@pytest.mark.slow
def test_a_killed_simulators_visit_is_closed_with_what_lies_in_the_topic(quiet: str) -> None:
    port = free_port()
    words = ("simulate", "--alerts", "400", "--pace", "40/s", "--metrics-port", str(port))
    with start(quiet, *words) as process:
        until(lambda: written(quiet) > 20)
        assert PAGES.get(f"http://127.0.0.1:{port}/health").status_code == 200
        process.kill()
    (left,) = known_visits(quiet, "sim").values()
    assert left.record["closed"] is None
    run(quiet, "simulate", "--alerts", "3")
    closed = known_visits(quiet, "sim")[left.number].record
    count = marked(quiet, "visit", left.number)
    assert (closed["closed"] is None, closed["estimated"], closed["written"]) == (False, True, count)
    accounts = read_accounts(quiet)
    assert {one.first: one.delivered for one in accounts}[left.number] == count
    assert sum(one.delivered for one in accounts) == written(quiet) == count + 3
    assert discrepancies(accounts) == []


@pytest.mark.slow
def test_a_killed_replay_is_closed_by_the_next_with_one_account_for_all_its_visits(
    quiet: str, registry_url: str, tmp_path: Path, visit: list[dict[str, Any]]
) -> None:
    file = tmp_path / "night.avro"
    with file.open("wb") as out:
        fastavro.writer(out, sim_alert_schema(), visit[:60])
    where = (str(file), "--survey", "sim", "--registry", registry_url)
    with start(quiet, "replay", *where, "--rate", "10/s") as process:
        until(lambda: written(quiet) > 5)
        process.kill()
    known = known_visits(quiet, "sim")
    (replay,) = {one.replay for one in known.values()}
    assert replay is not None
    # the visit met, and the replay
    assert [one.record["closed"] for one in known.values()] == [None, None]
    counts = run(quiet, "replay", *where)
    assert (counts["in"], counts["acknowledged"]) == (60, 60)
    first = marked(quiet, "replay", replay)
    closed = known_visits(quiet, "sim")
    assert closed[replay].record["written"] == first
    assert all(one.record["closed"] is not None for one in closed.values())
    accounts = read_accounts(quiet)
    assert sorted(one.delivered for one in accounts) == sorted([first, 60])
    assert discrepancies(accounts) == []


@pytest.mark.slow
def test_a_simulator_whose_kafka_is_away_is_not_healthy(fresh_broker: Broker) -> None:
    port = free_port()
    words = ("simulate", "--visits", "0", "--alerts", "20", "--interval", "1s", "--metrics-port", str(port))
    health = f"http://127.0.0.1:{port}/health"

    def answers(status: int) -> bool:
        try:
            return PAGES.get(health).status_code == status
        except httpx.TransportError:
            return False

    with start(fresh_broker.bootstrap, *words) as process:
        until(lambda: answers(200) and written(fresh_broker.bootstrap) > 0)
        fresh_broker.kill()
        until(lambda: answers(503))
        fresh_broker.start()
        until(lambda: answers(200))
        back = written(fresh_broker.bootstrap)
        # a visit that was late has begun
        until(lambda: written(fresh_broker.bootstrap) > back + 20)
        process.terminate()
        out, _err = process.communicate(timeout=60)
    counts = json.loads(out)
    assert counts["in"] == counts["acknowledged"] == written(fresh_broker.bootstrap)
    assert counts["behind_max_seconds"] > 10.0
