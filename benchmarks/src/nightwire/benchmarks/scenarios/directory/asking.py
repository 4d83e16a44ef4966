"""Questions over HTTP by many clients, each on one connection, and how long answers take."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from nightwire.benchmarks import Context, RunError
from nightwire.benchmarks.workers.client import worker_process

SERVER = "nightwire.benchmarks.workers.directory_server"
ONE = "SELECT site, kind, name, owner, endpoints, state FROM peers WHERE name = 'peer-7'"
"""One entry of each site."""


@contextmanager
def served(context: Context, records: int, sites: int = 1) -> Iterator[int]:
    """Yield the port of a directory of so many *records* of each of so many *sites*."""
    order = {"records": records, "sites": sites}
    with worker_process(context, SERVER, order, role="directory") as worker:
        yield int(worker.receive()["port"])


def question(sql: str) -> bytes:
    """Return the request that asks *sql*."""
    body = json.dumps({"sql": sql}).encode()
    head = f"POST /query HTTP/1.1\r\nHost: directory\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@asynccontextmanager
async def connection(port: int) -> Any:
    """Yield a reader and a writer of a connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    try:
        yield reader, writer
    finally:
        writer.close()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> bytes:
    """Return the body of the answer to *request*.

    Raises:
        RunError: It is refused.
    """
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    body = await reader.readexactly(int(length.partition(b":")[2]))
    if not head.startswith(b"HTTP/1.1 200"):
        raise RunError(f"the directory refuses: {body[:200]!r}")
    return body


async def _client(port: int, request: bytes, turns: int, begin: asyncio.Event, into: list[float]) -> None:
    async with connection(port) as (reader, writer):
        await ask(reader, writer, request)
        await begin.wait()
        for _turn in range(turns):
            asked = time.perf_counter()
            await ask(reader, writer, request)
            into.append(time.perf_counter() - asked)


async def _clients(port: int, sql: str, clients: int, turns: int) -> list[float]:
    begin, taken, request = asyncio.Event(), list[float](), question(sql)
    async with asyncio.TaskGroup() as group:
        for _client_number in range(clients):
            group.create_task(_client(port, request, turns, begin, taken))
        await asyncio.sleep(0.1 + clients / 500)  # all are connected, and were answered once
        begin.set()
    return taken


def answer_times(port: int, sql: str, *, clients: int = 1, turns: int = 500) -> list[float]:
    """Return how long each answer took [s], each client asking *turns* times in a row."""
    return asyncio.run(_clients(port, sql, clients, turns))


def answered(port: int, sql: str) -> Any:
    """Return the answer to *sql*."""

    async def once() -> bytes:
        async with connection(port) as (reader, writer):
            return await ask(reader, writer, question(sql))

    return json.loads(asyncio.run(once()))
