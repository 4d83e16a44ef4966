"""Records out of an event loop, on librdkafka's own cluster."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from nightwire.core.kafka import DeliveryError, producer, read_to_end
from nightwire.gateway.eventlog.loop_producer import LoopProducer

pytestmark = pytest.mark.slow

Use = Callable[[LoopProducer], Awaitable[None]]


def run(bootstrap: str, use: Use, **overrides: object) -> int:
    """Use a producer; return how many records it could not write."""

    async def main() -> int:
        one = LoopProducer(producer(bootstrap, linger_ms=1, **overrides), asyncio.get_running_loop())
        try:
            await use(one)
        finally:
            missing = await asyncio.to_thread(one.close, 10.0)
        return missing

    return asyncio.run(main())


async def write(one: LoopProducer, value: bytes, key: bytes = b"k") -> DeliveryError | None:
    """Write one record; return why Kafka did not take it, or None."""
    outcome: asyncio.Future[DeliveryError | None] = asyncio.get_running_loop().create_future()
    one.begin("events", value, key=key, headers=[("n", b"1")], acknowledged=outcome.set_result)
    return await outcome


def stored(bootstrap: str) -> int:
    """Return how many records there are."""
    return sum(1 for _ in read_to_end(bootstrap, ["events"]))


def test_each_record_is_acknowledged_once_it_is_there_however_many_come_at_once(bootstrap: str) -> None:
    async def use(one: LoopProducer) -> None:
        written = await asyncio.to_thread(stored, bootstrap)
        for many in (1, 500, 1, 2):
            outcomes = await asyncio.gather(*(write(one, b"x" * 100, b"%d" % n) for n in range(many)))
            written += many
            assert outcomes == [None] * many
            assert await asyncio.to_thread(stored, bootstrap) == written

    assert run(bootstrap, use) == 0


def test_records_wait_while_librdkafka_has_no_room_and_all_arrive(bootstrap: str) -> None:
    async def use(one: LoopProducer) -> None:
        assert await asyncio.gather(*(write(one, b"x" * 1000) for _ in range(300))) == [None] * 300

    assert run(bootstrap, use, queue_buffering_max_messages=20) == 0


def test_one_that_is_too_large_fails_alone(bootstrap: str) -> None:
    async def use(one: LoopProducer) -> None:
        good, bad, last = await asyncio.gather(*(write(one, b"x" * size) for size in (10, 5_000_000, 10)))
        assert (good, last) == (None, None)
        assert "too large" in str(bad)

    assert run(bootstrap, use) == 0


def test_a_report_that_fails_takes_no_other_along(bootstrap: str) -> None:
    async def use(one: LoopProducer) -> None:
        def fail(_: DeliveryError | None) -> None:
            raise ValueError

        failed = list[object]()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
        one.begin("events", b"x", key=b"k", headers=[], acknowledged=fail)
        assert await asyncio.gather(*(write(one, b"x") for _ in range(9))) == [None] * 9
        assert len(failed) == 1

    assert run(bootstrap, use) == 0


def test_a_record_waits_for_those_under_way_and_not_when_it_comes_alone(bootstrap: str) -> None:
    async def use(one: LoopProducer) -> None:
        for _ in range(3):
            acknowledged = list[DeliveryError | None]()
            one.begin("events", b"x", key=b"k", headers=[], acknowledged=acknowledged.append)
            await turns(2)
            assert one.waiting == 0
            for number in range(1, 10):
                one.begin("events", b"x", key=b"k", headers=[], acknowledged=acknowledged.append)
                assert one.waiting == number
            while len(acknowledged) < 10:
                await asyncio.sleep(0.001)
            assert one.waiting == 0

    assert run(bootstrap, use) == 0


async def turns(count: int) -> None:
    """Let the loop turn so often."""
    for _ in range(count):
        await asyncio.sleep(0)
