"""Processes and Kafka killed: nobody is dead who lives, nor lives who is dead."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL

import pytest

from directory.tests.serve.served import Directory
from nightwire.core.stack import Broker
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

LIVES = """
import sys, time
from nightwire.core.presence import registered
with registered(*sys.argv[1:]):
    time.sleep(600)
"""


@contextmanager
def living(bootstrap: str, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that does nothing but live."""
    child = subprocess.Popen([sys.executable, "-c", LIVES, bootstrap, name])
    try:
        yield child
    finally:
        child.kill()
        child.wait()


def states(directory: Directory, names: list[str]) -> dict[str, str]:
    """Return the state of each process that is known."""
    rows = directory.ask("SELECT name, state FROM processes")
    return {row["name"]: row["state"] for row in rows if row["name"] in names}


def watch(directory: Directory, names: list[str], seconds: float) -> set[str]:
    """Return the states that were seen of *names* for so long."""
    seen, end = set[str](), time.monotonic() + seconds
    while time.monotonic() < end:
        seen |= set(states(directory, names).values())
        time.sleep(0.1)
    return seen


@pytest.mark.proof
def test_kafka_restarted_and_the_directory_killed_make_nobody_dead(
    fresh_broker: Broker, tmp_path: Path
) -> None:
    names = ["one", "two", "three"]
    with (
        living(fresh_broker.bootstrap, "one"),
        living(fresh_broker.bootstrap, "two"),
        living(fresh_broker.bootstrap, "three"),
    ):
        directory = Directory.on(fresh_broker.bootstrap, tmp_path)
        until(lambda: states(directory, names) == dict.fromkeys(names, "live"), "all live")
        fresh_broker.kill()
        assert "gone" not in watch(directory, names, 10.0), "nobody can speak while Kafka is away"
        fresh_broker.start()
        assert "gone" not in watch(directory, names, 10.0)
        until(lambda: states(directory, names) == dict.fromkeys(names, "live"), "all live again")
        directory.stop(SIGKILL)
        directory = Directory(fresh_broker.bootstrap, tmp_path)
        assert "gone" not in watch(directory, names, 10.0)
        directory.stop()


def test_who_is_killed_is_gone_and_after_a_grace_is_taken_out(kafka: str, tmp_path: Path) -> None:
    directory = Directory.on(kafka, tmp_path, "--grace", "6s")
    with living(kafka, "victim") as child, living(kafka, "bystander"):
        until(lambda: directory.state("victim") == "live", "it is live")
        child.send_signal(SIGKILL)
        until(lambda: directory.state("victim") == "gone", "it is gone")
        assert directory.state("bystander") == "live"
        until(lambda: directory.state("victim") is None, "it is taken out")
        assert directory.state("bystander") == "live"
    directory.stop()


def test_of_two_of_one_name_the_first_keeps_it_and_the_other_is_counted(kafka: str, tmp_path: Path) -> None:
    directory = Directory.on(kafka, tmp_path)
    rivals = "SELECT rivals FROM processes WHERE name = 'twin' AND state = 'live' AND rivals > 0"
    with living(kafka, "twin"):
        until(lambda: directory.state("twin") == "live", "it is live")
        with living(kafka, "twin"):
            until(lambda: directory.ask(rivals) != [], "the other is counted")
    directory.stop()
