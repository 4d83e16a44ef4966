"""A process tells the directory that it is there, and is never held up by it."""

import socket

import pytest

from nightwire.core.kafka import ensure_topics, read_to_end
from nightwire.core.presence import (
    MAX_CAPABILITIES,
    EntryError,
    entry,
    entry_key,
    metrics_at,
    reached_at,
    registered,
)
from nightwire.schemas import records
from nightwire.schemas.topics import DIRECTORY, settings


@pytest.mark.parametrize("name", ["", "two\nlines", "a/b", "x" * 201])
def test_a_name_that_cannot_stand_is_refused(name: str) -> None:
    with pytest.raises(EntryError, match="is no name"):
        entry("producer", name)


def test_quotes_may_stand_in_a_name() -> None:
    assert entry_key(entry("producer", 'o\'hara "x"')) == 'local/producer/o\'hara "x"'


def test_an_unknown_kind_and_oversized_capabilities_are_refused() -> None:
    with pytest.raises(EntryError, match="no kind"):
        entry("planet", "mars")
    with pytest.raises(EntryError, match="the limit is"):
        entry("producer", "big", capabilities={"text": "x" * MAX_CAPABILITIES})


def test_nobody_notices_that_kafka_is_away() -> None:
    with registered("127.0.0.1:1", "alone"):
        pass


@pytest.mark.kafka
def test_a_process_comes_and_says_goodbye(kafka: str) -> None:
    ensure_topics(kafka, [settings(DIRECTORY)])
    with registered(kafka, "comer"):
        pass
    found = [one for one in read_to_end(kafka, [DIRECTORY]) if one.key() == b"local/process/comer"]
    said = [records.ENTRY.decode(one.value() or b"") for one in found]
    assert [one["ended"] for one in said] == [False, True]
    assert len({one["instance"] for one in said}) == 1


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("127.0.0.1", "127.0.0.1:8083"),
        ("::1", "[::1]:8083"),
        ("0.0.0.0", f"{socket.gethostname()}:8083"),  # noqa: S104  (what a container listens on)
        ("::", f"{socket.gethostname()}:8083"),
    ],
)
def test_who_listens_everywhere_is_reached_by_the_name_of_his_machine(host: str, found: str) -> None:
    assert reached_at(host, 8083) == found


def test_pages_of_metrics_are_found_by_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTWIRE_METRICS_HOST", "0.0.0.0")  # noqa: S104
    here = f"{socket.gethostname()}:9400"
    assert metrics_at(9400, spark="/spark") == {"metrics": here, "metrics:spark": f"{here}/spark"}
    assert metrics_at(0, spark="/spark") == {}
