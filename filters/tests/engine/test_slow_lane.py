"""A slow lane: where its batches end, what it leaves out, whose turn it is.

librdkafka's mock cluster.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from nightwire.core.accounting import Account, read_accounts
from nightwire.core.kafka import Writer, producer, read_to_end, watermarks
from nightwire.filters.decision.engine_state import EngineState, LocalCheckpoint
from nightwire.filters.decision.quota import VisitQuota
from nightwire.filters.decision.slow_lanes import LaneChange, SlowLanes
from nightwire.filters.engine.settings import EngineSettings
from nightwire.filters.engine.slow_lane_process import (
    LaneBatch,
    LaneLag,
    PauseBudget,
    QuickClock,
    SlowLaneWorker,
)
from nightwire.filters.model import filter_set
from nightwire.filters.model.live_filter import SLOW, LiveFilter
from nightwire.filters.model.offsets import to_offset
from nightwire.filters.reading.fetch import range_consumer
from nightwire.schemas.topics import FILTERS, VISITS, filter_topic, overflow

NOWHERE = "http://127.0.0.1:9"
TOPIC = "alerts.sim"
DEAR = LiveFilter(
    *("ann", "dear", 1, "sim", "def keep(alert):\n    return alert.id % 2 == 0", "keep"), cap=30, lane=SLOW
)


@dataclass
class Lanes:
    """A hundred alerts, of which the quick lane has judged some, and a process of slow lanes."""

    bootstrap: str
    folder: Path
    encode: Callable[..., bytes]
    told: list[LaneBatch | LaneLag] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.writer = Writer(producer(self.bootstrap))
        for topic in (FILTERS, VISITS, "accounts"):
            self.writer.write(topic, None, key=b"none", partition=0)  # makes the topic
        for one in (DEAR, replace(DEAR, owner="bob")):
            for topic in (filter_topic(one.owner, one.name), overflow(one.owner, one.name)):
                self.writer.write(topic, None, key=b"none", partition=0)
        self.writer.write(TOPIC, b"x", partition=0)
        self.writer.flush()
        self.first = watermarks(range_consumer(self.bootstrap), TOPIC, 0)[1]
        for number in range(1, 101):
            self.writer.write(TOPIC, self.encode(number), partition=0)
        self.writer.flush()
        self.quick = EngineState(self.folder, "light")
        self.jobs = SlowLanes(self.folder)
        self.batch = 0
        self.restart()

    def restart(self) -> None:
        """Make a new process."""
        settings = EngineSettings(self.bootstrap, NOWHERE, self.folder, sandbox="none", most_behind=60)
        self.worker = SlowLaneWorker(settings, self.quick, self.told.append)

    def quick_batch(self, end: int, *, at: int) -> None:
        """Let the quick lane be at *end*, counted from the first alert, planned *at*. [ms]"""
        offset = to_offset({(TOPIC, 0): self.first + end}, 1, at=at)
        LocalCheckpoint(self.quick).plan(self.batch, offset)
        LocalCheckpoint(self.quick).commit(self.batch)
        self.batch += 1

    def change(self, version: int, at: int, *filters: LiveFilter, owner: str = "ann") -> None:
        """Let an owner's slow filters be these from an offset on."""
        self.quick.keep_filters(version, filter_set.dump(filters))
        position = {(TOPIC, 0): self.first + at}
        names = tuple(one.id for one in filters)
        self.jobs.change(owner, LaneChange(version, 1_000, version, position, names))

    def run(self) -> list[tuple[int, int]]:
        """Do all that there is to do; return the ranges that were judged."""
        before = len(self.told)
        while self.worker.round():
            pass
        batches = [one for one in self.told[before:] if isinstance(one, LaneBatch)]
        ranges = [count.range for one in batches for count in one.decision.counts]
        return [(one.first - self.first, one.end - self.first) for one in ranges]

    def accounts(self, lane: str) -> list[Account]:
        """Return a lane's accounts in this test's range."""
        found = read_accounts(self.bootstrap)
        return [one for one in found if f"/{lane}/" in one.source and one.first >= self.first]

    def sent(self, owner: str) -> list[int]:
        """Return the numbers of the alerts that were sent, from this test's."""
        headers = [dict(one.headers() or ()) for one in read_to_end(self.bootstrap, [f"filter.{owner}.dear"])]
        return sorted(int(one["alert"]) for one in headers if one and int(one["offset"]) >= self.first)


