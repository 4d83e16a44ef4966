"""One author's connection: in which order he is answered, and when he has to wait."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import pytest

from nightwire.gateway import FrameDecoder, encode_frame
from nightwire.gateway.ingest.author_listener import sweep
from nightwire.gateway.ingest.author_protocol import AuthorProtocol, UnreadableDocument
from nightwire.gateway.net.memory import MemoryBudget
from nightwire.gateway.vtp.container import Container, open_container
from nightwire.gateway.vtp.conversation import WINDOW, AnswerCallback, AnswerQueue, MessageDeadline
from tests._voevents import container

MAX_FRAME = 20_000


class CountedDeadline(MessageDeadline):
    """Counts how often it expired."""

    times = 0

    def expired(self, now: float, *, partial: int, answer_owed: bool) -> None:
        self.times += 1
        super().expired(now, partial=partial, answer_owed=answer_owed)


class Receiver:
    """Answers each document with itself, when told to."""

    def __init__(self, limit: int = 1 << 20) -> None:
        self.memory = MemoryBudget(limit)
        self.asked: list[tuple[bytes, AnswerCallback]] = []
        self.disconnected_for: list[str] = []
        self.closed = 0
        self.open: set[AuthorProtocol] = set()
        self.deadline: CountedDeadline | None = None

    def submit(
        self, document: bytes | UnreadableDocument, host: str, reply: AnswerCallback, *, first: bool
    ) -> None:
        read = document.explanation.encode() if isinstance(document, UnreadableDocument) else document
        self.asked.append((b"first " * first + read, reply))

    async def unpack(self, container: bytes) -> Container:
        return open_container(container, MAX_FRAME)

    def disconnected(self, peer: str, reason: str, error: Exception) -> None:
        self.disconnected_for.append(reason)

    def gone(self, author: AuthorProtocol) -> None:
        self.open.remove(author)
        self.closed += 1

    async def has(self, count: int) -> None:
        """Wait until so many were asked in all."""
        async with asyncio.timeout(30):
            while len(self.asked) < count:
                await asyncio.sleep(0.001)

    async def expired(self, times: int) -> None:
        """Wait until the author's deadline expired so often."""
        async with asyncio.timeout(30):
            while self.deadline is None or self.deadline.times < times:
                await asyncio.sleep(0.001)

    def answer(self, *numbers: int) -> None:
        for number in numbers:
            document, reply = self.asked[number]
            reply(document)


