"""What community brokers send back: read, checked, dead-lettered, and joined to alerts."""

import io
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pytest
from click.testing import CliRunner, Result

from nightwire.consumers import AlertReader, BadReturn, ReturnReader, joined
from nightwire.consumers.cli.returns import returns
from nightwire.consumers.returns.broker_message import message_faults
from nightwire.core.cli import main
from nightwire.core.kafka import ensure_topics, headers_of, read_to_end
from nightwire.schemas.topics import DEAD_LETTERS, TopicSettings

CLASS = {
    "name": "Classification",
    "type": "record",
    "fields": [{"name": "classId", "type": "int"}, {"name": "probability", "type": "float"}],
}
SOURCE = {"name": "Source", "type": "record", "fields": [{"name": "diaSourceId", "type": ["null", "long"]}]}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "BrokerMessage",
    "fields": [
        {"name": "diaSource", "type": SOURCE},
        *({"name": name, "type": "string"} for name in ("brokerName", "classifierName", "classifierVersion")),
        {"name": "classifications", "type": {"type": "array", "items": CLASS}},
    ],
}
PAGE = Path(__file__).parents[3] / "docs" / "user" / "owners.md"
PARSED = fastavro.parse_schema(SCHEMA)
GOOD: Mapping[str, Any] = {
    "brokerName": "Fink",
    "classifierName": "supernovae",
    "classifierVersion": "2.1",
    "classifications": [{"classId": 111, "probability": 0.25}, {"classId": 112, "probability": 0.75}],
}


def body(number: int | None, **changes: Any) -> bytes:
    """Return a message about the alert of a number: an Avro container of one record."""
    out = io.BytesIO()
    fastavro.writer(out, PARSED, [{"diaSource": {"diaSourceId": number}, **GOOD, **changes}])
    return out.getvalue()


def test_a_good_message_has_nothing_wrong() -> None:
    assert message_faults(GOOD, "fink", 7) == []


@pytest.mark.parametrize(
    ("changes", "alert_id", "fault"),
    [
        ({}, None, "no id of an alert"),
        ({"brokerName": "Lasair"}, 7, "brokerName is 'Lasair' in the topic of fink"),
        ({"classifierName": " "}, 7, "classifierName is ' '"),
        ({"classifierVersion": 2}, 7, "classifierVersion is 2"),
        ({"classifications": []}, 7, "classifications is empty"),
        ({"classifications": [{"classId": True, "probability": 1}]}, 7, "[0] has no classId"),
        ({"classifications": [{"classId": 1, "probability": 1.5}]}, 7, "[0].probability is 1.5"),
        ({"classifications": [{"classId": 1, "probability": -0.1}]}, 7, "[0].probability is -0.1"),
        ({"classifications": [{"classId": 1, "probability": float("nan")}]}, 7, "[0].probability is nan"),
        ({"classifications": [{"classId": 1, "probability": 0.5}] * 2}, 7, "[1].classId 1 comes twice"),
    ],
)
def test_each_fault_is_named(changes: Mapping[str, Any], alert_id: int | None, fault: str) -> None:
    (found,) = message_faults({**GOOD, **changes}, "fink", alert_id)
    assert fault in found


def test_all_faults_are_named_at_once() -> None:
    assert len(message_faults({}, "fink", None)) == 5


@pytest.fixture
def sender(bootstrap: str, write: Callable[..., None]) -> str:
    """Return the name of a broker that has sent two good messages and three bad ones."""
    return send_five(bootstrap, write, new_name())


def new_name() -> str:
    return f"b{os.urandom(4).hex()}"


def send_five(bootstrap: str, write: Callable[..., None], name: str) -> str:
    """Send two good messages and three bad ones of the broker *name*; return the name."""
    mine = {"brokerName": name.upper()}
    values = [
        body(1, **mine),
        body(2, **mine, classifierName="variables"),
        body(3),
        body(None, **mine),
        b"junk",
    ]
    write(bootstrap, f"returns.{name}", values, headers=[], key=b"one partition")
    return name


def test_what_can_be_used_is_read_in_order_and_the_rest_is_told(bootstrap: str, sender: str) -> None:
    bad: list[BadReturn] = []
    with ReturnReader(sender, bootstrap=bootstrap, on_bad=bad.append) as reader:
        found = list(reader)
    assert [(one.alert_id, one.classifier, one.best.class_id) for one in found] == [
        (1, "supernovae", 112),
        (2, "variables", 112),
    ]
    assert (reader.good, reader.bad) == (2, 3)
    assert ["in the topic of" in bad[0].reason, "no id of an alert" in bad[1].reason] == [True, True]
    assert bad[2].value == b"junk"


