"""A worker: viewers of a portal, each with a live list and, every few seconds, a page.

As a browser each keeps his connections, takes pages compressed, and asks for no stamp twice, which
says of itself that it never changes.

``python -m nightwire.benchmarks.scenarios.portal.viewers '{"port": …, "viewers": …}'`` opens the
lists, prints a line, opens pages from the next line on until standard input ends, and prints what
it found.
"""

import asyncio
import gzip
import os
import random
import time
from asyncio import IncompleteReadError, Semaphore, StreamReader, StreamWriter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

from nightwire.benchmarks.workers.worker import emit, first_order, input_ended

THINK = 5.0
"""Between two pages of a viewer. [s]"""
SEEN = 8
"""Stamps of a page that are in sight."""
STAMPS = b"/api/stamps/"
PATHS = ("/", "/?survey=sim", "/sky", "/night", "/api/alerts?survey=sim&most=100")
LONGEST_LINE = 1 << 20
"""Longest line of a live list. [byte]"""
CONNECTIONS = 6
"""Of a viewer, beside that of his list."""
HEADERS = "Host: portal\r\nAccept-Encoding: gzip\r\n\r\n"
Connection = tuple[StreamReader, StreamWriter]


@dataclass
class Viewer:
    """One who looks, from an address of his own.

    Attributes:
        number: Which one.
        port: The portal's.
        alerts: Alerts that his list told of.
        waits: How long each answer took. [s]
        refused: Answers that were none.
        idle: Connections that wait for a request.
        seen: Addresses of stamps that his browser has.
        places: For so many connections.
    """

    number: int
    port: int
    alerts: int = 0
    waits: list[float] = field(default_factory=list)
    refused: int = 0
    idle: list[Connection] = field(default_factory=list)
    seen: set[bytes] = field(default_factory=set)
    places: Semaphore = field(default_factory=lambda: Semaphore(CONNECTIONS))

    async def follow(self) -> None:
        """Open the live list, and go on to read it."""
        reader, writer = await self._connect()
        _ask(writer, "/api/live?survey=sim&strips")
        await reader.readuntil(b"retry")
        self.listening = asyncio.create_task(self._listen(reader, writer))

    async def look(self) -> None:
        """Open a page every few seconds, with the stamps that are in sight."""
        chance = random.Random(self.number)  # noqa: S311  (the same pages in each run)
        await asyncio.sleep(THINK * chance.random())
        while True:
            began = time.monotonic()
            page = await self._answer(chance.choice(PATHS).encode())
            sight = [part.split(b'"', 1)[0] for part in page.split(b'src="')[1:] if part.startswith(STAMPS)]
            new = [one for one in sight[:SEEN] if one not in self.seen]
            await asyncio.gather(*map(self._answer, new))
            self.seen.update(new)
            await asyncio.sleep(max(0.0, began + THINK - time.monotonic()))

    async def _listen(self, reader: StreamReader, _writer: StreamWriter) -> None:
        while line := await reader.readline():
            if line.startswith(b"data: {"):
                self.alerts += line.count(b'"number": ') + int(line.rsplit(b" ", 1)[1].rstrip(b"}\r\n"))

    async def _answer(self, path: bytes) -> bytes:
        began = time.monotonic()
        async with self.places:
            head, body = await self._asked(path.decode())
        self.waits.append(time.monotonic() - began)
        self.refused += not head.startswith(b"http/1.1 200")
        return gzip.decompress(body) if b"content-encoding: gzip" in head else body

    async def _asked(self, path: str) -> tuple[bytes, bytes]:
        """Return head and body; over a new connection where the portal has ended the kept ones."""
        while self.idle:
            with suppress(IncompleteReadError, ConnectionError):
                return await self._over(self.idle.pop(), path)
        return await self._over(await self._connect(), path)

    async def _over(self, connection: Connection, path: str) -> tuple[bytes, bytes]:
        reader, writer = connection
        with ExitStack() as failed:
            failed.callback(writer.close)
            _ask(writer, path)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            body = await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r", 1)[0]))
            failed.pop_all()
        self.idle.append(connection)
        return head, body

    async def _connect(self) -> Connection:
        own = f"127.0.{1 + self.number // 250}.{1 + self.number % 250}", 0
        return await asyncio.open_connection("127.0.0.1", self.port, limit=LONGEST_LINE, local_addr=own)


def _ask(writer: StreamWriter, path: str) -> None:
    writer.write(f"GET {path} HTTP/1.1\r\n{HEADERS}".encode())


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
        if task.done():  # of an error: who looks does not end by himself
            task.result()
        task.cancel()
    emit({
        "alerts": [one.alerts for one in viewers],
        "waits": [wait for one in viewers for wait in one.waits],
        "refused": sum(one.refused for one in viewers),
    })  # fmt: skip


if __name__ == "__main__":
    os.nice(19)  # elsewhere, but for the benchmark
    order = first_order()
    asyncio.run(watch(order["port"], order["viewers"], order["expected"]))
