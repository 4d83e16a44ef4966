"""A worker: viewers of a portal, each with a live list and, every few seconds, a page.

``python -m nightwire.benchmarks.scenarios.portal.viewers '{"port": …, "viewers": …}'`` opens the
lists, prints a line, opens pages from the next line on until standard input ends, and prints what
it found.
"""

import asyncio
import random
import time
from asyncio import StreamReader, StreamWriter
from dataclasses import dataclass, field

from nightwire.benchmarks.workers.worker import emit, first_order, input_ended

THINK = 5.0
"""Between two pages of a viewer. [s]"""
SEEN = 8
"""Stamps of a page that are in sight."""
PATHS = ("/", "/?survey=sim", "/sky", "/night", "/api/alerts?survey=sim&most=100")
LONGEST_LINE = 1 << 20
"""Longest line of a live list. [byte]"""
HEADERS = "Host: portal\r\nConnection: close\r\n\r\n"


@dataclass
class Viewer:
    """One who looks, from an address of his own.

    Attributes:
        number: Which one.
        port: The portal's.
        alerts: Alerts that his list told of.
        waits: How long each answer took. [s]
        refused: Answers that were none.
    """

    number: int
    port: int
    alerts: int = 0
    waits: list[float] = field(default_factory=list)
    refused: int = 0

    async def follow(self) -> None:
        """Open the live list, and go on to read it."""
        reader, writer = await self._ask("/api/live?survey=sim&strips")
        await reader.readuntil(b"retry")
        self.listening = asyncio.create_task(self._listen(reader, writer))

    async def look(self) -> None:
        """Open a page every few seconds, with the stamps that are in sight."""
        chance = random.Random(self.number)  # noqa: S311  (the same pages in each run)
        await asyncio.sleep(THINK * chance.random())
        while True:
            began = time.monotonic()
            page = await self._answer(chance.choice(PATHS))
            stamps = [
                part.split(b'"', 1)[0].decode() for part in page.split(b'src="/api/stamps')[1 : SEEN + 1]
            ]
            await asyncio.gather(*(self._answer(f"/api/stamps{one}") for one in stamps))
            await asyncio.sleep(max(0.0, began + THINK - time.monotonic()))

    async def _listen(self, reader: StreamReader, _writer: StreamWriter) -> None:
        while line := await reader.readline():
            if line.startswith(b"data: {"):
                self.alerts += line.count(b'"number": ') + int(line.rsplit(b" ", 1)[1].rstrip(b"}\r\n"))

    async def _answer(self, path: str) -> bytes:
        began = time.monotonic()
        reader, writer = await self._ask(path)
        body = await reader.read()
        writer.close()
        self.waits.append(time.monotonic() - began)
        self.refused += not body.startswith(b"HTTP/1.1 200")
        return body

    async def _ask(self, path: str) -> tuple[StreamReader, StreamWriter]:
        own = f"127.0.{1 + self.number // 250}.{1 + self.number % 250}", 0
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, limit=LONGEST_LINE, local_addr=own
        )
        writer.write(f"GET {path} HTTP/1.1\r\n{HEADERS}".encode())
        return reader, writer


async def watch(port: int, count: int, expected: int) -> None:
    """Let *count* viewers look until standard input has ended, and *expected* alerts came."""
    viewers = [Viewer(number, port) for number in range(count)]
    await asyncio.gather(*(one.follow() for one in viewers))
    emit({"ready": True})
    ended = input_ended()
    looking = [asyncio.create_task(one.look()) for one in viewers]
    while not (ended.is_set() and all(one.alerts >= expected or one.listening.done() for one in viewers)):
        await asyncio.sleep(0.1)
    for task in looking:
        task.cancel()
    emit({
        "alerts": [one.alerts for one in viewers],
        "waits": [wait for one in viewers for wait in one.waits],
        "refused": sum(one.refused for one in viewers),
    })  # fmt: skip


if __name__ == "__main__":
    order = first_order()
    asyncio.run(watch(order["port"], order["viewers"], order["expected"]))
