"""Ladder, debt and link, by a clock that the test turns."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from nightwire.core.congestion import (
    BLOCK,
    FOLLOWS_HEADER,
    LEVEL_HEADER,
    Batch,
    Ladder,
    Level,
    Link,
    Owed,
    Reduction,
    Sent,
    place_of,
    ranges,
)
from nightwire.core.congestion.owed import RUNS
from nightwire.core.datagrams import worth_of
from nightwire.core.kafka import headers_of
from nightwire.filters.language import compile_python
from nightwire.schemas import (
    SIM_ALERT_ID,
    AlertDecoder,
    Codec,
    RegistryAwayError,
    SchemaRegistry,
    sim_alert_schema,
    wire,
)
from tests._alerts import empty

HERE, THERE = ("alerts.sim", 0), ("alerts.sim", 1)
CODEC, DECODER = Codec(sim_alert_schema()), AlertDecoder(SchemaRegistry(None))
STAMP = b"s" * 20_000


def alert(number: int, flux: float = 1.0) -> dict[str, Any]:
    found: dict[str, Any] = empty(sim_alert_schema())
    found["diaSourceId"] = number
    found["diaSource"] |= {"psfFlux": flux, "band": "r"}
    return found | {"cutoutScience": STAMP, "prvDiaSources": [found["diaSource"]] * 40}


def message(offset: int, value: bytes = b"", partition: int = 0, flux: float = 1.0) -> Message:
    value = value or wire.frame(SIM_ALERT_ID, CODEC.encode(alert(offset, flux)))
    return Message(topic="alerts.sim", partition=partition, offset=offset, value=value, timestamp=(1, 0))


def decoded(one: Message) -> dict[str, Any]:
    return DECODER.decode(one.value() or b"").alert


def test_ages_above_the_limit_go_down_rung_by_rung_and_small_ones_up() -> None:
    ladder = Ladder(limit=10.0)
    assert [ladder.see(11.0, now) for now in (0, 1, 5, 6, 10, 20)] == [1, 1, 2, 2, 3, 3]
    assert [ladder.see(1.0, now) for now in (21, 30, 31)] == [3, 3, 2]
    assert [ladder.see(age, now) for age, now in ((1, 32), (6, 40), (1, 41), (1, 50), (1, 51))] == [
        2,
        2,
        2,
        2,
        1,
    ]


def test_a_rung_that_was_wrong_is_tried_again_later() -> None:
    ladder, tries, now = Ladder(limit=1.0, level=Level.SAMPLE), [], 0.0
    while len(tries) < 5:
        now += 0.1
        before = ladder.level
        if ladder.see(0.0 if before is Level.SAMPLE else 2.0, now) < before:
            tries.append(now)
    first, *others = (later - before for before, later in pairwise(tries))
    assert 2 < first < 3
    assert all(4 < one < 5 for one in others)  # and not for ever later


@given(st.dictionaries(st.integers(0, 3 * BLOCK), st.sampled_from(Sent)), st.data())
def test_what_is_kept_comes_back(sent: dict[int, Sent], data: st.DataObject) -> None:
    owed, kept = Owed(), {}
    for offset, one in sent.items():
        owed.add(HERE, offset, one)
    kept.update(owed.changes())
    paid = data.draw(st.sets(st.sampled_from(sorted(sent) or [0])))
    for offset in paid:
        assert owed.pay(HERE, offset) == (offset in sent)
    kept.update(owed.changes())
    again = Owed()
    again.restore({block: held for block, held in kept.items() if held is not None})
    left = {(HERE, offset): one for offset, one in sorted(sent.items()) if offset not in paid}
    assert again.first(len(left) + 1) == owed.first(len(left) + 1) == left
    assert len(again) == len(left)
    assert [*again.changes()] == []


def test_a_partition_that_goes_is_forgotten_and_the_forgotten_past_is_named() -> None:
    owed = Owed()
    for offset in (3, 999, 1_000, 1_002):
        owed.add(HERE, offset, Sent.LITE)
        owed.add(THERE, offset, Sent.NOTHING)
    assert owed.drop(HERE, range(1_001)) == [3, 999, 1_000]
    owed.forget(THERE)
    assert [*owed.first(9)] == [(HERE, 1_002)]
    assert {block[0] for block, _ in owed.changes()} == {HERE}
    assert ranges([3, 4, 7]) == [range(3, 5), range(7, 8)]


def test_what_follows_at_once_is_named_shortly() -> None:
    owed = Owed()
    for offset in range(0, 3 * BLOCK, 2):
        owed.add(HERE, offset, Sent.LITE)
    assert len(owed.first(BLOCK)) == RUNS == len(ranges(offset for _, offset in owed.first(BLOCK)))


def test_a_kept_block_that_cannot_be_is_read_as_far_as_it_can() -> None:
    owed = Owed()
    owed.restore({(HERE, 0): b"\x07\x04" + b"\x01" * 2 * BLOCK})
    assert len(owed) == BLOCK - 1


def test_a_reduced_alert_is_read_by_its_own_schema() -> None:
    less = Reduction(DECODER)
    (stampless,) = less(Level.STAMPLESS, [message(1)])
    (lite,) = less(Level.LITE, [message(1)])
    assert decoded(stampless) == alert(1) | {"cutoutScience": None}
    assert decoded(lite) == alert(1) | {"cutoutScience": None, "prvDiaSources": None}


def container(schema: bytes, body: bytes) -> Message:
    value = wire.container_head(schema, b"x" * 16) + wire.container_block(body, b"x" * 16)
    return Message(topic="alerts.ztf", partition=0, offset=0, value=value, timestamp=(1, 0))


def test_a_container_stays_one() -> None:
    text = b'{"type": "record", "name": "a", "fields": [{"name": "candid", "type": "long"}, %s]}'
    stamp = b'{"name": "cutoutScience", "type": ["null", {"type": "record", "name": "c", "fields": [%s]}]}'
    one = container(text % (stamp % b'{"name": "stampData", "type": "bytes"}'), b"\x02" + b"\x02\x04ab")
    (less,) = Reduction(DECODER)(Level.STAMPLESS, [one])
    assert decoded(less) == {"candid": 1, "cutoutScience": None}


def test_the_brightest_come_first_or_by_another_attribute_and_the_unreadable_last() -> None:
    batch = [message(0, b"?"), *(message(1 + at, flux=flux) for at, flux in enumerate((5.0, 9.0, 7.0)))]
    assert [one.offset() for one in Reduction(DECODER)(Level.SAMPLE, batch)] == [2, 3, 1, 0]
    assert [one.offset() for one in Reduction(DECODER, "-magnitude")(Level.SAMPLE, batch)] == [1, 3, 2, 0]
    assert [*Reduction(DECODER)(Level.SAMPLE, batch)][-1] is batch[0]
    for asked, order in (
        ("flux < 8 AND id > 1", [3, 0, 2, 1]),
        (compile_python("def keep(alert):\n    return alert.flux < 8 and alert.id > 1"), [3, 0, 2, 1]),
        (compile_python("def keep(alert):\n    return -abs(alert.flux - 6.5)"), [0, 3, 1, 2]),
        (compile_python("def keep(alert):\n    return 1 / (alert.flux - 9)"), [0, 1, 3, 2]),
    ):
        worth = worth_of(asked, "sim", DECODER)
        assert [one.offset() for one in Reduction(DECODER, worth=worth)(Level.SAMPLE, batch)] == order


@pytest.mark.parametrize("rank", ["magnitude", "ra"])
def test_an_alert_with_something_else_where_a_number_was_comes_last(rank: str) -> None:
    schema = b'{"type": "record", "name": "a", "fields": [{"name": "candidate", "type": "string"}]}'
    batch = [container(schema, b"\x02a"), message(1)]
    assert [one.offset() for one in Reduction(DECODER, rank)(Level.SAMPLE, batch)] == [1, 0]


def test_a_sample_is_the_best_in_order_and_the_rest_is_owed() -> None:
    link = Link(Ladder(10.0, Level.SAMPLE), Reduction(DECODER))
    link.arrive([message(at, partition=at % 2, flux=float(at % 7)) for at in range(100)], 0.0)
    batch = link.choose(10, 1 << 20, 1.0)
    assert batch is not None
    assert [one.offset() for one in batch.messages] == sorted(at for at in range(100) if at % 7 == 6)[:10]
    assert batch.upto == {HERE: 99, THERE: 100}
    assert batch.became == {"reduced": 10, "skipped": 90}
    assert len(link.owed) == 100
    assert {headers_of(one)[LEVEL_HEADER] for one in batch.messages} == {b"lite"}


def test_a_batch_is_what_the_link_took_in_its_time() -> None:
    link, now = Link(Ladder(10.0), Reduction(DECODER)), 0.0
    sizes = []
    for _ in range(5):
        link.arrive([message(at, b"x" * 10_000) for at in range(100)], now)
        batch = link.choose(500, 1 << 20, now)
        assert batch is not None
        sizes.append(batch.size)
        took = batch.size / 50_000  # [byte/s]
        now += took
        link.delivered(batch, took, now)
        link.leave(HERE)
    assert sizes[0] > 60_000
    assert sizes[-1] == 50_000


@given(st.lists(st.tuples(st.integers(1, 30), st.floats(0.01, 30.0)), min_size=1, max_size=40))
def test_all_that_was_read_is_in_one_class_and_follows_whole_once(rounds: list[tuple[int, float]]) -> None:
    """Whatever the link does, and however levels swing."""
    link, now, at = Link(Ladder(1.0), thinned), 0.0, 0
    became, whole = Counter[str](), Counter[int]()

    def deliver(batch: Any, took: float) -> None:
        nonlocal now
        now += took
        link.delivered(batch, took, now)
        became.update(batch.became)
        whole.update(one.offset() for one in batch.messages if LEVEL_HEADER not in headers_of(one))

    for count, took in rounds:
        link.arrive([message(at + one, b"%d" % one * 2_000) for one in range(count)], now)
        at += count
        if (batch := link.choose(500, 1 << 20, now)) is not None:
            deliver(batch, took)
    while link.held or len(link.owed):
        now += 1.0
        live = link.choose(500, 1 << 20, now) or Batch(())
        wanted = link.wanted(500, 1 << 20, live)
        found = [message(offset, b"whole", where[1]) for where, offset in wanted]
        batch = link.following(wanted, found, live)
        said = [headers_of(one).get(FOLLOWS_HEADER, b"").decode() for one in batch.messages]
        assert said[: len(wanted)] == [one.name.lower() for one in wanted.values()]
        deliver(batch, 0.01)
    assert whole == Counter(range(at))
    assert became["full"] + became["reduced"] + became["skipped"] == at
    assert became["followed"] == became["reduced"] + became["skipped"]


def thinned(level: Level, batch: Sequence[Message]) -> list[Message]:
    """Return less of *batch*, by a handler of one's own: every second one, and half of each."""
    less = [
        Message(
            topic=one.topic(), partition=one.partition(), offset=one.offset(), value=(one.value() or b"")[::2]
        )
        for one in batch
    ]
    return less if level is Level.STAMPLESS else less[::2]


