"""What many ask for at the same time is made once."""

from asyncio import Future, ensure_future, shield
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Once(Generic[Made]):
    """The newest *most* of what was made, and what is being made.

    Args:
        most: How many.
    """

    def __init__(self, most: int) -> None:
        self._most, self._made = most, OrderedDict[Hashable, Future[Made]]()

    async def get(self, key: Hashable, make: Callable[[], Awaitable[Made]]) -> Made:
        """Return what *make* returned for *key*; what it raised is raised, and not kept."""
        if key not in self._made:
            self._made[key] = ensure_future(make())
            if len(self._made) > self._most:
                self._made.popitem(last=False)
        found = self._made[key]
        try:
            return await shield(found)  # who leaves takes it from nobody else
        except Exception:
            if self._made.get(key) is found:
                del self._made[key]
            raise