def test_alerts_meet_what_was_returned_of_them(
    bootstrap: str, sender: str, write: Callable[..., None], encode: Callable[..., bytes]
) -> None:
    topic = f"alerts.{sender}"
    write(bootstrap, topic, [encode(number) for number in (5, 2, 1)], key=b"one partition")
    how: dict[str, Any] = {"bootstrap": bootstrap}
    with ReturnReader(sender, **how) as sent, AlertReader(topic, follow=False, **how) as alerts:
        met = [(alert.alert_id, [one.classifier for one in found]) for alert, found in joined(alerts, sent)]
    assert met == [(2, ["variables"]), (1, ["supernovae"])]


def test_the_operators_page_joins_them_so(
    bootstrap: str,
    sender: str,
    write: Callable[..., None],
    encode: Callable[..., bytes],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(bootstrap, f"alerts.{sender}", [encode(2)])
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", bootstrap)
    (text,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    exec(text.replace("fink", sender).replace("alerts.lsst", f"alerts.{sender}"), {})  # noqa: S102
    assert capsys.readouterr().out == "2 22.5 [112]\n"


def run(bootstrap: str, *words: str) -> Result:
    return CliRunner().invoke(returns, [*words, "--bootstrap", bootstrap, "--json"])


@pytest.mark.kafka  # librdkafka's own broker takes six seconds for each time that a group is joined
def test_what_cannot_be_used_goes_to_dead_letters_once_with_its_reason(
    kafka: str, write: Callable[..., None]
) -> None:
    ensure_topics(kafka, [TopicSettings(f"returns.{(name := new_name())}", 1)])
    sender = send_five(kafka, write, name)
    first, second = (run(kafka, "check", sender) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (1, 0)
    message = json.loads(first.stdout)
    assert (message["good"], len(message["bad"])) == (2, 3)
    assert json.loads(second.stdout) == {"broker": sender, "good": 0, "bad": []}
    letters = [headers_of(message) for message in read_to_end(kafka, [DEAD_LETTERS])]
    mine = [one for one in letters if one["source"].startswith(f"returns.{sender}[".encode())]
    assert [one["stage"] for one in mine] == [b"returns"] * 3
    assert f"brokerName is 'Fink' in the topic of {sender}".encode() in [one["reason"] for one in mine]


@pytest.mark.parametrize("words", [["check"], ["list"], ["join", "--survey", "sim"]])
def test_a_broker_that_there_is_not_is_said(bootstrap: str, sender: str, words: list[str]) -> None:
    done = CliRunner().invoke(main, ["returns", *words, f"{sender}x", "--bootstrap", bootstrap])
    meant = f"no topic returns.{sender}x; there are: .*; did you mean returns.{sender}\\?"
    assert done.exit_code == 1
    assert re.fullmatch(f"Error: {meant}\n", done.stderr)


def test_the_list_is_lines_for_people_and_objects_for_programs(bootstrap: str, sender: str) -> None:
    done = run(bootstrap, "list", sender)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["alert"] for line in lines] == [1, 2]
    assert "in the topic of" in done.stderr
    text = CliRunner().invoke(returns, ["list", sender, "--bootstrap", bootstrap]).stdout
    assert "supernovae 2.1  111:0.25 112:0.75" in text


def test_what_is_joined_keeps_numbers_as_numbers(
    bootstrap: str, sender: str, write: Callable[..., None], encode: Callable[..., bytes]
) -> None:
    write(bootstrap, "alerts.sim", [encode(2)])
    done = CliRunner().invoke(returns, ["join", sender, "--survey", "sim", "--bootstrap", bootstrap])
    found = [json.loads(line)["alert"] for line in done.stdout.splitlines()]
    alert = next(one for one in found if one["id"] == 2)
    assert alert == {
        "id": 2,
        "object": 1002,
        "time": "2025-11-20T23:59:23Z",
        "ra": 10.5,
        "dec": -20.25,
        "band": "r",
        "magnitude": pytest.approx(22.5),
        "snr": pytest.approx(10.0, abs=0.01),
    }
