"""The verbs against a real Kafka and our registry."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Message

from nightwire.core.accounting import discrepancies, read_accounts
from nightwire.core.cli import main
from nightwire.core.kafka import Writer, ensure_topics, producer, read_to_end
from nightwire.core.stack import Broker
from nightwire.producer.visits.abandoned import abandoned, close_abandoned, known_visits
from nightwire.producer.visits.visit_topic import VisitTopic, utc_now
from nightwire.producer.visits.writer_id import WriterId
from nightwire.schemas import SIM_ALERT_ID, AlertDecoder, Codec, SchemaRegistry, survey
from nightwire.schemas.topics import settings
from nightwire.schemas.wire import frame, read_container, unframe

pytestmark = pytest.mark.kafka

ServeRegistry = Callable[[str], AbstractContextManager[str]]

DEAD = WriterId(socket.gethostname(), 1 << 22, 5)
"""A process that is no more: there are no such numbers."""


def nightwire(kafka: str, registry: str, *words: str) -> tuple[int, dict[str, Any], str]:
    """Run a verb; return its exit status, its JSON, and its log."""
    where = {"KAFKA_BOOTSTRAP_SERVERS": kafka, "NIGHTWIRE_SCHEMA_REGISTRY": registry}
    command = [sys.executable, "-m", "nightwire.core.cli", *words, "--json"]
    done = subprocess.run(  # noqa: PLW1510
        command, capture_output=True, text=True, env=os.environ | where, timeout=200
    )
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def in_topic(kafka: str, topic: str, visit: int) -> int:
    """Return how many records of *topic* are of *visit*."""
    header = ("visit", str(visit).encode())
    return sum(header in (message.headers() or []) for message in read_to_end(kafka, [topic]))


def place(message: Message) -> tuple[int | None, int | None]:
    """Return where *message* lies in its topic."""
    return message.partition(), message.offset()


def test_three_counts_of_simulated_visits_agree(kafka: str, registry_url: str) -> None:
    words = ("simulate", "--visits", "2", "--alerts", "40", "--interval", "0s")
    status, counts, _log = nightwire(kafka, registry_url, *words)
    assert (status, counts["in"], counts["acknowledged"], counts["refused"]) == (0, 80, 80, 0)
    recorded = known_visits(kafka, "sim")
    accounts = {account.first: account for account in read_accounts(kafka)}
    for visit in counts["visits"]:
        record = recorded[visit["visit"]].record
        assert record["closed"] is not None
        assert in_topic(kafka, "alerts.sim", visit["visit"]) == record["written"] == visit["acknowledged"]
        assert accounts[visit["visit"]].delivered == 40
    assert discrepancies(accounts.values()) == []
    with SchemaRegistry(registry_url) as schemas:
        assert schemas.latest("alerts.sim-value")[1] == SIM_ALERT_ID


def test_a_visit_whose_writer_died_is_closed_with_what_lies_in_the_topic(
    kafka: str, visit: list[dict[str, Any]], codec: Codec
) -> None:
    value = frame(SIM_ALERT_ID, codec.encode(visit[0]))  # an alert: others read this topic, too
    writer = Writer(producer(kafka))
    visit_topic = VisitTopic(writer, "sim", writer_id=DEAD)
    counts = visit_topic.open(2020010100001)
    for _ in range(3):
        writer.write("alerts.sim", value, headers=[("visit", b"2020010100001")])
    writer.flush()
    left = [one for one in abandoned(known_visits(kafka, "sim"), utc_now()) if one.number == counts.visit]
    assert len(left) == 1
    close_abandoned(kafka, visit_topic, left)
    record = known_visits(kafka, "sim")[counts.visit].record
    assert (record["written"], record["estimated"], record["closed"] is None) == (3, True, False)
    assert {account.first: account.delivered for account in read_accounts(kafka)}[counts.visit] == 3


def test_a_visit_whose_writer_died_before_its_first_alert_is_closed_with_none(kafka: str) -> None:
    ensure_topics(kafka, [settings(name) for name in ("visits", "accounts", "alerts.sim")])
    writer = Writer(producer(kafka))
    visit_topic = VisitTopic(writer, "sim", writer_id=DEAD)
    counts = visit_topic.open(2020010100002)
    writer.flush()
    close_abandoned(kafka, visit_topic, abandoned(known_visits(kafka, "sim"), utc_now()))
    record = known_visits(kafka, "sim")[counts.visit].record
    assert (record["written"], record["closed"] is None) == (0, False)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "files"), [("lsst", "alerts/lsst/rubin_real_v11_0.avro"), ("ztf", "alerts/ztf/kowalski")]
)
def test_replayed_bodies_arrive_unchanged_and_decode(
    name: str, files: str, kafka: str, registry_url: str, data: Path
) -> None:
    before = {place(message) for message in read_to_end(kafka, [f"alerts.{name}"])}
    status, counts, _log = nightwire(kafka, registry_url, "replay", str(data / files), "--survey", name)
    path = data / files
    paths = [path] if path.is_file() else sorted(path.rglob("*.avro"))
    records = [one for path in paths for one in read_container(path.read_bytes())]
    assert (status, counts["acknowledged"]) == (0, len(records))
    found = read_to_end(kafka, [f"alerts.{name}"])
    messages = [message for message in found if place(message) not in before]
    arrived = {(message.key(), unframe(message.value() or b"")[1]) for message in messages}
    assert {(survey(name).key(one.record), one.body) for one in records} <= arrived
    with SchemaRegistry(registry_url) as schemas:
        AlertDecoder(schemas).decode(messages[-1].value() or b"")


@pytest.mark.data
def test_bad_files_are_refused_by_name_and_the_rest_goes_on(
    kafka: str, registry_url: str, data: Path
) -> None:
    good = data / "alerts" / "lsst" / "rubin_real_v11_0.avro"
    bad = data / "alerts" / "bad"
    status, counts, log = nightwire(kafka, registry_url, "replay", str(bad), str(good), "--survey", "lsst")
    names = [path.name for path in bad.rglob("*.avro")]
    assert (status, counts["refused"], counts["acknowledged"]) == (1, len(names), 32)
    assert all(name in log for name in names)
    letters = [dict(message.headers() or []) for message in read_to_end(kafka, ["dead-letters"])]
    sources = [letter["source"].decode() for letter in letters if letter["stage"] == b"producer"]
    assert all(any(source.endswith(name) for source in sources) for name in names)
    assert discrepancies(read_accounts(kafka)) == []


def test_of_many_refused_files_the_first_are_named_and_all_are_counted(
    kafka: str, registry_url: str, tmp_path: Path
) -> None:
    for number in range(30):
        (tmp_path / f"{number}.avro").write_bytes(b"nothing")
    _status, counts, log = nightwire(kafka, registry_url, "replay", str(tmp_path), "--survey", "lsst")
    assert (counts["refused"], log.count("refused (")) == (30, 10)


def test_a_folder_without_alerts_is_said_to_have_none(kafka: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no alert")
    found = CliRunner().invoke(main, ["replay", str(tmp_path), "--survey", "lsst", "--bootstrap", kafka])
    assert (found.exit_code, "there are no alerts in" in found.output) == (1, True)


@pytest.mark.data
def test_a_wire_file_needs_its_schema_and_keeps_its_id(
    fresh_broker: Broker, serve_registry: ServeRegistry, data: Path
) -> None:
    with serve_registry(fresh_broker.bootstrap) as url:
        wire_file_with_and_without_schema(fresh_broker.bootstrap, url, data)


def wire_file_with_and_without_schema(kafka: str, registry_url: str, data: Path) -> None:
    """Replay a wire file to a registry that knows nothing, then with its schema."""
    lsst = data / "alerts" / "lsst"
    captured = lsst / "wire" / "boom_v9_0_7912941781254298.cwf"
    words = ("replay", str(captured), "--survey", "lsst")
    status, counts, log = nightwire(kafka, registry_url, *words)
    assert (status, counts["refused"]) == (1, 1)
    assert "--schema" in log
    status, counts, _log = nightwire(
        kafka, registry_url, *words, "--schema", str(lsst / "schema" / "9.0"), "--format", "as-is"
    )
    assert (status, counts["acknowledged"]) == (0, 1)
    assert captured.read_bytes() in {message.value() for message in read_to_end(kafka, ["alerts.lsst"])}