def test_where_the_handler_fails_all_waits_on() -> None:
    def failing(_level: Level, _batch: Sequence[Message]) -> list[Message]:
        raise RegistryAwayError("away")

    link = Link(Ladder(10.0, Level.LITE), failing)
    link.arrive([message(at) for at in range(3)], 0.0)
    with pytest.raises(RegistryAwayError):
        link.choose(10, 1 << 20, 1.0)
    link.ladder.level = Level.FULL
    batch = link.choose(10, 1 << 20, 1.0)
    assert batch is not None
    assert ([one.offset() for one in batch.messages], link.held) == ([0, 1, 2], 0)


def test_what_waits_counts_though_its_values_are_empty() -> None:
    link = Link(Ladder(10.0), Reduction(DECODER))
    more: Any = {"key": b"k" * 10_000, "headers": [("h", b"h" * 10_000)]}
    link.arrive([Message(topic="a", partition=at % 2, offset=at, value=None, **more) for at in range(4)], 0.0)
    assert link.held > 80_000
    link.leave(("a", 0))
    assert 40_000 < link.held < 80_000
    assert link.choose(1, 1 << 20, 0.0) is not None
    assert 20_000 < link.held < 40_000


def test_nothing_follows_while_less_is_sent_or_something_waits() -> None:
    link = Link(Ladder(10.0), Reduction(DECODER))
    link.owed.add(HERE, 5, Sent.NOTHING)
    assert link.wanted(10, 1 << 20) == {(HERE, 5): Sent.NOTHING}
    link.arrive([message(9)], 0.0)
    assert not link.wanted(10, 1 << 20)
    link.leave(HERE)
    link.ladder.level = Level.LITE
    assert not link.wanted(10, 1 << 20)


