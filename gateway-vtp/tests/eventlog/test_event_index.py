"""The index of known events: what it holds, forgets and survives."""

import gc
import hashlib
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.gateway.eventlog.event_index import DAY, EventIndex, IndexEntry

A, B, C = b"a" * 32, b"b" * 32, b"c" * 32


def digest(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


@pytest.fixture
def index(tmp_path: Path) -> EventIndex:
    return EventIndex(tmp_path / "events")


def test_the_first_record_with_a_hash_is_the_event(index: EventIndex) -> None:
    index.add([IndexEntry(A, 2, 7), IndexEntry(A, 2, 9)], {2: 10})
    index.add([IndexEntry(A, 2, 12), IndexEntry(B, 0, 1 << 40)], {2: 13, 0: (1 << 40) + 1})
    assert index.first(A) == (2, 7)
    assert index.first(B) == (0, 1 << 40)
    assert not index.knows(C)
    assert index.positions() == {0: (1 << 40) + 1, 2: 13}


steps = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 30), st.integers(0, 3), st.integers(0, 1 << 40)),
    st.tuples(st.just("wait"), st.integers(1, 9)),
    st.tuples(st.just("reopen")),
)


@pytest.mark.slow
@given(st.lists(steps, max_size=60))
def test_it_holds_what_a_dictionary_holds_and_drops_what_is_old(given_steps: list[Any]) -> None:
    known: dict[int, tuple[int, int]] = {}
    now = float(DAY * 100)
    seen: dict[int, float] = {}
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("nightwire.gateway.eventlog.event_index.time.time", lambda: now)
        index = EventIndex(Path(folder) / "events", days=10)
        for step in given_steps:
            match step:
                case ("add", number, partition, offset):
                    index.add([IndexEntry(digest(number), partition, offset)], {})
                    known.setdefault(number, (partition, offset))
                    seen.setdefault(number, now)
                case ("wait", days):
                    now += days * DAY
                    for _ in range(30):  # each drops two batches, and there are at most 60
                        index.add([], {})
                    young = {number for number, at in seen.items() if at >= now - 10 * DAY}
                    known = {number: place for number, place in known.items() if number in young}
                    seen = {number: at for number, at in seen.items() if number in young}
                case _:
                    index.close()
                    del index
                    index = EventIndex(Path(folder) / "events", days=10)
            assert {n: index.first(digest(n)) for n in range(31)} == {n: known.get(n) for n in range(31)}


def test_what_one_thread_adds_others_see_and_one_that_comes_later_finds(
    index: EventIndex, tmp_path: Path
) -> None:
    other = EventIndex(tmp_path / "events")
    index.add([IndexEntry(A, 0, 0)], {0: 1})
    assert other.knows(A)
    assert EventIndex(tmp_path / "events").positions() == {0: 1}


@pytest.mark.slow
def test_others_read_while_one_writes(index: EventIndex, tmp_path: Path) -> None:
    written, wrong = 0, list[int]()

    def read() -> None:
        mine = EventIndex(tmp_path / "events")
        while written < 20_000:
            last = written - 1
            if last >= 0 and mine.first(digest(last)) != (0, last):
                wrong.append(last)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for first in range(0, 20_000, 20):
        index.add([IndexEntry(digest(n), 0, n) for n in range(first, first + 20)], {0: first + 20})
        written = first + 20
    for reader in readers:
        reader.join()
    assert wrong == []


def test_an_old_event_is_new_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = EventIndex(tmp_path / "events", days=30)
    index.add([IndexEntry(A, 0, 0)], {0: 1})
    later = time.time() + 31 * DAY
    monkeypatch.setattr("nightwire.gateway.eventlog.event_index.time.time", lambda: later)
    index.add([IndexEntry(B, 0, 1)], {0: 2})
    assert not index.knows(A)
    index.add([IndexEntry(A, 0, 2)], {0: 3})
    assert index.first(A) == (0, 2)


def test_the_index_of_another_log_is_not_believed(index: EventIndex) -> None:
    assert index.follows("cluster/topic")
    index.add([IndexEntry(A, 0, 0)], {0: 1})
    assert index.follows("cluster/topic")
    assert index.knows(A)
    assert not index.follows("cluster/topic-made-anew")
    assert not index.knows(A)
    assert index.positions() == {}
    assert index.follows("cluster/topic-made-anew")


WRITER = """
import hashlib, os, signal, sys
from pathlib import Path
from nightwire.gateway.eventlog.event_index import EventIndex, IndexEntry

index = EventIndex(Path(sys.argv[1]))
index.follows("log")
for n in range(1_000_000):
    index.add([IndexEntry(hashlib.sha256(b"%d" % n).digest(), 0, n)], {0: n + 1})
    if n == 3_000:
        print("go", flush=True)
"""


def test_a_process_that_is_killed_in_the_midst_leaves_an_index_that_says_what_it_holds(
    tmp_path: Path,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "events")], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        writer.kill()
    index = EventIndex(tmp_path / "events")
    assert index.follows("log")
    read = index.positions()[0]
    assert read > 3_000
    assert all(index.first(digest(n)) == (0, n) for n in range(read))
    assert not index.knows(digest(read))


@pytest.fixture
def restarted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that makes it look as if the machine had been restarted."""

    def restart() -> None:
        gc.collect()  # whoever had the index open is no more
        monkeypatch.setattr(
            "nightwire.gateway.eventlog.event_index._boot", lambda: "another start of the machine"
        )

    return restart


def test_a_crash_of_the_machine_loses_the_index(tmp_path: Path, restarted: Callable[[], None]) -> None:
    crashed = EventIndex(tmp_path / "events")
    crashed.follows("log")
    crashed.add([IndexEntry(A, 0, 0)], {0: 1})
    del crashed
    restarted()
    found = EventIndex(tmp_path / "events")
    assert found.positions() == {}
    assert found.follows("log")  # a new one, which has read nothing
    assert not found.knows(A)


def test_what_was_closed_survives_the_machine(tmp_path: Path, restarted: Callable[[], None]) -> None:
    closed = EventIndex(tmp_path / "events")
    closed.follows("log")
    closed.add([IndexEntry(A, 0, 0)], {0: 1})
    closed.close()
    del closed
    restarted()
    found = EventIndex(tmp_path / "events")
    assert found.positions() == {0: 1}
    assert found.knows(A)


def test_one_that_cannot_be_read_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "data.mdb").write_bytes(b"no index" * 2_000)
    assert EventIndex(tmp_path / "events").positions() == {}
    assert "cannot be read" in caplog.text


TEN_MILLION = """
import hashlib, sys
from pathlib import Path
from nightwire.gateway.eventlog.event_index import EventIndex, IndexEntry

index = EventIndex(Path(sys.argv[1]))
for first in range(0, 10_000_000, 500):
    batch = [IndexEntry(hashlib.sha256(b"%d" % n).digest(), 0, n) for n in range(first, first + 500)]
    index.add(batch, {0: first + 500})
for number in range(0, 10_000_000, 9973):
    assert index.first(hashlib.sha256(b"%d" % number).digest()) == (0, number)
assert not index.knows(hashlib.sha256(b"unknown").digest())
held = Path("/proc/self/status").read_text().partition("RssAnon:")[2].split()[0]
print(int(held) // 1024, "MiB")
"""


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_ten_million_events_take_bounded_memory(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TEN_MILLION, str(tmp_path / "events")],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (600, 600)),  # bounds the load
    )
    assert done.stdout.endswith("MiB\n"), f"killed after 600 s, or: {done.stderr}"
    assert int(done.stdout.split()[0]) < 200
