"""The spool: what is in it stays, leaves once, and is counted once."""

import random
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nightwire.core.kafka import Record
from nightwire.producer.spool.spool import SPOOLED_HEADER, Ack, Spool, SpoolError, SpoolFullError
from nightwire.producer.visits.counts import VisitCounts

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
VISIT = 2026030143200


def record(number: int, size: int = 100) -> Record:
    """Return a record of *size* bytes."""
    return Record("alerts.sim", bytes([number % 256]) * size, b"%d" % number, [("visit", b"\x00\xff")])


def closing(counts: VisitCounts) -> list[Record]:
    """Return a visit's last record, which says what was counted."""
    return [Record("visits", counts.as_text().encode(), counts.key)]


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    """Yield an empty spool of 10 kB."""
    with Spool(tmp_path / "deep" / "spool", limit=10_000) as one:
        yield one


def test_records_come_back_in_their_order_and_marked(spool: Spool) -> None:
    numbers = spool.append([(record(n), VISIT) for n in range(5)])
    assert numbers == sorted(numbers)
    found = list(spool.after(0, 10_000))
    assert [number for number, _record in found] == numbers
    _number, first = found[0]
    assert (first.topic, first.value, first.key) == ("alerts.sim", bytes(100), b"0")
    assert first.headers == [("visit", b"\x00\xff"), (SPOOLED_HEADER, b"1")]


def test_a_window_has_no_more_bytes_than_there_is_room_and_one_record(spool: Spool) -> None:
    numbers = spool.append([(record(n), VISIT) for n in range(5)])
    assert [number for number, _record in spool.after(numbers[0], 150)] == numbers[1:3]


def test_a_full_spool_takes_nothing_says_what_to_do_and_has_room_again(spool: Spool) -> None:
    numbers = spool.append([(record(n, 1000), VISIT) for n in range(9)])
    with pytest.raises(SpoolFullError, match=r"9,000 of 10,000 bytes.*bring it back"):
        spool.append([(record(9, 600), VISIT), (record(10, 600), VISIT)])
    assert len(spool) == 9
    spool.delivered([Ack(numbers[0], 0, 0)])
    spool.append([(record(9, 1900), VISIT)])
    assert (len(spool), spool.bytes) == (9, 9900)


def test_a_visit_is_closed_when_its_last_record_left_with_all_that_was_counted(spool: Spool) -> None:
    first, second, third, other = spool.append(
        [*((record(n), VISIT) for n in range(3)), (record(3), VISIT + 1)]
    )
    counts = VisitCounts("sim", VISIT, NOON, offered=5, acknowledged=2, ranges={0: (10, 11)})
    spool.end(counts)
    assert spool.close_visits(closing) == []
    spool.delivered([Ack(first, 0, 14), Ack(second, 1, 3)])
    assert spool.close_visits(closing) == []
    assert spool.refuse(third, "too-large")
    (done,) = spool.close_visits(closing)
    assert (done.acknowledged, done.refused, done.ranges) == (4, {"too-large": 1}, {0: (10, 14), 1: (3, 3)})
    assert done.account().read == done.account().delivered + 1
    assert spool.close_visits(closing) == []
    left = [(number, one.topic) for number, one in spool.after(0, 10_000)]
    assert left[0] == (other, "alerts.sim")
    assert [topic for _number, topic in left[1:]] == ["visits"]


def test_a_record_of_no_visit_cannot_be_refused_unseen(spool: Spool) -> None:
    (number,) = spool.append([(record(1), None)])
    assert not spool.refuse(number, "too-large")
    assert len(spool) == 1


def test_what_fails_halfway_changes_nothing(spool: Spool) -> None:
    nowhere: Any = None
    with pytest.raises(SpoolError, match="spool"):
        spool.append([(record(1), VISIT), (Record(nowhere, b"x"), VISIT)])
    assert (len(spool), spool.bytes, spool.is_empty, list(spool.after(0, 1000))) == (0, 0, True, [])


def test_what_was_counted_is_there_after_the_process(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool", limit=10_000) as before:
        first, _second = before.append([(record(n), VISIT) for n in range(2)])
        before.delivered([Ack(first, 2, 7)])
        before.end(VisitCounts("sim", VISIT, NOON, offered=2))
    with Spool(tmp_path / "spool", limit=10_000) as after:
        assert (len(after), after.bytes, after.is_empty) == (1, 100, False)
        ((number, _record),) = after.after(0, 10_000)
        after.delivered([Ack(number, 2, 8)])
        (done,) = after.close_visits(closing)
        assert (done.acknowledged, done.ranges) == (2, {2: (7, 8)})


def test_a_killed_process_leaves_all_that_it_appended(tmp_path: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from nightwire.core.kafka import Record
from nightwire.producer.spool.spool import Spool
spool = Spool(Path({str(tmp_path / "spool")!r}), limit=10**9)
for number in range(200):
    spool.append([(Record("t", b"%d" % number), None)])
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    with Spool(tmp_path / "spool", limit=10_000) as spool:
        values = [one.value for _number, one in spool.after(0, 10_000)]
    assert values == [b"%d" % number for number in range(200)]


@pytest.mark.slow
def test_two_processes_do_not_share_a_spool(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool", limit=1000) as mine:
        mine.append([(record(1), None)])
        with pytest.raises(SpoolError, match="another process uses it"):
            Spool(tmp_path / "spool", limit=1000)


def test_what_is_no_spool_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "spool").write_bytes(random.Random(1).randbytes(8192))
    with pytest.raises(SpoolError, match="spool"):
        Spool(tmp_path / "spool", limit=1000)


def test_an_emptied_spool_gives_its_disk_back(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    with Spool(path, limit=10 << 20) as spool:
        numbers = spool.append([(record(n, 100_000), VISIT) for n in range(50)])
        spool.sync()
        full = path.stat().st_size
        spool.delivered([Ack(number, 0, number) for number in numbers])
        spool.shrink()
        assert full > 5_000_000 > 10 * path.stat().st_size
