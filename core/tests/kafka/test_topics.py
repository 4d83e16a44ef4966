"""Topics are kept as one file says, and nothing that breaks a promise is done unasked."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nightwire.core.cli.topics import apply
from nightwire.core.kafka import Writer, ensure_topics, producer
from nightwire.core.kafka.topic_plan import Action, TopicState, plan
from nightwire.schemas.topics import TopicSettings, settings

WANTED = TopicSettings("alerts.x", 4, {"retention.ms": "1000", "cleanup.policy": "delete"})
CONFIG = {"retention.ms": "1000", "cleanup.policy": "delete", "retention.bytes": "-1"}


def now(**changes: Any) -> dict[str, TopicState]:
    """Return a topic that is as wanted but for *changes*."""
    values: dict[str, Any] = {"partitions": 4, "replication": 1, "config": CONFIG}
    return {"alerts.x": TopicState(**(values | changes))}


def test_what_is_as_wanted_is_left_alone() -> None:
    assert plan([WANTED], now()) == []


@pytest.mark.parametrize(
    ("state", "setting", "action", "why"),
    [
        ({}, "topic", Action.CREATE, ""),
        (now(config=CONFIG | {"retention.ms": "5"}), "retention.ms", Action.SET, ""),
        (now(own=frozenset({"retention.bytes"})), "retention.bytes", Action.RESET, ""),
        (now(partitions=2), "partitions", Action.ADD, ""),
        (now(partitions=2, has_records=True), "partitions", Action.REFUSE, "--break-order"),
        (now(partitions=8), "partitions", Action.REFUSE, "cannot take partitions away"),
    ],
)
def test_each_difference_has_its_action(
    state: dict[str, TopicState], setting: str, action: Action, why: str
) -> None:
    (step,) = plan([WANTED], state)
    assert (step.setting, step.action) == (setting, action)
    assert why in step.why


def test_order_is_broken_only_when_told() -> None:
    (step,) = plan([WANTED], now(partitions=2, has_records=True), break_order=True)
    assert step.action is Action.ADD


def test_settings_that_are_not_ours_are_left_alone() -> None:
    assert plan([WANTED], now(own=frozenset({"flush.ms"}))) == []


def test_other_copies_are_kafkas_to_make_and_we_say_how() -> None:
    wanted = TopicSettings("alerts.x", 4, WANTED.config, replication=3)
    (step,) = plan([wanted], now())
    assert (step.action, step.now, step.wanted) == (Action.REFUSE, "1", "3")
    assert "kafka-reassign-partitions" in step.why


def run(kafka: str, *words: str) -> tuple[int, dict[str, str]]:
    """Run the verb; return its exit status, and its actions by topic and setting."""
    done = CliRunner().invoke(apply, [*words, "--bootstrap", kafka, "--json"])
    found = json.loads(done.stdout)
    return done.exit_code, {f"{s['topic']} {s['setting']}": s["action"] for s in found["steps"]}


@pytest.mark.kafka
def test_a_file_is_applied_once_and_what_would_break_order_only_when_told(kafka: str, tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    ensure_topics(kafka, [settings("alerts.ztf")])
    writer = Writer(producer(kafka))
    writer.write("alerts.ztf", b"x", key=b"1")
    writer.flush()
    file.write_text(
        '[survey.ztf]\npartitions = 6\ndays = 1\n[topic."filter.ada.applied"]\ncompression = "lz4"\n'
    )
    wanted = {
        "alerts.ztf partitions": "refused",
        "alerts.ztf retention.ms": "set",
        "filter.ada.applied topic": "make",
    }
    status, dry = run(kafka, str(file), "--dry-run")
    assert (status, dry.items() >= wanted.items()) == (1, True)
    assert run(kafka, str(file)) == (1, dry)
    assert run(kafka, str(file)) == (1, {"alerts.ztf partitions": "refused"})
    assert run(kafka, str(file), "--break-order") == (0, {"alerts.ztf partitions": "add"})
    assert run(kafka, str(file), "--break-order") == (0, {})
    status, back = run(kafka)
    assert back == {"alerts.ztf partitions": "refused", "alerts.ztf retention.ms": "set"}


def test_a_topic_that_is_none_of_ours_is_wrong_use(tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    file.write_text("[topic.elsewhere]\ndays = 1\n")
    done = CliRunner().invoke(apply, [str(file), "--bootstrap", "127.0.0.1:1"])
    assert done.exit_code == 2
    assert "elsewhere" in done.output
