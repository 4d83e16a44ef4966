"""Visits leave by their schedule: what is late is counted, and nothing waits for itself."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nightwire.core.kafka import Writer
from nightwire.producer import AlertWriter
from nightwire.producer.simulation.simulate import Clocks, Plan, PlayedVisit, Prefetched, Simulation
from nightwire.producer.visits.counts import VisitCounts
from nightwire.producer.writing.visit_writer import EncodedAlert
from nightwire.schemas import SIM_ALERT_ID, Codec, survey

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class World:
    """Time that moves when somebody waits or works: a clock, a stop, a Kafka and a field of alerts.

    Args:
        making: What it takes to make an alert. [s]
        sending: What it takes to send one, by number of the alert. [s]
    """

    def __init__(self, *, making: float = 0.0, sending: Callable[[int], float] = lambda _n: 0.0) -> None:
        self.now, self.making, self.sending = 0.0, making, sending
        self.sent: list[tuple[float, bytes]] = []
        self.made: list[float] = []
        self.opened: list[tuple[int, datetime]] = []
        self.taken: set[int] = set()
        self.leave_at = float("inf")
        self.number, self.size = 0, 0

    def clocks(self) -> Clocks:
        """Return both clocks."""
        return Clocks(lambda: self.now, lambda: NOON + timedelta(seconds=self.now))

    def is_set(self) -> bool:
        """Return whether it is time to leave."""
        return self.now >= self.leave_at

    def wait(self, timeout: float) -> bool:
        """Wait."""
        self.now += timeout
        return self.is_set()

    def poll(self, timeout: float) -> int:
        """Wait for acknowledgements: there are none, they come at once."""
        self.now += timeout
        return 0

    def flush(self, _timeout: float) -> int:
        """Return how many are unacknowledged."""
        return 0

    def produce(self, topic: str, value: bytes, _key: bytes, *, on_delivery: Any, **_rest: Any) -> None:
        """Take a record."""
        if topic == "alerts.sim":
            self.now += self.sending(len(self.sent))
            self.sent.append((self.now, value))
        on_delivery(None, self)

    def partition(self) -> int:
        """Return where it lies."""
        return 0

    def offset(self) -> int:
        """Return where it lies."""
        return len(self.sent)

    def open(self, moment: datetime, number: int) -> None:
        """Begin a visit."""
        self.opened.append((number, moment))
        self.number = number

    def renumber(self, number: int) -> None:
        """Give it another number."""
        self.number = number

    def alerts(self) -> Iterator[EncodedAlert]:
        """Yield its alerts."""
        for n in range(self.size):
            self.now += self.making
            self.made.append(self.now)
            yield EncodedAlert(b"%d" % n, b"%d/%d" % (self.number, n))

    def claim(self, wanted: int, opened: datetime) -> VisitCounts:
        """Give the first number that is not taken."""
        while wanted in self.taken:
            wanted += 1
        self.taken.add(wanted)
        return VisitCounts("sim", wanted, opened)

    def advance(self, count: int = 1) -> None:
        """Count."""


def play(world: World, codec: Codec, plan: Plan) -> list[PlayedVisit]:
    """Return what was played of *plan*."""
    world.size = plan.alerts
    producer: Any = world
    writer = AlertWriter(producer, survey("sim"), codec, SIM_ALERT_ID)
    assert isinstance(writer.records, Writer)
    seen: list[float] = []
    simulation = Simulation(plan, world, writer, world, world.clocks(), world)
    played = list(simulation.play(world, observe=seen.append))
    assert len(seen) == len(world.sent)
    return played


def test_a_burst_leaves_when_it_is_ready(codec: Codec) -> None:
    world = World()
    played = play(world, codec, Plan(2, 3, 39.0, 0, ready=5.0))
    assert [when for when, _value in world.sent] == pytest.approx([5.0] * 3 + [44.0] * 3)
    assert [moment for _number, moment in world.opened] == [NOON, NOON + timedelta(seconds=39)]
    assert [one.lateness.greatest for one in played] == pytest.approx([0.0, 0.0], abs=1e-9)


def test_an_even_pace_spreads_the_alerts(codec: Codec) -> None:
    world = World()
    play(world, codec, Plan(1, 4, 40.0, 0, pace=0.1))
    assert [when for when, _value in world.sent] == pytest.approx([0.0, 10.0, 20.0, 30.0])


def test_a_slow_kafka_makes_alerts_late_by_their_schedule_and_the_schedule_stays(codec: Codec) -> None:
    world = World(sending=lambda n: 25.0 if n == 0 else 0.0)
    first, second, third = play(world, codec, Plan(3, 2, 10.0, 0, pace=1.0))
    assert [when for when, _value in world.sent] == pytest.approx([25.0, 25.0, 25.0, 25.0, 25.0, 25.0])
    assert (first.lateness.greatest, first.lateness.median) == pytest.approx((25.0, 24.5))
    assert (second.lateness.greatest, second.lateness.median) == pytest.approx((15.0, 14.5))
    assert (third.lateness.greatest, third.lateness.median) == pytest.approx((5.0, 4.5))


def test_the_next_visit_is_made_while_the_clock_waits_for_it(codec: Codec) -> None:
    world = World(making=2.0)
    played = play(world, codec, Plan(3, 4, 39.0, 0))
    assert world.made == pytest.approx([2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 49.0, 51.0, 53.0, 55.0])
    assert [when for when, _value in world.sent] == pytest.approx([8.0] * 4 + [47.0] * 4 + [86.0] * 4)
    assert [one.lateness.greatest for one in played] == pytest.approx([0.0] * 3, abs=1e-9)


def test_a_visit_whose_number_another_has_is_made_again_under_the_next(codec: Codec) -> None:
    world = World()
    world.taken = {2026030143200}
    (played,) = play(world, codec, Plan(1, 2, 39.0, 0))
    assert played.counts.visit == 2026030143201
    assert [value for _when, value in world.sent] == [b"2026030143201/0", b"2026030143201/1"]


def test_without_an_interval_a_visit_is_due_when_the_one_before_has_left(codec: Codec) -> None:
    world = World(sending=lambda _n: 1.0)
    played = play(world, codec, Plan(2, 2, 0.0, 0))
    assert [one.lateness.greatest for one in played] == pytest.approx([2.0, 2.0])
    assert [one.counts.visit for one in played] == [2026030143200, 2026030143202]


def test_a_visit_that_is_stopped_halfway_has_what_it_has(codec: Codec) -> None:
    world = World(sending=lambda _n: 1.0)
    world.leave_at = 3.0
    (played,) = play(world, codec, Plan(0, 10, 39.0, 0))
    assert (played.counts.offered, played.counts.acknowledged) == (3, 3)


def test_who_is_stopped_while_waiting_opens_no_visit(codec: Codec) -> None:
    world = World()
    world.leave_at = 10.0
    assert len(play(world, codec, Plan(0, 2, 39.0, 0))) == 1
    assert len(world.taken) == 1


def test_no_more_is_made_ahead_than_there_is_room_for() -> None:
    ahead = Prefetched((EncodedAlert(b"", b"%d" % n) for n in range(4)), limit=2)
    assert [ahead.make_one() for _turn in range(3)] == [True, True, False]
    assert [one.value for one in ahead] == [b"0", b"1", b"2", b"3"]
    assert not ahead.make_one()


def test_a_pace_that_takes_longer_than_the_interval_is_wrong_use() -> None:
    with pytest.raises(ValueError, match=r"1,000 alerts at 10 a second take 100 s, longer than .* 39 s"):
        Plan(0, 1000, 39.0, 0, pace=10.0)
    assert Plan(1, 1000, 39.0, 0, pace=10.0).pace == 10.0
