"""A reader between its first use and its end: connected when it is needed, from one thread at a time."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Generic, Self, TypeVar

from nightwire.consumers.alert.deduplication import Deduplicator
from nightwire.consumers.reader.batch import Batch, Unpack, UnpackFactory
from nightwire.consumers.reader.connection import Connection, ReadRequest, connect
from nightwire.consumers.reader.read_loop import ReadCounts

Item = TypeVar("Item")
Result = TypeVar("Result")


class ReaderSession:
    """Connects, pulls parcels, and leaves; what it counts outlives a connection.

    Args:
        order: What was asked for.
        fresh: Remembers what was handed out.
    """

    def __init__(self, order: ReadRequest, fresh: Deduplicator) -> None:
        self.order, self.tally = order, ReadCounts()
        self._fresh = fresh
        self._expired = 0
        self._connection: Connection | None = None
        self._unpacks: dict[UnpackFactory[Any], Unpack[Any]] = {}
        self._thread: Executor | None = None

    @property
    def expired(self) -> int:
        """Records that Kafka had deleted before they were read."""
        return self._expired + (self._connection.reading.source.expired if self._connection else 0)

    def open(self) -> Connection:
        """Connect, if that is still to be done.

        Raises:
            TopicError: A topic or a visit does not exist.
            KafkaException: Kafka cannot be reached.
        """
        if self._connection is None:
            self._connection = connect(self.order, self.tally, self._fresh)
        return self._connection

    def pull(self, make: UnpackFactory[Item], size: int, wait: float) -> Batch[Item] | None:
        """Return the next parcel; None at the end.  Blocks."""
        connection = self.open()
        if make not in self._unpacks:
            self._unpacks[make] = make(connection.tools)
        return connection.reading.pull(self._unpacks[make], size, wait)

    def hand(self, parcel: Batch[Item]) -> Item:
        """Return what is in *parcel*: from now on it is the caller's."""
        return self.open().reading.hand(parcel)

    def leave(self, *, in_peace: bool) -> None:
        """Commit what is done, and leave.

        Args:
            in_peace: What was handed out last is done too.
        """
        if self._connection is None:
            return
        connection, self._connection = self._connection, None
        self._unpacks.clear()
        if in_peace:
            connection.reading.finish()
        self._expired += connection.reading.source.expired
        connection.close()

    async def aside(self, work: Callable[[], Result]) -> Result:
        """Return what *work* returns, done in this session's own thread."""
        self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="alert-reader")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def leave_aside(self, *, in_peace: bool) -> None:
        """Leave, even while somebody who gave up still waits in the thread."""
        if self._connection is not None:
            self._connection.reading.stop()
        await self.aside(lambda: self.leave(in_peace=in_peace))
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None


class Stream(Generic[Item]):
    """Alerts, lists of them or tables, each done when the next one is asked for.

    Args:
        session: Where they come from.
        make: Gives what makes them of records.
        size: How many records at most become one.
        wait: Longest wait for so many, once the first is there. [s]
    """

    def __init__(self, session: ReaderSession, make: UnpackFactory[Item], *, size: int, wait: float) -> None:
        if size < 1:
            raise ValueError(f"size={size}: ask for at least one")
        self._session, self._make, self._size, self._wait = session, make, size, wait

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        parcel = self._pull()
        if parcel is None:
            raise StopIteration
        return self._session.hand(parcel)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        """Return the next one.  Safe to cancel: what had come by then comes with the next call."""
        parcel = await self._session.aside(self._pull)
        if parcel is None:
            raise StopAsyncIteration
        return self._session.hand(parcel)

    def _pull(self) -> Batch[Item] | None:
        return self._session.pull(self._make, self._size, self._wait)
