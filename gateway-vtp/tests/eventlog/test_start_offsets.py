"""The ring buffer, its cursors, and the accounts: no event is skipped or counted twice."""

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from nightwire.core.accounting import Account, OffsetAccounts, discrepancies
from nightwire.core.kafka import TopicPartition
from nightwire.gateway.eventlog.accounts import STAGE
from nightwire.gateway.eventlog.event import Event, Positions
from nightwire.gateway.eventlog.replay import ReplayService
from nightwire.gateway.eventlog.ring_buffer import Cursor, RingBuffer
from nightwire.gateway.eventlog.start_offsets import accounted, start_offsets
from nightwire.gateway.status.metrics import GatewayMetrics

TOPIC = "voevents"


def event(partition: int, offset: int) -> Event:
    return Event(TOPIC, partition, offset, f"ivo://{partition}#{offset}", "test", b"12345678")


class Log:
    """Two partitions in memory, read again as Kafka is."""

    def __init__(self) -> None:
        self.records: list[Event] = []

    def append(self, partition: int) -> Event:
        offset = sum(1 for one in self.records if one.partition == partition)
        self.records.append(event(partition, offset))
        return self.records[-1]

    def read(self, positions: Positions, until: Positions) -> tuple[list[Event], Positions]:
        found = [
            one
            for one in self.records
            if positions.get(one.topic_partition, 0) <= one.offset < until.get(one.topic_partition, 0)
        ]
        return found, {
            **positions,
            **{
                topic_partition: max(end, positions.get(topic_partition, 0))
                for topic_partition, end in until.items()
            },
        }


def take(ring: RingBuffer, log: Log, cursor: Cursor, limit: int) -> list[Event]:
    found = ring.take(cursor, limit)
    if found is None:
        found, cursor.positions = log.read(cursor.positions, ring.tail)
    for one in found:
        cursor.move_past(one)
    return found


@given(st.lists(st.sampled_from(["0", "1", "take"]), max_size=80), st.integers(1, 6), st.integers(1, 5))
def test_a_subscriber_gets_each_event_once_and_in_order_however_far_it_falls_behind(
    steps: list[str], room: int, limit: int
) -> None:
    ring, log = RingBuffer({(TOPIC, 0): 0, (TOPIC, 1): 0}, max_events=room), Log()
    cursor = ring.live()
    got: list[Event] = []
    for step in [*steps, *["take"] * 2 * (len(steps) + 2)]:
        if step == "take":
            got += take(ring, log, cursor, limit)
        else:
            ring.append(log.append(int(step)))
    for partition in (0, 1):
        expected = [one for one in log.records if one.partition == partition]
        assert [one for one in got if one.partition == partition] == expected


def test_the_ring_is_bounded_in_events_and_in_bytes() -> None:
    ring = RingBuffer({}, max_events=100, max_bytes=80)
    for offset in range(1000):
        ring.append(event(0, offset))
    assert ring.size <= 80
    assert ring.tail == {(TOPIC, 0): 990}


def test_who_comes_late_begins_with_what_comes_next() -> None:
    ring = RingBuffer({(TOPIC, 0): 5})
    ring.append(event(0, 5))
    cursor = ring.live()
    assert ring.take(cursor, 10) == []
    ring.append(event(0, 6))
    assert ring.take(cursor, 10) == [event(0, 6)]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(0, 40))
def test_accounts_join_and_count_each_record_once_whatever_is_read_again(
    stops: list[int], behind: int
) -> None:
    """A gateway reads, is killed, and begins again some records before where it was."""
    kept: dict[int, Account] = {}
    read_to = 0
    for length in stops:
        begin = {(TOPIC, partition): offset for partition, offset in accounted(kept.values()).items()}
        accounts = OffsetAccounts(STAGE, positions=begin)
        for offset in range(max(0, read_to - behind), read_to + length):
            accounts.count((TOPIC, 0), offset, delivered=1)
        read_to += length
        kept |= {one.first: one for one in accounts.changed()}
    assert discrepancies(kept.values()) == []
    assert min(kept) == 0
    assert sum(one.read for one in kept.values()) == read_to


def test_a_gateway_begins_where_index_and_accounts_both_end() -> None:
    watermarks = {(TOPIC, 0): (0, 100), (TOPIC, 1): (40, 90), ("filter.a.b", 0): (3, 7)}
    found = start_offsets(watermarks, indexed={0: 80, 1: 90}, known={0: 70})
    assert found.start == {(TOPIC, 0): 70, (TOPIC, 1): 40, ("filter.a.b", 0): 7}
    assert found.live == {(TOPIC, 0): 100, (TOPIC, 1): 90, ("filter.a.b", 0): 7}
    assert found.accounted == {0: 70, 1: 40}


def test_positions_that_the_log_does_not_have_are_not_believed() -> None:
    found = start_offsets({(TOPIC, 0): (10, 20)}, indexed={0: 500}, known={0: 5})
    assert found.start == {(TOPIC, 0): 10}


class NothingSoYoung:
    """Has no record as young as is asked."""

    def since(self, partitions: Iterable[TopicPartition], time: int) -> Positions:
        return {}


async def test_what_comes_after_the_question_is_not_left_out_where_another_asks_in_the_same_second() -> None:
    reader: Any = NothingSoYoung()
    replay = ReplayService(reader, GatewayMetrics(CollectorRegistry()))
    assert await replay.since({("voevents", 0): 5}, 1_000) == {("voevents", 0): 5}
    assert await replay.since({("voevents", 0): 9}, 1_001) == {("voevents", 0): 5}
