"""What can be read with ``for`` and with ``async for``."""

from typing import Generic, Self, TypeVar

from nightwire.consumers._parcel import Make, Parcel
from nightwire.consumers._session import Session

Item = TypeVar("Item")


class Stream(Generic[Item]):
    """Alerts, lists of them or tables, each done when the next one is asked for.

    Args:
        session: Where they come from.
        make: Gives what makes them of records.
        size: How many records at most become one.
        wait: Longest wait for so many, once the first is there. [s]
    """

    def __init__(self, session: Session, make: Make[Item], *, size: int, wait: float) -> None:
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

    def _pull(self) -> Parcel[Item] | None:
        return self._session.pull(self._make, self._size, self._wait)
