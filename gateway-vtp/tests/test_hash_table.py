"""The table in files that holds the hashes of known events."""

import hashlib
import resource
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.gateway._hash_table import FILES, SIZE, HashTable, open_table


def digest(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


def test_a_slot_on_disk(tmp_path: Path) -> None:
    """Written as it is documented, whatever the machine."""
    table = HashTable(tmp_path)
    known = bytes([FILES + 3, 5]) + bytes(7) + bytes(range(7)) + bytes(16)
    table.add(known, 2, 6, 1_700_000_000)
    written = (tmp_path / "03").read_bytes()[5 * SIZE : 6 * SIZE]
    assert written == known[:16] + b"\x02\0\0\0" + b"\x00\xf1\x53\x65" + b"\x07\0\0\0\0\0\0\0"


keys = st.one_of(
    st.integers(0, 500).map(digest),
    st.tuples(st.integers(0, 3), st.binary(min_size=7, max_size=7)).map(  # neighbours, of one file
        lambda parts: bytes([64, parts[0]]) + bytes(7) + parts[1] + bytes(16)
    ),
)
steps = st.one_of(
    st.tuples(st.just("add"), keys, st.integers(0, 3), st.integers(0, 1 << 40), st.integers(0, 9)),
    st.tuples(st.just("forget"), st.integers(0, 9)),
    st.tuples(st.just("reopen")),
)


@given(st.lists(steps, max_size=60))
def test_it_holds_what_a_dictionary_holds(given_steps: list[Any]) -> None:
    known: dict[bytes, tuple[int, int, int]] = {}
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "nightwire.gateway._hash_table.FIRST_SLOTS", 4
        )  # so that it grows, and is full at its end
        patch.setattr("nightwire.gateway._hash_table.SPILL", 2)
        patch.setattr("nightwire.gateway._hash_table.FILES", 2)
        table = HashTable(Path(folder))
        for step in given_steps:
            match step:
                case ("add", key, partition, offset, seen):
                    table.add(key, partition, offset, seen)
                    known.setdefault(key, (partition, offset, seen))
                case ("forget", before):
                    kept = {key: found for key, found in known.items() if found[2] >= before}
                    assert table.forget(before) == len(known) - len(kept)
                    known = kept
                case _:
                    table = HashTable(Path(folder))
            for key, (partition, offset, _) in known.items():
                assert table.find(key) == (partition, offset)
            assert table.find(bytes([1]) * 32) is None


def test_it_grows_and_keeps_its_files_apart(tmp_path: Path) -> None:
    table = HashTable(tmp_path)
    for number in range(100_000):
        table.add(digest(number), number % 7, number, 1)
    assert [table.find(digest(number)) for number in range(0, 100_000, 997)] == [
        (number % 7, number) for number in range(0, 100_000, 997)
    ]
    assert table.find(digest(100_000)) is None
    assert len(list(tmp_path.iterdir())) == FILES
    again = HashTable(tmp_path)
    assert again.find(digest(99_999)) == (99_999 % 7, 99_999)
    assert again.forget(before=2) == 100_000


def test_others_read_while_one_writes_and_it_grows(tmp_path: Path) -> None:
    table, written, wrong = HashTable(tmp_path), 0, []

    def read() -> None:
        while written < 20_000:
            last = written - 1
            if last >= 0 and table.find(digest(last)) != (0, last):
                wrong.append(last)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(20_000):
        table.add(digest(number), 0, number, 1)
        written = number + 1
    for reader in readers:
        reader.join()
    assert wrong == []


def test_all_threads_share_one_table(tmp_path: Path) -> None:
    assert open_table(tmp_path) is open_table(tmp_path)


TEN_MILLION = """
import hashlib, sys
from pathlib import Path
from nightwire.gateway._index import EventIndex, Sighting

index = EventIndex(Path(sys.argv[1]) / "events.sqlite")
for first in range(0, 10_000_000, 500):
    numbers = range(first, first + 500)
    index.add([Sighting(hashlib.sha256(b"%d" % n).digest(), 0, n) for n in numbers], {0: first + 500})
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
        [sys.executable, "-c", TEN_MILLION, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (600, 600)),  # bounds the load
    )
    assert done.stdout.endswith("MiB\n"), f"killed after 600 s, or: {done.stderr}"
    assert int(done.stdout.split()[0]) < 200
