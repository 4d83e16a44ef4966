"""The embedded stack with passwords: it serves itself, its operator and its owners, and nobody
else.
"""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import fastavro
import httpx
import pytest

from nightwire.core.kafka import Writer, login, producer
from nightwire.core.runtime import clean_environment
from nightwire.schemas import records
from tests._waiting import until
from tests.test_stack import Stack

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

ENGINE = () if os.environ.get("NIGHTWIRE_PROOFS") == "1" else ("--light",)
"""With Spark as a proof: its processes have their passwords as the light engine has, in their
environment, and `tests/test_stack.py` runs it."""

FILTER = """\
def keep(alert):
    return alert.id % 20 == 0
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    one = Stack(tmp_path_factory.mktemp("stack"))
    one.run("up", "--ports", "free", "--state", ".nightwire", "--auth", "scram", *ENGINE)
    yield one
    one.run("down")


def begun(folder: Path, keys: Mapping[str, str], *words: str) -> subprocess.Popen[str]:
    """Start a verb far from the stack's state, with nothing but *keys*."""
    known = clean_environment(os.environ)
    command = [sys.executable, "-m", "nightwire.core.cli", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env={**known, **keys}, stdout=pipe, stderr=pipe, text=True)


def elsewhere(folder: Path, keys: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run a verb far from the stack's state, with nothing but *keys*."""
    child = begun(folder, keys, *words)
    out, err = child.communicate()
    return subprocess.CompletedProcess(words, child.returncode, out, err)


def test_the_operator_looks_at_the_night(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    stack.run("simulate", "--alerts", "20")
    monkeypatch.setenv("NIGHTWIRE_STATE", str(stack.folder / ".nightwire"))
    operator = login(stack.kafka)
    page = f"{stack.status()['endpoints']['portal']}/night"
    until(lambda: "producer" in httpx.get(page, auth=operator, timeout=30).text, "accounts are shown")
    assert "no right" not in httpx.get(page, auth=operator, timeout=30).text


def test_only_the_operator_can_enter_the_state_folder(stack: Stack) -> None:
    assert (stack.folder / ".nightwire").stat().st_mode & 0o77 == 0
    assert "nightwire.stack" not in stack.run("user", "list")


BROKERS = ("alerce", "antares", "babamul", "fink", "lasair")
CLASSES = {"name": "Class", "type": "record", "fields": [
    {"name": "classId", "type": "int"}, {"name": "probability", "type": "float"},
]}  # fmt: skip
MESSAGE = fastavro.parse_schema({"name": "BrokerMessage", "type": "record", "fields": [
    {"name": "diaSourceId", "type": ["null", "long"]},
    *({"name": name, "type": "string"} for name in ("brokerName", "classifierName", "classifierVersion")),
    {"name": "classifications", "type": {"type": "array", "items": CLASSES}},
]})  # fmt: skip
VERDICT = {
    "classifierName": "stamps",
    "classifierVersion": "1",
    "classifications": [{"classId": 111, "probability": 0.5}],
}
LIGHT = "broker.antares.lite"
SELDOM = "def keep(alert):\n    return alert.id % 3 == 0\n"


def entered(stack: Stack, *words: str) -> dict[str, str]:
    """Let a broker in; return the variables with which it enters."""
    return dict(re.findall(r"export (\w+)=(\S+)", stack.run("broker", "add", *words, "--survey", "sim")))


def ids(lines: str) -> list[int]:
    """Return the ids of alerts that were printed as JSON."""
    return sorted(json.loads(line)["alert"]["diaSourceId"] for line in lines.splitlines())


def send_back(keys: Mapping[str, str], broker: str, about: Sequence[int | None]) -> None:
    """Send a classification of each of some alerts, as the broker with *keys*."""
    with pytest.MonkeyPatch.context() as here:
        for name, value in keys.items():
            here.setenv(name, value)
        writer = Writer(producer(keys["KAFKA_BOOTSTRAP_SERVERS"]))
    for number in about:
        value = io.BytesIO()
        fastavro.writer(value, MESSAGE, [{"diaSourceId": number, "brokerName": broker, **VERDICT}])
        writer.write(f"returns.{broker}", value.getvalue(), key=b"one")
    writer.flush()


@pytest.mark.proof
def test_five_brokers_at_once(stack: Stack, tmp_path: Path) -> None:
    """Two have streams of their own, one sends back; a slow one stands still when its pipe is
    full.
    """
    seldom = tmp_path / "seldom.py"
    seldom.write_text(SELDOM)
    orders = {"fink": ("--filter", str(seldom)), "antares": ("--lite",)}
    with ThreadPoolExecutor(2) as two:
        let_in = two.map(lambda name: (name, entered(stack, name, *orders.get(name, ()))), BROKERS)
        keys = dict(let_in)
    stack.run("simulate", "--alerts", "300")
    everything = ["subscribe", "alerts.sim", "--no-follow", "--format", "json", "--group"]
    slow = begun(tmp_path, keys["lasair"], *everything, "lasair.slow")
    quick = ("alerce", "babamul")
    with ThreadPoolExecutor(2) as two:
        read = list(
            two.map(lambda name: elsewhere(tmp_path, keys[name], *everything, f"{name}.all").stdout, quick)
        )
    whole = ids(read[0])
    new = whole[-300:]
    assert ids(read[1]) == whole
    assert slow.poll() is None

    def stream(broker: str, topic: str) -> str:
        return elsewhere(tmp_path, keys[broker], "subscribe", topic, "--no-follow", "--format", "json").stdout

    until(lambda: ids(stream("antares", LIGHT)) == new, "the light stream holds everything")
    light, heavy = (json.loads(one.splitlines()[0])["alert"] for one in (stream("antares", LIGHT), read[0]))
    assert {"prvDiaSources", "prvDiaForcedSources"} <= heavy.keys() - light.keys()
    assert ids(stream("fink", "broker.fink.seldom")) == [number for number in new if number % 3 == 0]
    assert stream("antares", "broker.fink.seldom") == ""
    send_back(keys["alerce"], "alerce", [whole[-1], None])
    said = stack.run("returns", "check", "alerce", status=1)
    assert "no id of an alert" in said
    assert "1 good, 1 sent to dead-letters" in said
    (met,) = map(json.loads, stack.run("returns", "join", "alerce", "--survey", "sim").splitlines())
    assert [one["alert"] for one in met["returns"]] == [whole[-1]]
    late, _ = slow.communicate()
    assert ids(late) == whole


FLOW = """\
name = "{name}"
[sources.all]
topic = "{source}"
survey = "sim"
begin = "start"
[stones.some]
kind = "filter"
from = "all"
where = "snr > 5"
[stones.out]
kind = "topic"
from = "some"
topic = "broker.{owner}.some"
"""


def asked(stack: Stack, method: str, path: str, keys: Mapping[str, str], body: bytes = b"") -> httpx.Response:
    """Ask the directory as the owner with *keys*."""
    login = keys["KAFKA_SASL_USERNAME"], keys["KAFKA_SASL_PASSWORD"]
    return httpx.request(method, keys["NIGHTWIRE_DIRECTORY"] + path, auth=login, content=body)


def record(name: str, text: str, owner: str) -> bytes:
    """Return a flow as it goes to `flows`."""
    said = {"name": name, "text": text, "paused": False, "made_by": owner, "made": datetime.now(UTC)}
    return records.FLOW.encode(said)


def flows_page(stack: Stack) -> str:
    """Return the metrics of the worker that runs flows."""
    return httpx.get(stack.status()["endpoints"]["metrics"]["flows"]).text


def test_an_owner_gets_what_passes_his_flows_are_his_own_and_a_stranger_gets_nothing(
    stack: Stack, tmp_path: Path
) -> None:
    eve, sam = (
        dict(re.findall(r"export (\w+)=(\S+)", stack.run("user", "add", one))) for one in ("eve", "sam")
    )
    (tmp_path / "mine.py").write_text(FILTER.replace("20", "40"))  # less than an owner's limit for sure
    words = ("--name", "mine", "--owner", "eve", "--notify", "http://hook.invalid/")
    told = elsewhere(tmp_path, eve, "filter", "submit", "mine.py", *words)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "but its host has no address just now" in told.stderr
    (tmp_path / "some.toml").write_text(FLOW.format(name="some", source="alerts.sim", owner="eve"))
    up = elsewhere(tmp_path, eve, "flow", "up", "some.toml")
    assert up.returncode == 0, up.stdout + up.stderr
    assert {one["name"] for one in json.loads(elsewhere(tmp_path, eve, "flow", "list", "--json").stdout)} == {
        "eve-mine",
        "some",
    }
    stack.run("simulate", "--alerts", "200")
    out = ("--no-follow", "--format", "json", "--group", "eve.archive")
    until(lambda: elsewhere(tmp_path, eve, "subscribe", "broker.eve.some", *out).stdout, "the flow writes")
    passed = until(lambda: ids(elsewhere(tmp_path, eve, "subscribe", "filter.eve.mine", *out).stdout))
    assert {number % 40 for number in passed} == {0}
    stranger = {name: value for name, value in eve.items() if "SASL" not in name and "SECURITY" not in name}
    assert elsewhere(tmp_path, stranger, "topics").returncode == 1
    until(lambda: 'nightwire_flows_retries_total{flow="eve-mine"}' in flows_page(stack), "the page is told")

    taken = elsewhere(tmp_path, sam, "flow", "up", "some.toml")
    assert taken.returncode == 1
    assert "another's" in taken.stderr
    assert json.loads(elsewhere(tmp_path, sam, "flow", "list", "--json").stdout) == []
    assert asked(stack, "DELETE", "/flows/some", sam).status_code == 403
    forged = record("theft", FLOW.format(name="theft", source="filter.eve.mine", owner="sam"), "eve")
    assert asked(stack, "PUT", "/flows/theft", sam, forged).status_code == 403
    theft = record("theft", FLOW.format(name="theft", source="filter.eve.mine", owner="sam"), "sam")
    assert asked(stack, "PUT", "/flows/theft", sam, theft).status_code == 200
    until(lambda: 'nightwire_flows_problem{flow="theft"} 1.0' in flows_page(stack), "the worker refuses")
    assert elsewhere(tmp_path, eve, "flow", "down", "some").returncode == 0
    late = elsewhere(tmp_path, sam, "flow", "up", "some.toml")  # what waits in its queues is eve's
    assert (late.returncode, "another's" in late.stderr) == (1, True)
    assert elsewhere(tmp_path, eve, "flow", "up", "some.toml").returncode == 0


@pytest.mark.proof
def test_the_choice_is_kept(stack: Stack) -> None:
    stack.run("user", "add", "kim")
    stack.run("down")
    stack.run("up")
    assert json.loads((stack.folder / ".nightwire" / "state.json").read_text())["auth"] == "scram"
    assert {one["state"] for one in stack.json("status")["processes"]} == {"healthy"}
    assert "kim" in stack.run("user", "list")
