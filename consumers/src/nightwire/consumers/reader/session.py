"""A reader between its first use and its end, and the streams that are read from it."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Generic, Self, TypeVar

from nightwire.consumers.alert import Deduplicator, ReceivedAlert, RecordDecoder
from nightwire.consumers.reader.batch import Batch, Unpack, UnpackFactory
from nightwire.consumers.reader.connection import Connection, ReadRequest, connect
from nightwire.consumers.reader.full_alerts import FullAlerts
from nightwire.consumers.reader.read_loop import ReadCounts
from nightwire.core.kafka import login
from nightwire.core.presence import ArchiveClient

Item = TypeVar("Item")
Result = TypeVar("Result")


class ReaderSession:
    """Connects when it is needed, reads batches, and leaves; its counts outlive a connection.

    Args:
        request: What was asked for.
        deduplicator: Remembers what was handed out.
    """

    def __init__(self, request: ReadRequest, deduplicator: Deduplicator) -> None:
        self.request, self.counts = request, ReadCounts()
        self._deduplicator = deduplicator
        self._expired = 0
        self._connection: Connection | None = None
        self._unpacks: dict[UnpackFactory[Any], Unpack[Any]] = {}
        self._thread: Executor | None = None
        self._full: FullAlerts | None = None
        self._dropped: Mapping[str, int] = {}

    @property
    def expired(self) -> int:
        """Records that Kafka had deleted before they were read."""
        return self._expired + (self._connection.loop.source.expired if self._connection else 0)

    @property
    def way(self) -> str:
        """Where records come from now."""
        return self._connection.loop.source.way if self._connection else "kafka"

    @property
    def dropped(self) -> Mapping[str, int]:
        """Datagrams that were dropped, by reason."""
        if self._connection is not None:
            self._dropped = self._connection.loop.source.dropped
        return self._dropped

    def full(self, alert: ReceivedAlert) -> ReceivedAlert:
        """Return *alert* as Kafka has it at its offset.

        Raises:
            MissingError: Kafka does not have it.
        """
        return self._full_alerts().of(alert)

    def _full_alerts(self) -> FullAlerts:
        if self._full is None:
            context = self.open().context
            decoder = RecordDecoder(context.decoder, survey_name=context.survey)
            ends = self.request.endpoints
            archive = partial(ArchiveClient, ends.archive, login(ends.kafka)) if ends.archive else None
            self._full = FullAlerts(ends.kafka, decoder, archive)
        return self._full

    def open(self) -> Connection:
        """Connect, if that is still to be done.

        Raises:
            TopicError: A topic or a visit does not exist.
            KafkaException: Kafka cannot be reached.
        """
        if self._connection is None:
            self._connection = connect(self.request, self.counts, self._deduplicator)
        return self._connection

    def next_batch(self, factory: UnpackFactory[Item], size: int, wait: float) -> Batch[Item] | None:
        """Return the next batch; None at the end.  Blocks."""
        return self.open().loop.next_batch(self.unpack(factory), size, wait)

    def unpack(self, factory: UnpackFactory[Item]) -> Unpack[Item]:
        """Return what *factory* gives for this connection."""
        context = self.open().context
        if factory not in self._unpacks:
            self._unpacks[factory] = factory(replace(context, stamps=self._full_alerts().stamps))
        return self._unpacks[factory]

    def hand_out(self, batch: Batch[Item]) -> Item:
        """Return what is in *batch*: from now on it is the caller's."""
        return self.open().loop.hand_out(batch)

    def close(self, *, finished: bool) -> None:
        """Commit what is done, and leave.

        Args:
            finished: What was handed out last is done too.
        """
        if self._full is not None:  # which may have been asked after the reader had left
            self._full.close()
        if self._connection is None:
            return
        connection, self._connection = self._connection, None
        self._unpacks.clear()
        if finished:
            connection.loop.finish()
        self._dropped = connection.loop.source.dropped
        self._expired += connection.loop.source.expired
        connection.close()

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """Return what *work* returns, done in this session's own thread."""
        self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="alert-reader")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close_in_thread(self, *, finished: bool) -> None:
        """Leave, even while the thread still waits for a caller that was cancelled."""
        if self._connection is not None:
            self._connection.loop.stop()
        await self.in_thread(lambda: self.close(finished=finished))
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None


class Stream(Generic[Item]):
    """Alerts, lists of them or tables, each done when the next one is asked for.

    Args:
        session: Where they come from.
        factory: Gives what makes them of records.
        size: How many records at most become one.
        wait: Longest wait for so many, once the first is there. [s]
    """

    def __init__(
        self, session: ReaderSession, factory: UnpackFactory[Item], *, size: int, wait: float
    ) -> None:
        if size < 1:
            raise ValueError(f"size={size}: ask for at least one")
        self._session, self._factory, self._size, self._wait = session, factory, size, wait

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        batch = self._next_batch()
        if batch is None:
            raise StopIteration
        return self._session.hand_out(batch)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        """Return the next one.  Safe to cancel: what had come by then comes with the next call."""
        batch = await self._session.in_thread(self._next_batch)
        if batch is None:
            raise StopAsyncIteration
        return self._session.hand_out(batch)

    def _next_batch(self) -> Batch[Item] | None:
        return self._session.next_batch(self._factory, self._size, self._wait)


class TableStream(Stream[Any]):
    """Tables; one without rows, but with its columns, where no alert came until the end."""

    _any = False

    def _next_batch(self) -> Batch[Any] | None:
        batch = super()._next_batch()
        if batch is None and not self._any:
            unpacker: Any = self._session.unpack(self._factory)
            batch = unpacker.empty()
        self._any = True
        return batch
