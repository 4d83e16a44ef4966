"""Planning: which topics a batch reads, and from where."""

from pathlib import Path
from typing import Any

import pytest

from nightwire.core.kafka import Writer, producer
from nightwire.filters.decision.engine_state import EngineState
from nightwire.filters.engine.planner import Planner
from nightwire.filters.model.offsets import Offset, OffsetRange, drained, positions, to_offset
from nightwire.schemas import records

BRIGHT = "filter.ann.bright"


class Desk:
    """Writes alerts, what passed, and filters; plans batches."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap, self.folder = bootstrap, folder
        self.writer = Writer(producer(bootstrap))
        self.write("visits", 1)  # makes the topic
        self.ask(live=False)
        self.start: Offset = to_offset({}, 0)
        self.restart()

    def restart(self) -> None:
        """Make a new planner, as a new process does."""
        self.planner = Planner(self.bootstrap, EngineState(self.folder))

    def write(self, topic: str, count: int) -> None:
        """Write so many records."""
        for _ in range(count):
            self.writer.write(topic, b"x", partition=0)
        self.writer.flush()

    def ask(self, *sources: str, live: bool = True) -> None:
        """Make a filter of these sources live, or end it."""
        record = records.FILTER.encode({**RED, "live": live, "sources": list(sources)})
        for key in (b"bob/red/1", b"bob/red"):
            self.writer.write("filters", record, key=key, partition=0)
        self.writer.flush()

    def batch(self) -> tuple[list[OffsetRange], frozenset[str]]:
        """Plan a batch; return its ranges, and what of them that passed filters is read."""
        end = self.planner.latest(self.start, None)
        before, self.start = self.start, end
        return self.planner.work(before, end)


RED: dict[str, Any] = {
    "owner": "bob", "name": "red", "version": 1, "survey": "*", "language": "python", "fields": [],
    "source": "def keep(alert): return 1", "entry": "keep", "cap": 20, "choice": "first", "output": "",
    "program": "", "remarks": [], "suspended": "", "submitted": 0,
}  # fmt: skip


@pytest.fixture
def desk(bootstrap: str, tmp_path: Path) -> Desk:
    """Return a desk."""
    return Desk(bootstrap, tmp_path)


def mine(work: list[OffsetRange], first: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Return the ranges by topic, counted from where the test began: the cluster is shared."""
    return {
        one.topic: (one.first - first.get(one.topic, 0), one.end - first.get(one.topic, 0)) for one in work
    }


@pytest.mark.slow
def test_a_chain_begins_with_what_comes_after_its_first_batch(desk: Desk) -> None:
    desk.write(BRIGHT, 5)
    desk.write("alerts.sim", 1)
    desk.batch()
    assert BRIGHT not in desk.start  # nobody asked for it
    first = {topic: end for (topic, part), end in positions(desk.start).items() if part == 0}

    desk.ask(BRIGHT)
    desk.write("alerts.sim", 1)
    work, read = desk.batch()
    assert (mine(work, first), read) == ({"alerts.sim": (0, 1)}, frozenset())
    first[BRIGHT] = positions(desk.start)[BRIGHT, 0]

    desk.write(BRIGHT, 3)  # what passed in that batch makes one of its own
    desk.restart()
    work, read = desk.batch()
    assert (mine(work, first), read) == ({BRIGHT: (0, 3)}, frozenset([BRIGHT]))
    assert drained(desk.start)

    desk.ask(BRIGHT, live=False)
    desk.write(BRIGHT, 2)
    before = desk.start
    assert desk.planner.latest(before, None) == before  # of that alone there is no batch
    desk.write("alerts.sim", 1)
    work, read = desk.batch()
    # passed over
    assert (mine(work, first), read) == ({"alerts.sim": (1, 2), BRIGHT: (3, 5)}, frozenset())

    desk.write(BRIGHT, 1)
    desk.ask(BRIGHT)
    desk.write("alerts.sim", 1)
    assert desk.batch()[1] == frozenset()  # came before its reader did
    desk.write(BRIGHT, 1)
    work, read = desk.batch()
    assert (mine(work, first), read) == ({BRIGHT: (6, 7)}, frozenset([BRIGHT]))
