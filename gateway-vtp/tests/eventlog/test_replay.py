"""Reading the log again where transactions left markers, which are never delivered."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Message

from nightwire.core.accounting import Account
from nightwire.core.kafka import consumer, end_offsets_at, producer
from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.eventlog.event_index import EventIndex
from nightwire.gateway.eventlog.follower import Follower
from nightwire.gateway.eventlog.replay import ReplayReader
from nightwire.gateway.eventlog.ring_buffer import RingBuffer
from nightwire.gateway.eventlog.start_offsets import StartOffsets
from tests._waiting import until

pytestmark = pytest.mark.kafka


class Decoder:
    """Makes an event of any record."""

    def prepare(self, messages: list[Message]) -> None:
        """There are no conditions."""

    def event(self, message: Message) -> Event:
        topic, partition, offset = str(message.topic()), message.partition() or 0, message.offset() or 0
        return Event(topic, partition, offset, f"ivo://a#{offset}", "observation", b"<VOEvent/>")


@pytest.fixture
def topic(kafka: str, fresh_topic: Callable[..., str]) -> str:
    """A topic of three records, each in a transaction: markers end them."""
    name = fresh_topic("marked")
    for number in range(3):
        writer = producer(kafka, transactional_id=name, delivery_timeout_ms=60_000)
        writer.init_transactions(30)
        writer.begin_transaction()
        writer.produce(name, b"%d" % number)
        writer.commit_transaction(30)
    return name


def test_a_piece_that_ends_in_markers_is_read_to_its_end_and_the_ring_takes_over(
    kafka: str, topic: str
) -> None:
    end = end_offsets_at(kafka, [topic])
    reader = ReplayReader(
        lambda: consumer(kafka, enable_partition_eof=True),
        Decoder,  # type: ignore[arg-type]
    )
    events, reached = reader.read({(topic, 0): 0}, end)
    reader.close()
    assert [one.offset for one in events] == [0, 2, 4]
    assert reached == end == {(topic, 0): 6}
    ring = RingBuffer(end)
    assert ring.take(ring.resume(reached), 10) == []


class Sink:
    """Counts what the follower hands on."""

    def __init__(self) -> None:
        self.published = 0

    def publish(self, events: Sequence[Event], hashes: Sequence[bytes]) -> None:
        self.published += len(events)

    def send_to_dead_letters(self, message: Message, reason: str) -> None:
        raise AssertionError(reason)

    def account(self, account: Account) -> None:
        pass


def test_a_follower_catches_up_with_a_topic_that_ends_in_a_marker(
    kafka: str, topic: str, tmp_path: Path
) -> None:
    start, end, sink = {(topic, 0): 0}, end_offsets_at(kafka, [topic]), Sink()
    follower = Follower(
        consumer(kafka, enable_partition_eof=True),
        StartOffsets(start, end, {}, start),
        index=EventIndex(tmp_path / "events"),
        names=EventIndex(tmp_path / "names"),
        decoder=Decoder(),  # type: ignore[arg-type]
        sink=sink,
    )
    stop = threading.Event()
    thread = threading.Thread(target=follower.run, args=(stop,))
    thread.start()
    until(lambda: follower.behind == 0, "the follower to catch up")
    stop.set()
    thread.join()
    assert sink.published == 0  # all of it was there before
