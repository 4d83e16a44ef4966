"""Answers in the order in which they were owed, however soon each is known."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from nightwire.gateway._frames import encode_frame

Tell = Callable[[bytes | None], None]
"""Takes the answer to an event; None: there is none to give, and nothing after it can be said either."""


class InOrder:
    """Collect answers and say them in order, those that are known at the same moment in one breath.

    Args:
        say: Takes the frames that may go out; and whether they end with an answer that cannot be given.

    Attributes:
        promised: How many were owed since the beginning.
    """

    def __init__(self, say: Callable[[bytes, bool], None]) -> None:
        self._say, self._loop = say, asyncio.get_running_loop()
        self._due: deque[list[bytes | None]] = deque()
        self._saying = False
        self.promised = 0

    def __len__(self) -> int:
        """Return how many are owed now."""
        return len(self._due)

    def owe(self) -> Tell:
        """Owe an answer; return what takes it."""
        slot: list[bytes | None] = []
        self._due.append(slot)
        self.promised += 1
        return partial(self._told, slot)

    def _told(self, slot: list[bytes | None], answer: bytes | None) -> None:
        slot.append(answer)
        if self._due[0] and not self._saying:
            self._saying = True
            self._loop.call_soon(self._say_what_is_due)

    def _say_what_is_due(self) -> None:
        self._saying = False
        frames = bytearray()
        while self._due and self._due[0]:
            (answer,) = self._due.popleft()
            if answer is None:
                self._say(bytes(frames), True)
                return
            frames += encode_frame(answer)
        self._say(bytes(frames), False)
