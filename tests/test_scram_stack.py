"""The embedded stack with passwords: it serves itself, its operator and its owners, and nobody else."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.test_stack import Stack, until

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

FILTER = """\
def keep(alert):
    return alert.id % 20 == 0
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    one = Stack(tmp_path_factory.mktemp("stack"))
    one.run("up", "--ports", "free", "--state", ".nightwire", "--auth", "scram")
    yield one
    one.run("down")


def elsewhere(folder: Path, keys: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run a verb far from the stack's state, with nothing but *keys*."""
    known = {
        name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_", "NIGHTWIRE_"))
    }
    command = [sys.executable, "-m", "nightwire.core.cli", *words]
    return subprocess.run(
        command, cwd=folder, env={**known, **keys}, capture_output=True, text=True, check=False
    )


def test_an_owner_gets_what_passes_and_a_stranger_nothing(stack: Stack, tmp_path: Path) -> None:
    ann = dict(re.findall(r"export (\w+)=(\S+)", stack.run("user", "add", "ann")))
    (tmp_path / "mine.py").write_text(FILTER)
    asked = elsewhere(tmp_path, ann, "filter", "submit", "mine.py", "--name", "mine", "--owner", "ann")
    assert asked.returncode == 0, asked.stdout + asked.stderr
    stack.run("simulate", "--alerts", "200")
    mine = ["subscribe", "filter.ann.mine", "--no-follow", "--format", "json", "--group", "ann.archive"]
    read: list[str] = []

    def some_passed() -> bool:
        read.extend(elsewhere(tmp_path, ann, *mine).stdout.splitlines())
        return bool(read)

    until(some_passed, "something passes the filter")
    assert {json.loads(line)["alert"]["diaSourceId"] % 20 for line in read} == {0}
    stranger = {name: value for name, value in ann.items() if "SASL" not in name and "SECURITY" not in name}
    assert elsewhere(tmp_path, stranger, "topics").returncode == 1


def test_only_the_operator_can_enter_the_state_folder(stack: Stack) -> None:
    assert (stack.folder / ".nightwire").stat().st_mode & 0o77 == 0
    assert "nightwire.stack" not in stack.run("user", "list")


@pytest.mark.proof
def test_the_choice_is_kept(stack: Stack) -> None:
    stack.run("down")
    stack.run("up")
    assert json.loads((stack.folder / ".nightwire" / "state.json").read_text())["auth"] == "scram"
    assert {one["state"] for one in stack.json("status")["processes"]} == {"healthy"}
    assert "ann" in stack.run("user", "list")
