"""When a subscriber that says nothing is disconnected."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from nightwire.gateway import Transport
from nightwire.gateway.fanout.subscriber_state import SubscriberState
from nightwire.gateway.fanout.subscribers import keep_alive
from nightwire.gateway.vtp.session import encode_now
from nightwire.gateway.xpath.filters import FilterList


class VirtualTime(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next thing to do."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def ended_at(scene: Coroutine[Any, Any, None]) -> float:
    """Return when *scene* ends. [s]"""
    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        runner.run(scene)
        return runner.get_loop().time()


def test_a_silent_subscriber_is_gone_after_two_and_a_half_intervals() -> None:
    sent: list[float] = []

    async def scene() -> None:
        peer = SubscriberState(FilterList(), last_message=0.0)
        await keep_alive(peer, 60.0, lambda: sent.append(asyncio.get_running_loop().time()))

    assert ended_at(scene()) == 150.0
    assert sent == [60.0, 120.0]


def test_any_message_gives_it_as_long_again() -> None:
    async def scene() -> None:
        clock = asyncio.get_running_loop()
        peer = SubscriberState(FilterList(), last_message=0.0)

        def answer() -> None:
            if clock.time() <= 120.0:
                peer.receive(encode_now(Transport("iamalive", "ivo://b")), clock.time())

        await keep_alive(peer, 60.0, answer)

    assert ended_at(scene()) == 270.0
