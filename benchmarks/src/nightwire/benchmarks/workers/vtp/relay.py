"""A process that makes a broker far away: it passes bytes on half a round trip later, each way.

``python -m nightwire.benchmarks.workers.vtp.relay '{"port": …, "round_trip": …}'`` prints a line
with the port that it listens on.  Not every kernel has netem.  A connection's own handshake, which
takes a round trip, is added to its first bytes, so that an event on a connection of its own takes
two, as in Fig. 5 of Swinbank (2014).
"""

import asyncio
from collections import deque
from typing import cast

from nightwire.benchmarks.workers.worker import emit, first_order


class Way:
    """Bytes in one direction, each written when it is due."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._loop = asyncio.get_running_loop()
        self._due: deque[tuple[float, bytes]] = deque()
        self._to: asyncio.Transport | None = None

    def leads_to(self, transport: asyncio.Transport) -> None:
        """Say where bytes go."""
        self._to = transport
        self._deliver()

    def take(self, content: bytes, *, extra: float = 0.0) -> None:
        """Pass *content* on, later; no bytes: the end."""
        self._due.append((self._loop.time() + self._delay + extra, content))
        if len(self._due) == 1:
            self._loop.call_at(self._due[0][0], self._deliver)

    def _deliver(self) -> None:
        if self._to is None:
            return
        while self._due and self._due[0][0] <= self._loop.time():
            content = self._due.popleft()[1]
            if content:
                self._to.write(content)
            else:
                self._to.close()
        if self._due:
            self._loop.call_at(self._due[0][0], self._deliver)


class End(asyncio.Protocol):
    """One end of a relayed connection: it passes on both ways what it receives."""

    def __init__(self, out: Way, back: Way, handshake: float = 0.0) -> None:
        self._out, self._back, self._handshake = out, back, handshake

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let the other side write here."""
        self._back.leads_to(cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        """Pass it on."""
        self._out.take(data, extra=self._handshake)
        self._handshake = 0.0

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass that on as well."""
        self._out.take(b"")


async def relay(port: int, round_trip: float) -> None:
    """Relay to *port* until the process is ended; round trips take *round_trip* [s]."""
    loop = asyncio.get_running_loop()
    opening: set[asyncio.Task[object]] = set()

    def accept() -> End:
        out, back = Way(round_trip / 2), Way(round_trip / 2)
        task = loop.create_task(loop.create_connection(lambda: End(back, out), "127.0.0.1", port))
        opening.add(task)
        task.add_done_callback(opening.discard)
        return End(out, back, handshake=round_trip)

    server = await loop.create_server(accept, "127.0.0.1", 0, backlog=4096)
    emit({"port": server.sockets[0].getsockname()[1]})
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(relay(**first_order()))
