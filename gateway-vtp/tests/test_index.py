from pathlib import Path
from shutil import rmtree

import pytest

from nightwire.gateway._index import EventIndex, Sighting

A, B = b"a" * 32, b"b" * 32


@pytest.fixture
def index(tmp_path: Path) -> EventIndex:
    return EventIndex(tmp_path / "events.sqlite")


def test_the_first_record_with_a_hash_is_the_event(index: EventIndex) -> None:
    index.add([Sighting(A, 2, 7), Sighting(A, 2, 9)], {2: 10})
    index.add([Sighting(A, 2, 12), Sighting(B, 0, 1)], {2: 13, 0: 2})
    assert index.first(A) == (2, 7)
    assert index.knows(B)
    assert not index.knows(b"c" * 32)
    assert index.positions() == {0: 2, 2: 13}


def test_what_one_connection_commits_another_sees_and_a_new_one_finds(
    index: EventIndex, tmp_path: Path
) -> None:
    reader = EventIndex(tmp_path / "events.sqlite")
    index.add([Sighting(A, 0, 0)], {0: 1})
    assert reader.knows(A)
    assert EventIndex(tmp_path / "events.sqlite").positions() == {0: 1}


def test_how_far_the_log_was_read_is_noted_now_and_then_and_a_crash_has_the_rest_read_again(
    index: EventIndex, tmp_path: Path
) -> None:
    for offset in range(100):
        index.add([Sighting(bytes([offset]) * 32, 0, offset)], {0: offset + 1})
    assert index.positions() == {0: 100}
    after = EventIndex(tmp_path / "events.sqlite")  # as after a crash: nobody closed it
    assert 1 <= after.positions()[0] <= 100
    after.add([Sighting(b"\x07" * 32, 0, 7)], {0: 100})
    assert after.first(b"\x07" * 32) == (0, 7)
    index.close()
    assert EventIndex(tmp_path / "events.sqlite").positions() == {0: 100}


def test_the_index_of_another_log_is_not_believed(index: EventIndex) -> None:
    assert index.follows("cluster/topic")
    index.add([Sighting(A, 0, 0)], {0: 1})
    assert index.follows("cluster/topic")
    assert index.knows(A)
    assert not index.follows("cluster/topic-made-anew")
    assert not index.knows(A)
    assert index.positions() == {}


def test_old_events_are_forgotten(index: EventIndex) -> None:
    index.add([Sighting(A, 0, 0)], {0: 1})
    assert index.forget(days=30) == 0
    assert index.forget(days=-1) == 1
    assert not index.knows(A)


def test_a_crash_of_the_process_loses_nothing_and_one_of_the_machine_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.sqlite"
    crashed = EventIndex(path)
    crashed.follows("log")
    crashed.add([Sighting(A, 0, 0)], {0: 1})
    assert EventIndex(path).positions() == {0: 1}
    monkeypatch.setattr("nightwire.gateway._index._boot", lambda: "another start of the machine")
    found = EventIndex(path)
    assert found.positions() == {}
    assert found.follows("log")  # a new one, which has read nothing
    assert not found.knows(A)


def test_what_was_closed_survives_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.sqlite"
    closed = EventIndex(path)
    closed.follows("log")
    closed.add([Sighting(A, 0, 0)], {0: 1})
    closed.close()
    monkeypatch.setattr("nightwire.gateway._index._boot", lambda: "another start of the machine")
    found = EventIndex(path)
    assert found.positions() == {0: 1}
    assert found.knows(A)


def test_an_index_without_its_hashes_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "events.sqlite"
    older = EventIndex(path)
    older.follows("log")
    older.add([], {0: 1})
    older.close()
    rmtree(tmp_path / "events.hashes")
    assert EventIndex(path).positions() == {}