@asynccontextmanager
async def author(
    receiver: Receiver, timeout: float = 30.0
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yield the author's end of a real connection to *receiver*."""
    loop = asyncio.get_running_loop()

    def protocol() -> AuthorProtocol:
        receiver.deadline = CountedDeadline(timeout, timeout, loop.time())
        return AuthorProtocol(receiver, receiver.deadline, MAX_FRAME, 1.0, receiver.open.add, receiver.gone)

    sweeping = asyncio.ensure_future(sweep(receiver.open, 0.01))
    server = await loop.create_server(protocol, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    async with asyncio.timeout(60):
        yield reader, writer
    writer.close()
    server.close()
    sweeping.cancel()


async def answers(reader: asyncio.StreamReader, count: int | None = None) -> list[bytes]:
    """Return so many answers, or all until the connection ends."""
    decoder, found = FrameDecoder(), list[bytes]()
    while (count is None or len(found) < count) and (chunk := await reader.read(1 << 16)):
        decoder.receive(chunk)
        found += decoder
    return found


def frames(*documents: bytes) -> bytes:
    return b"".join(map(encode_frame, documents))


async def test_answers_are_in_the_order_of_the_events_and_the_first_is_told_so() -> None:
    receiver = Receiver()
    async with author(receiver) as (reader, writer):
        writer.write(frames(b"a", b"b", b"c"))
        await receiver.has(3)
        receiver.answer(2, 1)
        assert receiver.memory.held == 1
        receiver.answer(0)
        assert await answers(reader, 3) == [b"first a", b"b", b"c"]


async def test_an_author_who_hangs_up_is_answered_first() -> None:
    receiver = Receiver()
    async with author(receiver) as (reader, writer):
        writer.write(frames(b"a", b"b"))
        writer.write_eof()
        await receiver.has(2)
        receiver.answer(1, 0)
        assert await answers(reader) == [b"first a", b"b"]
    assert (receiver.closed, receiver.disconnected_for) == (1, [])


async def test_what_cannot_be_answered_ends_the_connection_after_what_was_before_it() -> None:
    receiver = Receiver()
    async with author(receiver) as (reader, writer):
        writer.write(frames(b"a", b"b", b"c"))
        await receiver.has(3)
        receiver.asked[1][1](None)
        receiver.answer(2, 0)
        assert await answers(reader) == [b"first a"]


async def test_broken_framing_is_refused_after_the_events_before_it() -> None:
    receiver = Receiver()
    async with author(receiver) as (reader, writer):
        writer.write(frames(b"a") + bytes(4) + b"what follows is not read")
        await receiver.has(2)
        receiver.answer(1, 0)
        writer.write_eof()
        assert await answers(reader) == [b"first a", b"a frame of no bytes"]
    assert receiver.disconnected_for == ["frame"]


async def test_where_there_is_no_room_the_author_waits_and_loses_nothing() -> None:
    receiver = Receiver(limit=100_000)
    documents = [bytes([65 + number]) * 19_000 for number in range(20)]
    async with author(receiver) as (reader, writer):
        writer.write(frames(*documents))
        for number in range(20):
            await receiver.has(min(20, number + 5))
            assert len(receiver.asked) <= number + 5  # five are all that there is room for
            receiver.answer(number)
        found = await answers(reader, 20)
        assert [found[0].removeprefix(b"first "), *found[1:]] == documents
        assert receiver.memory.held == 0


async def test_no_more_than_a_window_is_dealt_with_at_once() -> None:
    receiver = Receiver()
    async with author(receiver) as (reader, writer):
        writer.write(frames(*([b"event"] * (WINDOW + 9))))
        await receiver.has(WINDOW)
        assert len(receiver.asked) == WINDOW
        receiver.answer(*range(WINDOW))
        await receiver.has(WINDOW + 9)
        receiver.answer(*range(WINDOW, WINDOW + 9))
        assert len(await answers(reader, WINDOW + 9)) == WINDOW + 9


async def test_a_container_is_answered_in_order_and_ends_the_connection() -> None:
    receiver = Receiver()
    async with author(receiver) as (reader, writer):
        writer.write(frames(b"before", container(b"a", b"b"), b"never read"))
        await receiver.has(3)
        receiver.answer(2, 0, 1)
        assert await answers(reader) == [b"first before", b"a", b"b"]
    assert receiver.disconnected_for == []


async def test_a_container_that_is_damaged_is_taken_up_to_there() -> None:
    receiver = Receiver()
    async with author(receiver) as (reader, writer):
        writer.write(frames(container(b"a", b"b")[: 2 * 512 + 100]))
        await receiver.has(2)
        receiver.answer(0, 1)
        writer.write_eof()
        assert await answers(reader) == [
            b"first a",
            b"the container is damaged: a file begins with what is no header",
        ]
    assert receiver.disconnected_for == ["frame"]


@pytest.mark.slow
async def test_whoever_is_silent_is_left_unless_we_owe_him_an_answer() -> None:
    receiver = Receiver()
    async with author(receiver, timeout=0.1) as (reader, writer):
        writer.write(frames(b"a"))
        await receiver.has(1)
        await receiver.expired(2)
        assert receiver.disconnected_for == []
        receiver.answer(0)
        assert await answers(reader) == [b"first a"]
        assert receiver.disconnected_for == ["silent"]
    async with author(receiver, timeout=0.1) as (reader, writer):
        writer.write(frames(b"half")[:6])
        assert await answers(reader) == []
        assert receiver.disconnected_for == ["silent", "slow"]
    assert receiver.memory.held == 0


class Quick(Receiver):
    """Answers each document at once."""

    def submit(
        self, document: bytes | UnreadableDocument, host: str, reply: AnswerCallback, *, first: bool
    ) -> None:
        reply(bytes(MAX_FRAME))


@pytest.mark.slow
@pytest.mark.parametrize("end", [b"", bytes(4)], ids=["", "broken"])
async def test_whoever_does_not_read_the_answers_is_left(end: bytes) -> None:
    receiver = Quick()
    async with author(receiver, timeout=0.1) as (_, writer):
        writer.write(frames(*[b"event"] * 10_000) + end)
        while "slow" not in receiver.disconnected_for or not receiver.closed:
            await asyncio.sleep(0.001)


async def test_what_containers_hold_counts_until_they_are_answered() -> None:
    receiver, packed = Receiver(limit=400_000), frames(gzip.compress(container(*[b"a"] * (WINDOW + 9))))
    async with author(receiver) as (one, first), author(receiver) as (other, second):
        first.write(packed)
        await receiver.has(WINDOW)
        second.write(packed)
        assert await answers(one) == []
        await receiver.has(2 * WINDOW)
        receiver.answer(*range(WINDOW, 2 * WINDOW))
        await receiver.has(2 * WINDOW + 9)
        receiver.answer(*range(2 * WINDOW, 2 * WINDOW + 9))
        assert len(await answers(other)) == WINDOW + 9
    assert receiver.disconnected_for == ["memory"]


async def test_what_is_complete_and_waits_counts_as_well() -> None:
    """As when Kafka is away, and many have sent a long event each."""
    receiver = Receiver(limit=45_000)
    async with AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(author(receiver)) for _ in range(6)]
        for _, writer in peers:
            writer.write(frames(bytes(19_000)))
        while len(receiver.disconnected_for) < 2:
            await asyncio.sleep(0.001)
        assert (len(receiver.asked), receiver.memory.held) == (2, 4 * 19_000)
        for number in range(4):
            await receiver.has(number + 1)
            receiver.answer(number)


async def test_answers_of_one_moment_are_one_write() -> None:
    written: list[tuple[bytes, bool]] = []
    queue = AnswerQueue(lambda frames, broken: written.append((frames, broken)))
    replies = [queue.promise() for _ in range(4)]
    for reply, answer in reversed(list(zip(replies, (b"a", b"b", b"c"), strict=False))):
        reply(answer)
    await asyncio.sleep(0)
    assert (written, len(queue), queue.promised) == ([(frames(b"a", b"b", b"c"), False)], 1, 4)
    partial(replies[3], None)()
    await asyncio.sleep(0)
    assert written[1:] == [(b"", True)]
