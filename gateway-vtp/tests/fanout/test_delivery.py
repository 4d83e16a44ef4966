"""How events go out to one subscriber: in order, together, and none that is not written."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from nightwire.gateway import FrameDecoder
from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.eventlog.ring_buffer import RingBuffer
from nightwire.gateway.fanout.ack_tracker import AckTracker
from nightwire.gateway.fanout.delivery import LONG, MOST_FRAMES, Delivery, LiveFeed
from nightwire.gateway.fanout.feed import Feed
from nightwire.gateway.fanout.hub import Hub
from nightwire.gateway.fanout.subscriber_state import SubscriberState
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.xpath.evaluation import FilterEvaluator
from nightwire.gateway.xpath.filters import FilterList

PARTITION = ("voevents", 0)


class Writer:
    """Takes what is written; whoever drains it waits while it is full."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.room = asyncio.Event()
        self.room.set()
        self.transport = SimpleNamespace(get_write_buffer_size=lambda: 0)

    def writelines(self, frames: list[bytes]) -> None:
        if frames:
            self.writes.append(b"".join(frames))

    async def drain(self) -> None:
        await self.room.wait()

    @property
    def documents(self) -> list[bytes]:
        decoder = FrameDecoder()
        for chunk in self.writes:
            decoder.receive(chunk)
        return list(decoder)


class Scene:
    """A subscriber of a feed of all events."""

    def __init__(self) -> None:
        metrics = GatewayMetrics(CollectorRegistry())
        self.ring, replay, self.writer = RingBuffer({PARTITION: 0}), Any, Writer()
        self.hub = Hub(["voevents"], self.ring, replay, FilterEvaluator(metrics))  # type: ignore[arg-type]
        feed = LiveFeed(Feed("all", Address("127.0.0.1", 1)), self.hub, metrics, "ivo://a/b", 1 << 20, 30.0)
        self.peer = SubscriberState(FilterList(), 0.0, AckTracker({PARTITION: 0}))
        writer: Any = self.writer
        self.delivery = Delivery(feed, self.peer, writer, self.hub.live(), 1)

    def publish(self, *sizes: int) -> list[bytes]:
        first = self.ring.live().sequence
        documents = [b"x" * size for size in sizes]
        self.hub.publish(
            [
                Event("voevents", 0, first + number, f"ivo://a/b#{first + number}", "observation", document)
                for number, document in enumerate(documents)
            ]
        )
        return documents


@pytest.mark.parametrize(
    ("sizes", "writes"),
    [
        ([10] * 5, 1),
        ([10] * (2 * MOST_FRAMES + 1), 3),
        ([LONG + 1] * 4, 4),
        ([10, 10, LONG + 1, 10], 2),
    ],
    ids=["few", "many", "long", "mixed"],
)
async def test_events_that_are_there_go_out_together_and_not_too_much_at_once(
    sizes: list[int], writes: int
) -> None:
    one = Scene()
    documents = one.publish(*sizes)
    task = asyncio.ensure_future(one.delivery.run())
    async with asyncio.timeout(30):
        while len(one.writer.documents) < len(sizes):
            await asyncio.sleep(0)
    assert (one.writer.documents, len(one.writer.writes)) == (documents, writes)
    assert one.peer.sent == len(sizes)
    task.cancel()


async def test_what_counts_as_sent_is_written_also_where_the_delivery_ends_while_it_waits() -> None:
    one = Scene()
    one.writer.room.clear()
    one.publish(*[10] * (3 * MOST_FRAMES))
    task = asyncio.ensure_future(one.delivery.run())
    async with asyncio.timeout(30):
        while not one.writer.writes:
            await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert len(one.writer.documents) == one.peer.sent == MOST_FRAMES
