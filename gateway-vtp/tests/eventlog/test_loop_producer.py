"""Records out of an event loop, on librdkafka's own cluster."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from nightwire.core.kafka import DeliveryError, producer
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


def test_each_record_is_acknowledged_at_a_place_of_its_own_however_many_come_at_once(bootstrap: str) -> None:
    async def use(one: LoopProducer) -> None:
        for many in (1, 500, 1, 2):
            begun = [
                one.begin("events", b"x" * 100, key=b"%d" % n, headers=[("n", b"1")]) for n in range(many)
            ]
            places = await asyncio.gather(*begun)
            assert len(set(places)) == many

    assert run(bootstrap, use) == 0


def test_records_wait_while_librdkafka_has_no_room_and_all_arrive(bootstrap: str) -> None:
    async def use(one: LoopProducer) -> None:
        begun = [one.begin("events", b"x" * 1000, key=b"k", headers=[]) for _ in range(300)]
        assert len(set(await asyncio.gather(*begun))) == 300

    assert run(bootstrap, use, queue_buffering_max_messages=20) == 0


def test_one_that_is_too_large_fails_alone(bootstrap: str) -> None:
    async def use(one: LoopProducer) -> None:
        good, bad, last = (
            one.begin("events", b"x" * size, key=b"k", headers=[]) for size in (10, 5_000_000, 10)
        )
        with pytest.raises(DeliveryError, match="too large"):
            await bad
        await good
        await last

    assert run(bootstrap, use) == 0


def test_a_record_waits_for_those_under_way_and_not_when_it_comes_alone(bootstrap: str) -> None:
    async def use(one: LoopProducer) -> None:
        for _ in range(3):
            begun = [one.begin("events", b"x", key=b"k", headers=[])]
            assert one.waiting == 0
            begun += [one.begin("events", b"x", key=b"k", headers=[]) for _ in range(9)]
            assert one.waiting == 9
            await asyncio.gather(*begun)
            assert one.waiting == 0

    assert run(bootstrap, use) == 0
