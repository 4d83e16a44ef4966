"""What can be read with ``for`` and with ``async for``."""

import asyncio
from concurrent.futures import Executor
from typing import Generic, Protocol, Self, TypeVar

from nightwire.consumers._parcel import Make, Parcel

Item = TypeVar("Item")


class Puller(Protocol):
    """What a stream needs of its reader."""

    @property
    def thread(self) -> Executor:
        """The one thread in which an event loop lets this reader wait."""

    def pull(self, make: Make[Item], size: int, wait: float) -> Parcel[Item] | None:
        """Return the next parcel; None at the end.  Blocks."""

    def hand(self, parcel: Parcel[Item]) -> Item:
        """Return what is in *parcel*: from now on it is the caller's."""


class Stream(Generic[Item]):
    """Alerts, lists of them or tables, each done when the next one is asked for.

    Args:
        reader: Where they come from.
        make: Gives what makes them of records.
        size: How many records at most become one.
        wait: Longest wait for so many, once the first is there. [s]
    """

    def __init__(self, reader: Puller, make: Make[Item], *, size: int, wait: float) -> None:
        if size < 1:
            raise ValueError(f"size={size}: ask for at least one")
        self._reader, self._make, self._size, self._wait = reader, make, size, wait

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        parcel = self._pull()
        if parcel is None:
            raise StopIteration
        return self._reader.hand(parcel)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        """Return the next one.  Safe to cancel: what had come by then comes with the next call."""
        parcel = await asyncio.get_running_loop().run_in_executor(self._reader.thread, self._pull)
        if parcel is None:
            raise StopAsyncIteration
        return self._reader.hand(parcel)

    def _pull(self) -> Parcel[Item] | None:
        return self._reader.pull(self._make, self._size, self._wait)
