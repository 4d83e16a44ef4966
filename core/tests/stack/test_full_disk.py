"""A disk that is full, a real one of 300 MB: said at once, lost nothing, and gone on by itself."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nightwire.core.kafka import DeliveryError, Writer, producer, read_to_end
from nightwire.core.runtime import clean_environment
from nightwire.core.runtime.disk import FULL, disk_of, full_disk
from nightwire.core.stack.doctor import disk
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder on a disk of its own."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def nightwire(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "nightwire.core.cli", *words]
    return subprocess.run(
        command,
        cwd=folder,
        env=clean_environment(os.environ) | {"COLUMNS": "300"},
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )


def status(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(nightwire(folder, "status", "--json").stdout)
    return found


def fill(folder: Path, left: int) -> Path:
    """Take all room but *left* bytes, as another program does."""
    ballast = folder / f"all but {left}"
    with ballast.open("wb") as file:
        if (much := disk_of(folder).free - left) > 0:
            os.posix_fallocate(file.fileno(), 0, much)
    return ballast


def written_until_refused(kafka: str) -> int:
    """Write to `alerts.sim` until Kafka takes no more; return how many were acknowledged."""
    writer = Writer(producer(kafka, message_timeout_ms=4000), flush_timeout=30)
    try:
        for _ in range(2000):
            writer.write("alerts.sim", os.urandom(200_000))
        writer.flush()
    except DeliveryError:
        pass
    return writer.acknowledged


@pytest.mark.proof
def test_it_is_told_and_waited_for_and_nothing_acknowledged_is_lost(small: Path) -> None:
    refused = nightwire(small, "up", "--ports", "free", "--light")
    assert refused.returncode == 1
    assert "1GB are needed" in refused.stderr
    up = ("up", "--ports", "free", "--light", "--least-disk", "100MB", "--state", ".nightwire")
    assert nightwire(small, *up).returncode == 0
    kafka = status(small)["endpoints"]["kafka"]
    ballast = fill(small, 60_000_000)
    acknowledged = written_until_refused(kafka)
    rest = fill(small, 0)
    until(lambda: "kafka" not in healthy(small), "Kafka goes on on a full disk")
    assert "it is full. Kafka stops until there are 32 MB" in nightwire(small, "status").stdout
    said = nightwire(small, "topics")
    assert said.returncode == 1
    assert "it is full" in said.stderr
    for file in (ballast, rest):
        file.unlink()
    until(lambda: len(healthy(small)) == len(status(small)["processes"]), "all goes on by itself")
    assert acknowledged > 0
    kept = sum(1 for _ in read_to_end(kafka, ["alerts.sim"]))
    assert kept >= acknowledged
    visit = nightwire(small, "simulate", "--alerts", "50", "--json")
    assert json.loads(visit.stdout)["acknowledged"] == 50
    assert nightwire(small, "down").returncode == 0


def healthy(folder: Path) -> set[str]:
    return {one["name"] for one in status(folder)["processes"] if one["state"] == "healthy"}


def test_no_advice_deletes_data(tmp_path: Path) -> None:
    for free in (0, 3 * 10**9):
        finding = disk(tmp_path, free)
        assert "rm " not in finding.mend
        assert "--state DIR" in finding.mend
    assert disk(tmp_path, 0).state == "missing"
    assert disk(tmp_path, 3 * 10**9).state == "note"


def test_there_is_nothing_to_say_while_there_is_room(tmp_path: Path) -> None:
    assert disk_of(tmp_path / "not" / "there").free > FULL
    assert full_disk(tmp_path) is None
