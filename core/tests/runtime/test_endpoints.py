"""Where to connect: what was given, else the environment, else the embedded stack."""

import json
import os
from pathlib import Path

import pytest

from nightwire.core.runtime import Endpoints, NoStackError, find_endpoints, process_started


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KAFKA_BOOTSTRAP_SERVERS", "NIGHTWIRE_SCHEMA_REGISTRY", "NIGHTWIRE_STATE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def write_state(folder: Path, pid: int, started: int | None) -> None:
    endpoints = {"kafka": "k:1", "schema_registry": "http://r:2", "vtp_authors": "a:3", "later": "x"}
    folder.mkdir()
    state = {"version": 1, "supervisor": {"pid": pid, "started": started}, "endpoints": endpoints}
    (folder / "state.json").write_text(json.dumps(state))


def test_without_anything_the_error_says_what_to_do() -> None:
    with pytest.raises(NoStackError, match="nightwire up"):
        find_endpoints()


def test_the_option_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "env:1")
    monkeypatch.setenv("NIGHTWIRE_SCHEMA_REGISTRY", "http://env")
    assert find_endpoints("given:1") == Endpoints("given:1", "http://env")
    assert find_endpoints() == Endpoints("env:1", "http://env")


def test_the_running_stack_is_found_from_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_state(tmp_path / ".nightwire", os.getpid(), process_started(os.getpid()))
    (tmp_path / "deep" / "down").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "down")
    assert find_endpoints() == Endpoints("k:1", "http://r:2", "a:3")
    assert find_endpoints(schema_registry="http://other").schema_registry == "http://other"


def test_a_stack_whose_supervisor_died_is_none(tmp_path: Path) -> None:
    write_state(tmp_path / ".nightwire", os.getpid(), 12345)
    with pytest.raises(NoStackError):
        find_endpoints()