def test_while_the_stream_goes_on_alerts_follow_beside_it() -> None:
    link = Link(Ladder(10.0), Reduction(DECODER))
    for offset in range(50):
        link.owed.add(HERE, offset, Sent.NOTHING)
    for now in range(0, 40, 4):
        link.arrive([message(100 + now, b"x" * 10_000)], now)
        live = link.choose(500, 1 << 20, now) or Batch(())
        wanted = link.wanted(500, 1 << 20, live)
        batch = link.following(wanted, [message(offset, b"x" * 10_000) for _, offset in wanted], live)
        assert batch.size <= 3 * 70_000
        took = batch.size / 64_000  # [byte/s]
        link.delivered(batch, took, now + took)
    assert not len(link.owed)


def test_what_did_not_come_is_owed_still() -> None:
    link = Link(Ladder(10.0), Reduction(DECODER))
    for offset in (5, 6):
        link.owed.add(HERE, offset, Sent.NOTHING)
    batch = link.following(link.wanted(10, 1 << 20), [message(6)])
    link.delivered(batch, 0.1, 0.1)
    assert [place_of(one) for one in batch.messages] == [(HERE, 6)]
    assert [*link.owed.first(9)] == [(HERE, 5)]


@pytest.mark.parametrize("value", [b"", None])
def test_a_record_without_a_value_goes_as_it_is(value: bytes | None) -> None:
    one = Message(topic="alerts.sim", partition=0, offset=0, value=value, timestamp=(1, 0))
    assert [*Reduction(DECODER)(Level.LITE, [one])] == [one]
