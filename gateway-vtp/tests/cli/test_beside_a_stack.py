"""What the verbs find where a stack runs: its gateway, which is a real one here."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nightwire.core.runtime import process_started
from nightwire.gateway.cli.serve_defaults import ALONE, BESIDE
from tests._waiting import until

pytestmark = pytest.mark.kafka

Verb = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def stack(
    start_gateway: Callable[..., Any], kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Return a gateway that a stack's state file names, as `nightwire up` writes it."""
    monkeypatch.delenv("NIGHTWIRE_STATE", raising=False)  # verbs that a test runs here set it
    gateway, me = start_gateway("--no-accounts"), os.getpid()
    endpoints = {
        "kafka": kafka,
        "schema_registry": "http://127.0.0.1:9",
        "vtp_authors": f"127.0.0.1:{gateway.authors}",
        "vtp_subscribers": f"127.0.0.1:{gateway.subscribers}",
    }
    (tmp_path / ".nightwire").mkdir()
    state = {"supervisor": {"pid": me, "started": process_started(me)}, "endpoints": endpoints}
    (tmp_path / ".nightwire" / "state.json").write_text(json.dumps(state))
    return gateway


@pytest.fixture
def verb(stack: Any, nightwire: list[str], tmp_path: Path) -> Verb:
    """Return a function that runs a verb where the stack runs."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*nightwire, *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    return run


def test_a_test_event_goes_to_the_stacks_gateway_and_to_its_subscribers(
    stack: Any, verb: Verb, telescope: Callable[..., Any]
) -> None:
    listener = telescope(stack.subscribers)
    done = verb("gateway", "test", "--ivorn", f"ivo://test.{os.urandom(6).hex()}/me")
    assert (done.returncode, done.stdout[:4]) == (0, "ack "), done.stderr
    assert b'role="test"' in listener.wait_for(1)[0]


def test_samples_are_new_ones_each_time_unless_their_numbers_are_given(
    stack: Any, verb: Verb, telescope: Callable[..., Any]
) -> None:
    listener = telescope(stack.subscribers)

    def known(*options: str) -> list[bool]:
        done = json.loads(verb("send", "--samples", "3", "--json", *options).stdout)
        return [one["reason"] == "known already" for one in done["results"]]

    assert [known(), known()] == [[False] * 3] * 2
    listener.wait_for(6)
    numbered = ("--first-sample", str(os.getpid() * 1000))
    assert [known(*numbered), known(*numbered)] == [[False] * 3, [True] * 3]


def test_a_second_gateway_serves_a_filters_topic_beside_that_of_the_stack(
    stack: Any, nightwire: list[str], tmp_path: Path
) -> None:
    assert not {BESIDE[name] for name in ("authors", "subscribers", "state", "ivorn")} & {*ALONE.values()}
    ports = ("--authors", "127.0.0.1:0", "--subscribers", "127.0.0.1:0")
    command = [*nightwire, "gateway", "serve", "--feed", "filter.gateway-test.bright", *ports]
    with (tmp_path / "beside.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
    lines = (tmp_path / "beside.log").read_text
    until(lambda: process.poll() is not None or "subscribers on" in lines(), "it to listen")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0, lines()
    assert (tmp_path / BESIDE["state"] / "version").exists()