@pytest.fixture
def lanes(bootstrap: str, tmp_path: Path, encode: Callable[..., bytes]) -> Lanes:
    """Return the lanes."""
    return Lanes(bootstrap, tmp_path, encode)


def test_it_follows_the_quick_lane_and_ends_where_that_takes_its_filters(lanes: Lanes) -> None:
    lanes.quick_batch(10, at=1_000)
    lanes.change(1, 10, DEAR)
    assert lanes.run() == []  # never before the quick lane
    lanes.quick_batch(40, at=2_000)
    assert lanes.run() == [(10, 40)]
    lanes.quick_batch(90, at=3_000)
    lanes.change(2, 60, replace(DEAR, version=2))
    assert lanes.run() == [(40, 60), (60, 90)]  # a change is the end of a batch
    assert [one.decision.versions for one in lanes.told if isinstance(one, LaneBatch)] == [
        *[[DEAR.id]] * 2,
        [("ann/dear", 2)],
    ]
    lanes.change(3, 100)
    lanes.quick_batch(100, at=4_000)
    lanes.restart()
    assert lanes.run() == [(90, 100)]
    assert lanes.jobs.names() == []
    found = lanes.accounts("ann.1000")
    assert [(one.first - lanes.first, one.last - lanes.first) for one in found] == [
        (10, 39), (40, 59), (60, 89), (90, 99),
    ]  # fmt: skip
    assert {one.stage for one in found} == {"filters-slow"}
    assert lanes.sent("ann") == [*range(12, 72, 2)]  # thirty of the visit


def test_a_quota_comes_along_from_the_quick_lane(lanes: Lanes) -> None:
    taken = {("sim", 7): VisitQuota(1, 1, 0, {"ann/dear": frozenset(f"a{one}" for one in range(28))})}
    lanes.quick_batch(100, at=1_000)
    lanes.quick.keep_filters(1, filter_set.dump([DEAR]))
    start = {(TOPIC, 0): lanes.first}
    lanes.jobs.change("ann", LaneChange(1, 1_000, 1, start, (DEAR.id,), taken))
    lanes.run()
    assert lanes.sent("ann") == [2, 4]


def test_a_batch_that_was_decided_is_sent_again_by_the_next_process(lanes: Lanes) -> None:
    lanes.quick_batch(100, at=1_000)
    lanes.change(1, 0, DEAR)
    lanes.run()
    state = lanes.jobs.state("ann.1000")
    for commit in (state.checkpoint / "commits").iterdir():
        commit.unlink()  # it died before that
    lanes.restart()
    lanes.run()
    assert lanes.sent("ann") == sorted([*range(2, 62, 2)] * 2)
    assert [one.again for one in lanes.told if isinstance(one, LaneBatch)] == [False, True]
    assert sum(one.delivered for one in lanes.accounts("ann.1000")) == 30


def test_who_had_less_time_is_next_and_one_that_fails_holds_nobody_up(lanes: Lanes) -> None:
    bob = replace(DEAR, owner="bob")
    lanes.quick_batch(100, at=1_000)
    lanes.quick.keep_filters(1, filter_set.dump([DEAR, bob]))
    for one in (DEAR, bob):
        start = {(TOPIC, 0): lanes.first}
        lanes.jobs.change(one.owner, LaneChange(1, 1_000, 1, start, (one.id,)))
    found = lanes.worker.lanes()
    found["ann.1000"].used = 100.0
    lanes.worker.round()
    told = [one.lane for one in lanes.told if isinstance(one, LaneBatch)]
    assert told == ["bob.1000"]
    (lanes.jobs.state("ann.1000").checkpoint / "offsets").write_text("in the way")
    lanes.worker.round()
    assert lanes.worker.round() is False  # it rests, and is tried again later
    (lanes.jobs.state("ann.1000").checkpoint / "offsets").unlink()


