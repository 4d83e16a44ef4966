"""Several processes join the files of one archive while it is written: each row stays once."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from archive.tests.conftest import Known, put, record
from nightwire.archive.storage import ALERTS, INDEX, PACKETS, Place, Table
from nightwire.archive.writing import SurveyWriter

pytestmark = pytest.mark.slow

JOIN = """
import sys
from nightwire.archive.storage import ALERTS, INDEX, PACKETS, Place, StorageError, Table
while True:
    for kind in (PACKETS, INDEX, ALERTS):
        Table(Place(sys.argv[1]), "sim", kind).compact()
    print(flush=True)
"""
ROUNDS, BATCH = 8, 20


@contextmanager
def joining(place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """Join files again and again in a process of its own, which is killed at the end."""
    child = subprocess.Popen([sys.executable, "-c", JOIN, place.url], stdout=subprocess.PIPE)
    assert child.stdout is not None
    try:
        yield child
    finally:
        child.kill()
        child.wait(30)
        child.stdout.close()


def check_joined_once(place: Place) -> None:
    tables = SurveyWriter(place, "sim", Known())
    put(tables, *(record(n) for n in range(BATCH)))
    with ExitStack() as exits:
        one, other = (exits.enter_context(joining(place)) for _ in range(2))
        for child in (one, other):
            assert child.stdout is not None
            child.stdout.readline()
        for turn in range(1, ROUNDS):
            put(tables, *(record(n) for n in range(turn * BATCH, (turn + 1) * BATCH)))
            if turn == ROUNDS // 2:
                other.kill()
                exits.enter_context(joining(place))
        assert one.poll() is None
    wanted = [*range(ROUNDS * BATCH)]
    for kind, times in ((PACKETS, 1), (ALERTS, 1), (INDEX, 3)):
        found = Table(place, "sim", kind).refreshed()
        assert found is not None
        assert sorted(found.to_pyarrow_table(columns=["offset"])["offset"].to_pylist()) == sorted(
            wanted * times
        )
    left = Table(place, "sim", PACKETS)
    left.compact()
    assert len(left.refreshed().file_uris()) < ROUNDS


def test_on_a_disk(tmp_path: Path) -> None:
    check_joined_once(Place(tmp_path))


@pytest.mark.s3
def test_in_a_bucket(bucket: Place) -> None:
    check_joined_once(bucket)
