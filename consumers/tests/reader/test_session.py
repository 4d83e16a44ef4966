"""One by one, in batches, with `async for`: on librdkafka's own broker."""

import asyncio
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from nightwire.consumers import AlertReader, BadRecord, ReceivedAlert
from nightwire.schemas import RegistryAwayError

Encode = Callable[..., bytes]
Write = Callable[..., None]

WAIT = 60.0
"""Longest wait for an alert that must come. [s]"""

UNKNOWN = b"\x00\x00\x00\x04\x4cbody"
"""A message of schema 1100, which no registry is there to tell of."""

numbers = itertools.count()


def ids(alerts: Sequence[ReceivedAlert]) -> list[int]:
    return [one.alert["diaSourceId"] for one in alerts]


@pytest.fixture
def ten(bootstrap: str, encode: Encode, write: Write) -> str:
    """Return a topic with alerts 0 to 9 in one of its partitions."""
    topic = f"streams.{os.getpid()}.{next(numbers)}"
    write(bootstrap, topic, [encode(number) for number in range(10)], partition=0)
    return topic


@pytest.fixture
def read(bootstrap: str, ten: str) -> Callable[..., AlertReader]:
    """Return a function that makes a reader of ten alerts."""

    def make(**how: Any) -> AlertReader:
        return AlertReader(ten, bootstrap=bootstrap, **({"follow": False, "timeout": WAIT} | how))

    return make


@pytest.mark.slow
@pytest.mark.parametrize(("size", "sizes"), [(1, [1] * 10), (4, [4, 4, 2]), (10, [10]), (256, [10])])
def test_batches_hold_at_most_so_many_and_end_with_what_is_left(
    read: Callable[..., AlertReader], size: int, sizes: list[int]
) -> None:
    with read() as reader:
        batches = list(reader.batches(size=size))
    assert [len(batch) for batch in batches] == sizes
    assert ids([one for batch in batches for one in batch]) == list(range(10))
    assert reader.count == 10


def test_a_batch_that_is_not_full_comes_when_its_time_is_over(
    read: Callable[..., AlertReader], ten: str, bootstrap: str, encode: Encode, write: Write
) -> None:
    with read(follow=True, start="beginning", limit=11) as reader:
        batches = reader.batches(size=256, wait=0.1)
        first = next(batches)
        write(bootstrap, ten, [encode(10)], partition=1)
        rest = [one for batch in batches for one in batch]
        assert sorted(ids(first + rest)) == list(range(11))


def test_a_limit_is_never_passed(read: Callable[..., AlertReader]) -> None:
    with read(limit=7) as reader:
        assert [len(batch) for batch in reader.batches(size=4)] == [4, 3]


def test_a_batch_of_nothing_is_refused(read: Callable[..., AlertReader]) -> None:
    with pytest.raises(ValueError, match="size=0: ask for at least one"):
        read().batches(size=0)


def test_bad_records_are_reported_and_the_good_ones_come(
    read: Callable[..., AlertReader], ten: str, bootstrap: str, encode: Encode, write: Write
) -> None:
    bad: list[BadRecord] = []
    write(bootstrap, ten, [b"garbage", encode(11), b"Obj\x01"], partition=0)
    with read(on_bad=bad.append) as reader:
        assert ids([one for batch in reader.batches(size=5) for one in batch]) == [*range(10), 11]
    assert [one.offset for one in bad] == [10, 12]
    assert reader.undecodable == 2


def test_what_waits_for_its_schema_ends_a_batch_and_is_not_skipped(
    read: Callable[..., AlertReader], ten: str, bootstrap: str, encode: Encode, write: Write
) -> None:
    write(bootstrap, ten, [UNKNOWN, encode(11)], partition=0)
    with read() as reader:
        batches = reader.batches()
        assert ids(next(batches)) == list(range(10))
        for _ in range(2):  # whoever goes on after the error meets it again
            with pytest.raises(RegistryAwayError, match=rf"{ten}\[0\]@10 waits for its schema"):
                next(batches)


@pytest.mark.slow
def test_duplicates_are_left_out_by_place_and_by_id(
    bootstrap: str, encode: Encode, write: Write, read: Callable[..., AlertReader], ten: str
) -> None:
    place = [("survey", b"sim"), ("topic", b"alerts.sim"), ("partition", b"0"), ("offset", b"7")]
    write(bootstrap, ten, [encode(20), encode(20)], partition=0, headers=place)
    write(bootstrap, ten, [encode(20)], partition=0)
    for dedup, expected in ((None, [20, 20, 20]), ("offset", [20, 20]), ("alert", [20])):
        with read(dedup=dedup) as reader:
            assert ids(list(reader)) == [*range(10), *expected]
        assert reader.duplicates == 3 - len(expected)
        with read(dedup=dedup) as reader:
            assert ids([one for batch in reader.batches(size=11) for one in batch]) == [
                *range(10),
                *expected,
            ]


def test_one_by_one_and_batches_take_turns(read: Callable[..., AlertReader]) -> None:
    with read() as reader:
        assert ids([next(reader), next(reader)]) == [0, 1]
        assert ids(next(reader.batches(size=3))) == [2, 3, 4]
        assert ids(list(reader)) == [5, 6, 7, 8, 9]


# Async


async def test_async_for_reads_alerts_and_batches(read: Callable[..., AlertReader]) -> None:
    async with read() as one_by_one, read() as in_batches:
        alerts = [one async for one in one_by_one]
        batches = [batch async for batch in in_batches.batches(size=4)]
    assert (ids(alerts), [len(batch) for batch in batches]) == (list(range(10)), [4, 4, 2])


async def test_the_event_loop_goes_on_while_a_reader_waits(
    read: Callable[..., AlertReader], ten: str, bootstrap: str, encode: Encode, write: Write
) -> None:
    async with read(follow=True, start="live") as reader:
        waiting = asyncio.ensure_future(anext(reader))
        await asyncio.sleep(0)
        write(bootstrap, ten, [encode(10)], partition=2)  # from the loop's own thread
        assert int((await waiting).alert["diaSourceId"]) == 10


@pytest.mark.slow
async def test_what_comes_for_somebody_who_gave_up_comes_with_the_next_call(
    read: Callable[..., AlertReader], ten: str, bootstrap: str, encode: Encode, write: Write
) -> None:
    async with read(follow=True, start="beginning") as reader:
        seen = [await anext(reader) for _ in range(10)]
        waiting = asyncio.ensure_future(anext(reader))
        await asyncio.sleep(0)
        waiting.cancel()
        write(bootstrap, ten, [encode(10), encode(11)], partition=0)
        seen += [await anext(reader), (await anext(reader.batches()))[0]]
        assert ids(seen) == list(range(12))


def test_a_condition_that_others_cannot_be_told_is_judged_all_the_same(
    read: Callable[..., AlertReader],
) -> None:
    with read(where="diaSourceId > 7 OR band = '\udcff'", survey="sim", announce=True) as reader:
        assert ids([*reader]) == [8, 9]


def test_what_is_done_is_committed_before_others_are_told(
    read: Callable[..., AlertReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = list[str]()

    def note(part: Any, name: str) -> None:
        leave = part.close

        def close() -> None:
            told.append(name)
            leave()

        monkeypatch.setattr(part, "close", close)

    reader = read(survey="sim", announce=True).open()
    connection = reader._session.open()
    note(connection.registrar, "registrar")
    note(connection.loop.source, "source")
    reader.close()
    assert told == ["source", "registrar"]