def test_what_is_too_old_is_left_out_and_counted_so(lanes: Lanes) -> None:
    lanes.quick_batch(10, at=1_000)
    lanes.change(1, 0, DEAR)
    lanes.worker.round()  # it knows where the quick lane was when
    lanes.run()
    lanes.quick_batch(50, at=2_000)
    lanes.worker.clock = QuickClock(longest=1e9)  # it was there so long ago
    assert lanes.run() == [(10, 50)]
    (last,) = [one for one in lanes.accounts("ann.1000") if one.first == lanes.first + 10]
    assert (last.read, last.rejected) == (40, {"too-old-for-the-slow-lane": 40})
    batch = [one for one in lanes.told if isinstance(one, LaneBatch)][-1]
    assert [one.unjudged for one in batch.decision.counts] == [40]
    assert lanes.sent("ann") == [2, 4, 6, 8, 10]


def test_the_clock_tells_how_long_ago_the_quick_lane_was_there() -> None:
    clock, part = QuickClock(longest=100.0), (TOPIC, 0)
    assert clock.seconds_behind({part: 0}, 99_000) == 0
    clock.note(10_000, {part: 50})
    clock.note(10_500, {part: 60})  # within a second
    clock.note(20_000, {part: 90})
    assert clock.seconds_behind({part: 90}, 30_000) == 0
    assert clock.seconds_behind({part: 89}, 30_000) == 10
    assert clock.seconds_behind({part: 3}, 30_000) == 20
    clock.note(30_000, {part: 90})
    assert clock.seconds_behind({}, 40_000) == 0
    clock.note(500_000, {part: 91})  # what came before is forgotten
    assert clock.seconds_behind({part: 3}, 500_000) == 0
    fresh = QuickClock(longest=100.0, since=70_000)
    fresh.note(10_000, {part: 50})  # before it was there
    assert fresh.seconds_behind({part: 3}, 75_000) == 5


def test_a_lane_passes_over_topics_that_its_filters_do_not_read(lanes: Lanes) -> None:
    """Where its filters change, and where it ends, however far those topics have got."""

    def position(at: int, passed: int) -> dict[tuple[str, int], int]:
        return {(TOPIC, 0): lanes.first + at, (filter_topic("ann", "other"), 0): passed}

    def quick_batch(at: int, passed: int) -> None:
        offset = to_offset(position(at, passed), 1, at=1_000 * (lanes.batch + 1))
        LocalCheckpoint(lanes.quick).plan(lanes.batch, offset)
        LocalCheckpoint(lanes.quick).commit(lanes.batch)
        lanes.batch += 1

    def change(version: int, at: Mapping[tuple[str, int], int], *filters: LiveFilter) -> None:
        lanes.quick.keep_filters(version, filter_set.dump(filters))
        lanes.jobs.change("ann", LaneChange(version, 1_000, version, at, tuple(one.id for one in filters)))

    change(1, position(0, 0), DEAR)
    quick_batch(40, 7)
    assert lanes.run() == [(0, 40)]
    quick_batch(40, 9)
    assert lanes.run() == [], "nothing to read is no batch"
    change(2, position(40, 9), replace(DEAR, version=2))
    quick_batch(60, 11)
    assert lanes.run() == [(40, 60)]
    change(3, position(60, 11))
    quick_batch(100, 12)
    assert lanes.run() == []
    assert lanes.jobs.names() == []


def test_the_slow_lanes_wait_while_the_quick_one_is_at_work(lanes: Lanes) -> None:
    lanes.change(1, 0, DEAR)
    lanes.quick_batch(60, at=1_000)
    LocalCheckpoint(lanes.quick).plan(lanes.batch, to_offset({(TOPIC, 0): lanes.first + 100}, 1, at=2_000))
    assert lanes.run() == []
    lanes.quick_batch(100, at=2_000)
    lanes.worker._pauses = PauseBudget()  # its quiet moment is over
    assert lanes.run()[-1][1] == 100


def test_a_quick_lane_that_never_rests_leaves_the_slow_ones_half_of_the_time() -> None:
    pauses, waited = PauseBudget(most=10.0), list[bool]()
    for tenth in range(4000):
        waited.append(pauses.pause(tenth / 10, busy=True))
    assert all(waited[:90])
    assert 0.4 < sum(waited[200:]) / len(waited[200:]) < 0.6


def test_the_quick_lane_rests_when_it_had_no_batch_for_a_moment() -> None:
    pauses = PauseBudget()
    busy = {100.0: True, 100.1: False, 100.2: True, 100.3: False, 100.6: False, 100.8: False}
    assert [pauses.pause(at, busy=one) for at, one in busy.items()] == [True] * 5 + [False]
