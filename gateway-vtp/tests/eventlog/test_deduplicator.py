"""Which events are written, and who is told what became of them."""

import asyncio
from collections.abc import Callable

import pytest

from nightwire.core.kafka import DeliveryError, Headers
from nightwire.gateway.eventlog import deduplicator
from nightwire.gateway.eventlog.deduplicator import Deduplicator
from nightwire.gateway.eventlog.loop_producer import Acknowledged
from nightwire.gateway.voevent.packet import Packet
from nightwire.gateway.voevent.validation import author_packet
from tests._voevents import packet

LOST = DeliveryError("Kafka is away")


class Log:
    """Takes records, and knows those that it is told to know."""

    def __init__(self) -> None:
        self.written: list[tuple[bytes, Acknowledged]] = []
        self.known: set[bytes] = set()

    def knows(self, digest: bytes) -> bool:
        return digest in self.known

    def begin(
        self, topic: str, value: bytes, *, key: bytes, headers: Headers, acknowledged: Acknowledged
    ) -> None:
        self.written.append((key, acknowledged))


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def events(log: Log) -> Deduplicator:
    return Deduplicator(log, log, "here")  # type: ignore[arg-type]


@pytest.fixture
def event() -> Callable[[int], Packet]:
    return lambda number: author_packet(packet(f"ivo://a.b/c#{number}"))


Events = Callable[[int], Packet]
Outcomes = list[bool | DeliveryError]


def test_copies_wait_for_the_first_and_are_told_that_it_was_there(
    log: Log, events: Deduplicator, event: Events
) -> None:
    first, copy, late = Outcomes(), Outcomes(), Outcomes()
    events.begin(event(1), "author", first.append)
    events.begin(event(1), "author", copy.append)
    assert (first, copy, len(log.written)) == ([], [], 1)
    log.written[0][1](None)
    events.begin(event(1), "author", late.append)
    assert (first, copy, late, len(log.written)) == ([True], [False], [False], 1)


def test_what_kafka_did_not_take_may_come_again(log: Log, events: Deduplicator, event: Events) -> None:
    outcomes = Outcomes()
    events.begin(event(1), "author", outcomes.append)
    events.begin(event(1), "author", outcomes.append)
    log.written[0][1](LOST)
    events.begin(event(1), "author", outcomes.append)
    log.written[1][1](None)
    assert outcomes == [LOST, LOST, True]


def test_an_event_is_pending_until_it_is_in_the_index(log: Log, events: Deduplicator, event: Events) -> None:
    events.begin(event(1), "author", lambda _: None)
    log.written[0][1](None)
    assert events.pending == 1
    log.known.add(event(1).hash)
    events.indexed([event(1).hash])
    assert events.pending == 0
    outcomes = Outcomes()
    events.begin(event(1), "author", outcomes.append)
    assert (outcomes, len(log.written)) == ([False], 1)


def test_one_that_is_in_the_index_before_it_is_acknowledged_is_no_longer_pending(
    log: Log, events: Deduplicator, event: Events
) -> None:
    outcomes = Outcomes()
    events.begin(event(1), "author", outcomes.append)
    events.indexed([event(1).hash])
    log.written[0][1](None)
    assert (outcomes, events.pending) == ([True], 0)


@pytest.mark.parametrize("error", [None, LOST])
def test_events_wait_where_too_many_are_pending(
    log: Log,
    events: Deduplicator,
    event: Events,
    error: DeliveryError | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deduplicator, "MAX_PENDING", 2)
    outcomes = Outcomes()
    for number in range(4):
        events.begin(event(number), "author", outcomes.append)
    assert len(log.written) == 2
    log.written[0][1](error)
    if error is None:
        events.indexed([event(0).hash])
    assert len(log.written) == 3
    for _, acknowledged in log.written[1:]:
        acknowledged(None)
    events.indexed([event(number).hash for number in range(3)])
    log.written[3][1](None)
    assert outcomes == [error or True, True, True, True]


async def test_settled_waits_for_what_is_on_its_way(log: Log, events: Deduplicator, event: Events) -> None:
    for number in range(3):
        events.begin(event(number), "author", lambda _: None)
    log.written[0][1](None)
    settled = asyncio.ensure_future(events.settled())
    await asyncio.sleep(0)
    log.written[1][1](LOST)
    await asyncio.sleep(0)
    assert not settled.done()
    log.written[2][1](None)
    await settled


async def test_whoever_leaves_does_not_stop_an_event(log: Log, events: Deduplicator, event: Events) -> None:
    failed = list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
    leaver = asyncio.ensure_future(events.admit(event(1), "broker"))
    stayer = asyncio.ensure_future(events.admit(event(1), "broker"))
    await asyncio.sleep(0)
    leaver.cancel()
    await asyncio.sleep(0)
    log.written[0][1](None)
    assert (await stayer, failed) == (False, [])
    again = asyncio.ensure_future(events.admit(event(2), "broker"))
    await asyncio.sleep(0)
    log.written[1][1](LOST)
    with pytest.raises(DeliveryError, match="away"):
        await again
