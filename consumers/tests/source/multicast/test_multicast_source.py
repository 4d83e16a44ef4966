"""What a channel with a condition leaves out of what was read from Kafka."""

import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from nightwire.consumers.source.multicast.multicast_source import MulticastSource
from nightwire.consumers.source.multicast.reorder_buffer import BufferedRange, ReorderBuffer
from nightwire.consumers.source.multicast.repair import Repairs
from nightwire.consumers.source.plan import Plan
from nightwire.core.datagrams import Datagram
from nightwire.core.kafka import RecordFetcher
from nightwire.schemas import RegistryAwayError

NOBODY = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}


class Judge:
    """Carries ``yes``; at first the registry is away.

    Attributes:
        asked: The values of each time that it was asked.
    """

    def __init__(self, away: int = 0) -> None:
        self.asked: list[list[bytes | None]] = []
        self._away = away

    def __call__(self, values: Sequence[bytes | None]) -> list[bool]:
        """Return what is carried."""
        self.asked.append([*values])
        if len(self.asked) <= self._away:
            raise RegistryAwayError("away")
        return [value == b"yes" for value in values]


def source(judge: Judge, *values: bytes) -> MulticastSource:
    """Return a source with a backlog, of a channel with a condition."""
    unused: Any = SimpleNamespace(
        partitions={}, patience=0.0, tick=0.0, listen=lambda _seconds, _answers: None
    )
    plan = Plan(topics=["alerts.sim"], group=None, since=None, last=None, start=None, follow=True)
    one = MulticastSource(Consumer(NOBODY), plan, listener=unused, repair=unused, decoder=unused)
    one._judges["alerts.sim"] = judge
    messages = [
        Message(topic="alerts.sim", partition=0, offset=at, value=value) for at, value in enumerate(values)
    ]
    one.put_back(messages)
    return one


def taken(one: MulticastSource, most: int) -> list[int]:
    """Return the offsets that are handed out."""
    return [message.offset() or 0 for message in one.take(most, 0.0)]


def test_what_the_channel_leaves_out_is_not_handed_out_and_judged_once() -> None:
    judge = Judge()
    one = source(judge, b"yes", b"no", b"yes", b"no")
    assert [taken(one, 1) for _ in range(4)] == [[0], [], [2], []]
    assert judge.asked == [[b"yes", b"no", b"yes", b"no"]]


def test_while_the_registry_is_away_nothing_is_handed_out_or_lost() -> None:
    one = source(Judge(away=2), b"no", b"yes", b"yes")
    assert [taken(one, 2) for _ in range(4)] == [[], [], [1], [2]]


def test_what_the_relay_sent_is_not_judged_again() -> None:
    judge = Judge()
    one = source(judge)
    one._next["alerts.sim", 0] = 0
    sent = [Message(topic="alerts.sim", partition=0, offset=at, value=b"lite") for at in range(2)]
    one._hand_out(("alerts.sim", 0), sent, was_sent=True)
    assert taken(one, 2) == [0, 1]
    assert judge.asked == []


@pytest.mark.timeout(60)
def test_while_kafka_is_away_a_gap_holds_up_nobody_and_is_left_to_the_topic_soon() -> None:
    one = source(Judge())
    one._repairs = Repairs(RecordFetcher("127.0.0.1:1"))
    places = [("alerts.sim", 0), ("alerts.sim", 1)]
    one._consumer.assign([TopicPartition(*place, 0) for place in places])
    for place in places:
        one._next[place] = 0
        one._listener.partitions[place] = ReorderBuffer(0)
        one._by_lan.add(place)
    lost, whole = (one._listener.partitions[place] for place in places)
    for number in range(10_000):
        for buffer, offset in ((lost, number + 1), (whole, number)):  # the first one's first is lost
            buffer.admit(Datagram(0, 1, 0, 1, offset, offset - 1, 0, 0, 1, b""), offset, time.monotonic())
            buffer.insert(offset, BufferedRange(offset - 1, offset, [record(buffer is whole, offset)], 1))
        one._settle()
        if places[0] not in one._by_lan:
            break
        time.sleep(0.001)
    assert places[0] not in one._by_lan
    assert places[1] in one._by_lan
    assert len(one._backlog) == number + 1  # what was received of the other one was handed out meanwhile
    one._repairs.close()


def record(of_second: bool, offset: int) -> Message:
    """Return a record of one of two partitions."""
    return Message(topic="alerts.sim", partition=int(of_second), offset=offset, value=b"lite")
