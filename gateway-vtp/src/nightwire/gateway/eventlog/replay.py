"""Events for subscribers that fell behind: read from Kafka again, from where each of them is.

One consumer, in one thread, serves them in turn, a piece at a time, so that any number of slow peers
costs one peer's memory.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from confluent_kafka import Consumer, KafkaException, Message
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
PATIENCE = 10.0
"""Longest wait for one piece; what came until then is returned. [s]"""


class ReplayReader:
    """Read pieces of the log.  `read` blocks: call it from one worker thread.

    Args:
        make_reader: Returns a consumer, used by this alone.
        make_renderer: Returns the renderer, made in the thread that reads.
    """

    def __init__(
        self, make_reader: Callable[[], Consumer], make_renderer: Callable[[], EventDecoder]
    ) -> None:
        self._make_reader, self._make_renderer = make_reader, make_renderer
        self._tools: tuple[Consumer, EventDecoder] | None = None

    def read(self, positions: Positions, until: Positions) -> tuple[list[Event], Positions]:
        """Return the events from *positions* on, in Kafka's order, and the positions after them.

        Stops at *until*, or when a piece is full.  A record that cannot be read is passed over: the
        follower has dealt with it.
        """
        reader, renderer = self._open()
        reached = dict(positions)
        todo = [spot for spot, end in until.items() if positions.get(spot, 0) < end]
        reader.assign([TopicPartitionOffset(*spot, positions.get(spot, 0)) for spot in todo])
        events: list[Event] = []
        try:
            self._fill(events, reached, until, reader, renderer)
        except RegistryAwayError as error:
            log.warning("waiting for the schema registry: %s", error)
        finally:
            reader.unassign()
        return events, reached

    def since(self, spots: Iterable[TopicPartition], moment: int) -> Positions:
        """Return the offset of each partition's first record at *moment* [ms since 1970] or later.

        A partition that has none is left out.

        Raises:
            KafkaException: Kafka does not answer.
        """
        asked = [TopicPartitionOffset(*spot, moment) for spot in spots]
        found = self._open()[0].offsets_for_times(asked, timeout=10.0)
        return {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}

    def close(self) -> None:
        """Close the consumer."""
        if self._tools is not None:
            self._tools[0].close()

    def _open(self) -> tuple[Consumer, EventDecoder]:
        self._tools = self._tools or (self._make_reader(), self._make_renderer())
        return self._tools

    def _fill(
        self,
        events: list[Event],
        reached: Positions,
        until: Positions,
        reader: Consumer,
        renderer: EventDecoder,
    ) -> None:
        size = 0
        deadline = time.monotonic() + PATIENCE
        while len(events) < MAX_EVENTS and size < MAX_BYTES and time.monotonic() < deadline:
            if all(reached.get(spot, 0) >= end for spot, end in until.items()):
                return
            message = reader.poll(0.1)
            event = None if message is None else _event(message, renderer, reached)
            if event is not None:
                events.append(event)
                size += len(event.document)


class ReplayService:
    """A `ReplayReader` for an event loop: whoever asks waits his turn, and no thread but one reads.

    Args:
        backlog: What reads.
        metrics: The process's metrics.
    """

    def __init__(self, backlog: ReplayReader, metrics: GatewayMetrics) -> None:
        self._backlog, self._metrics = backlog, metrics
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="backlog")
        self._moments: dict[tuple[frozenset[TopicPartition], int], asyncio.Future[Positions]] = {}

    async def read(self, positions: Positions, until: Positions) -> tuple[list[Event], Positions]:
        """Return a piece of the log; see `ReplayReader.read`."""
        events, reached = await self._run(partial(self._backlog.read, positions, until))
        self._metrics.backlog.inc(len(events))
        return events, reached

    async def since(self, spots: Iterable[TopicPartition], moment: int) -> Positions:
        """Return the positions at *moment* [ms since 1970], or up to a second later; see `ReplayReader.since`."""
        wanted = frozenset(spots)
        key = (wanted, moment // 1000 + 1)  # a thousand peers that come back at once ask the same
        if key not in self._moments:
            work = partial(self._backlog.since, sorted(wanted), 1000 * key[1])
            self._moments = {key: asyncio.ensure_future(self._run(work))}
        return await asyncio.shield(self._moments[key])

    def close(self) -> None:
        """Let go of Kafka.  Blocks until a piece that is being read is read."""
        self._reading.shutdown(cancel_futures=True)
        self._backlog.close()

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._reading, work)


def _event(message: Message, renderer: EventDecoder, reached: Positions) -> Event | None:
    """Return the event in *message* if it is to be delivered, and note in *reached* that it was read."""
    error = message.error()
    if error is not None:
        if error.code() not in TRANSIENT_ERRORS:
            raise KafkaException(error)
        return None
    spot, offset = (str(message.topic()), message.partition() or 0), message.offset() or 0
    if offset < reached.get(spot, 0):
        return None
    try:
        event = renderer.event(message)
    except RegistryAwayError:
        raise  # not passed over: it is the first of the next piece
    except (DecodeError, UnknownSchemaError):
        reached[spot] = offset + 1
        return None
    reached[spot] = offset + 1
    return event if event.deliverable else None
