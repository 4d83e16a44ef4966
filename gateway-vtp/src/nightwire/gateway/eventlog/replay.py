"""Events for subscribers that fell behind: read from Kafka again, from the position of each.

One consumer, in one thread, serves them in turn, a piece at a time, so that any number of slow
peers costs one peer's memory.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.kafka import TRANSIENT_ERRORS, TopicPartition
from nightwire.gateway.eventlog.decoder import EventDecoder
from nightwire.gateway.eventlog.event import Event, Positions
from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.schemas import DecodeError, RegistryAwayError, UnknownSchemaError

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_EVENTS = 1_000
MAX_BYTES = 4 << 20  # [byte]
READ_TIMEOUT = 10.0
"""Longest time for one piece; the events that came until then are returned. [s]"""


class ReplayReader:
    """Read pieces of the log.  `read` blocks: call it from one worker thread.

    Args:
        make_reader: Returns a consumer with ``enable.partition.eof``, used by this alone.
        make_decoder: Returns the decoder, made in the thread that reads.
    """

    def __init__(self, make_reader: Callable[[], Consumer], make_decoder: Callable[[], EventDecoder]) -> None:
        self._make_reader, self._make_decoder = make_reader, make_decoder
        self._clients: tuple[Consumer, EventDecoder] | None = None

    def read(self, positions: Positions, until: Positions) -> tuple[list[Event], Positions]:
        """Return the events from *positions* on, in Kafka's order, and the positions after them.

        Stops at *until*, or when a piece is full.  A record that cannot be read is left out: the
        follower has made a dead letter of it.
        """
        reader, decoder = self._open()
        reached = dict(positions)
        behind = [
            topic_partition
            for topic_partition, end in until.items()
            if positions.get(topic_partition, 0) < end
        ]
        reader.assign(
            [
                TopicPartitionOffset(*topic_partition, positions.get(topic_partition, 0))
                for topic_partition in behind
            ]
        )
        events: list[Event] = []
        try:
            self._fill(events, reached, until, reader, decoder)
        except RegistryAwayError as error:
            log.warning("waiting for the schema registry: %s", error)
        finally:
            reader.unassign()
        return events, reached

    def since(self, partitions: Iterable[TopicPartition], time: int) -> Positions:
        """Return the offset of each partition's first record at *time* [ms since 1970] or later.

        A partition that has none is left out.

        Raises:
            KafkaException: Kafka does not answer.
        """
        asked = [TopicPartitionOffset(*topic_partition, time) for topic_partition in partitions]
        found = self._open()[0].offsets_for_times(asked, timeout=10.0)
        return {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}

    def close(self) -> None:
        """Close the consumer."""
        if self._clients is not None:
            self._clients[0].close()

    def _open(self) -> tuple[Consumer, EventDecoder]:
        self._clients = self._clients or (self._make_reader(), self._make_decoder())
        return self._clients

    def _fill(
        self,
        events: list[Event],
        reached: Positions,
        until: Positions,
        reader: Consumer,
        decoder: EventDecoder,
    ) -> None:
        size = 0
        deadline = time.monotonic() + READ_TIMEOUT
        while len(events) < MAX_EVENTS and size < MAX_BYTES and time.monotonic() < deadline:
            if all(reached.get(topic_partition, 0) >= end for topic_partition, end in until.items()):
                return
            message = reader.poll(0.1)
            event = None if message is None else _event(message, decoder, reached)
            if event is not None:
                events.append(event)
                size += len(event.document)


class ReplayService:
    """A `ReplayReader` for an event loop: whoever asks waits for his turn, and one thread reads.

    Args:
        reader: Reads.
        metrics: The process's metrics.
    """

    def __init__(self, reader: ReplayReader, metrics: GatewayMetrics) -> None:
        self._reader, self._metrics = reader, metrics
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="replay")
        self._offsets_at: dict[tuple[frozenset[TopicPartition], int], asyncio.Future[Positions]] = {}

    async def read(self, positions: Positions, until: Positions) -> tuple[list[Event], Positions]:
        """Return a piece of the log; see `ReplayReader.read`."""
        events, reached = await self._run(partial(self._reader.read, positions, until))
        self._metrics.backlog.inc(len(events))
        return events, reached

    async def since(self, live: Positions, time: int) -> Positions:
        """Return the positions at *time* [ms since 1970], or up to a second later.

        A partition that has no record so young has its *live* position of when that was asked:
        records that came since are younger.
        """
        wanted = frozenset(live)
        key = (wanted, time // 1000 + 1)  # a thousand peers that return at once ask the same
        if key not in self._offsets_at:
            work = partial(self._since, dict(live), 1000 * key[1])
            self._offsets_at = {key: asyncio.ensure_future(self._run(work))}
        return await asyncio.shield(self._offsets_at[key])

    def close(self) -> None:
        """Close the consumer.  Blocks until the piece that is being read is complete."""
        self._thread.shutdown(cancel_futures=True)
        self._reader.close()

    def _since(self, live: Positions, time: int) -> Positions:
        return live | self._reader.since(sorted(live), time)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _event(message: Message, decoder: EventDecoder, reached: Positions) -> Event | None:
    """Return the event in *message* if it is to be delivered; move *reached* past the message."""
    topic_partition, offset = (str(message.topic()), message.partition() or 0), message.offset() or 0
    error = message.error()
    if error is not None:
        # which lies after the markers of transactions
        if error.code() == KafkaError._PARTITION_EOF:
            reached[topic_partition] = max(offset, reached.get(topic_partition, 0))
        elif error.code() not in TRANSIENT_ERRORS:
            raise KafkaException(error)
        return None
    if offset < reached.get(topic_partition, 0):
        return None
    try:
        event = decoder.event(message)
    except RegistryAwayError:
        raise  # not left out: it is the first of the next piece
    except (DecodeError, UnknownSchemaError):
        reached[topic_partition] = offset + 1
        return None
    reached[topic_partition] = offset + 1
    return event if event.deliverable else None
