"""One author's connection: in which order he is answered, and when he has to wait."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial

from nightwire.gateway import FrameDecoder, encode_frame
from nightwire.gateway.ingest.author_protocol import WINDOW, AuthorProtocol, UnreadableDocument
from nightwire.gateway.net.limits import MemoryBudget
from nightwire.gateway.vtp.container import open_container
from nightwire.gateway.vtp.conversation import AnswerCallback, AnswerQueue, MessageDeadline

MAX_FRAME = 20_000


class Watched(MessageDeadline):
    """Counts how often it came to its end."""

    ends = 0

    def ended(self, now: float, *, partial: int, owed: bool) -> None:
        self.ends += 1
        super().ended(now, partial=partial, owed=owed)


class Desk:
    """Answers with what it was given, when it is told to."""

    def __init__(self, limit: int = 1 << 20) -> None:
        self.intake = MemoryBudget(limit)
        self.asked: list[tuple[bytes, AnswerCallback]] = []
        self.dropped_for: list[str] = []
        self.left = 0
        self.patience: Watched | None = None

    def decide(
        self, document: bytes | UnreadableDocument, host: str, tell: AnswerCallback, *, first: bool
    ) -> None:
        said = document.words.encode() if isinstance(document, UnreadableDocument) else document
        self.asked.append((b"first " * first + said, tell))

    async def opened(self, container: bytes) -> Iterator[bytes]:
        return open_container(container, MAX_FRAME)

    def dropped(self, peer: str, reason: str, why: Exception) -> None:
        self.dropped_for.append(reason)

    def gone(self) -> None:
        self.left += 1

    async def has(self, count: int) -> None:
        """Wait until so many were asked in all."""
        async with asyncio.timeout(30):
            while len(self.asked) < count:
                await asyncio.sleep(0.001)

    async def was_patient(self, times: int) -> None:
        """Wait until patience with the author came so often to its end."""
        async with asyncio.timeout(30):
            while self.patience is None or self.patience.ends < times:
                await asyncio.sleep(0.001)

    def answer(self, *numbers: int) -> None:
        for number in numbers:
            said, tell = self.asked[number]
            tell(said)


@asynccontextmanager
async def author(
    desk: Desk, timeout: float = 30.0
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yield the author's end of a real connection to *desk*."""
    loop = asyncio.get_running_loop()

    def line() -> AuthorProtocol:
        desk.patience = Watched(timeout, timeout, loop.time())
        return AuthorProtocol(desk, desk.patience, MAX_FRAME, 1.0, desk.gone)

    server = await loop.create_server(line, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    async with asyncio.timeout(60):
        yield reader, writer
    writer.close()
    server.close()


async def answers(reader: asyncio.StreamReader, count: int | None = None) -> list[bytes]:
    """Return so many answers, or all until the connection ends."""
    decoder, found = FrameDecoder(), list[bytes]()
    while (count is None or len(found) < count) and (chunk := await reader.read(1 << 16)):
        decoder.receive(chunk)
        found += decoder
    return found


def frames(*documents: bytes) -> bytes:
    return b"".join(map(encode_frame, documents))


def test_answers_are_in_the_order_of_the_events_and_the_first_is_told_so() -> None:
    async def scene() -> None:
        desk = Desk()
        async with author(desk) as (reader, writer):
            writer.write(frames(b"a", b"b", b"c"))
            await desk.has(3)
            desk.answer(2, 1)
            assert desk.intake.held == 1
            desk.answer(0)
            assert await answers(reader, 3) == [b"first a", b"b", b"c"]

    asyncio.run(scene())


def test_an_author_who_hangs_up_is_answered_first() -> None:
    async def scene() -> None:
        desk = Desk()
        async with author(desk) as (reader, writer):
            writer.write(frames(b"a", b"b"))
            writer.write_eof()
            await desk.has(2)
            desk.answer(1, 0)
            assert await answers(reader) == [b"first a", b"b"]
        assert (desk.left, desk.dropped_for) == (1, [])

    asyncio.run(scene())


def test_what_cannot_be_answered_ends_the_connection_after_what_was_before_it() -> None:
    async def scene() -> None:
        desk = Desk()
        async with author(desk) as (reader, writer):
            writer.write(frames(b"a", b"b", b"c"))
            await desk.has(3)
            desk.asked[1][1](None)
            desk.answer(2, 0)
            assert await answers(reader) == [b"first a"]

    asyncio.run(scene())


def test_broken_framing_is_refused_after_the_events_before_it() -> None:
    async def scene() -> None:
        desk = Desk()
        async with author(desk) as (reader, writer):
            writer.write(frames(b"a") + bytes(4) + b"what follows is not read")
            await desk.has(2)
            desk.answer(1, 0)
            writer.write_eof()
            assert await answers(reader) == [b"first a", b"a frame of no bytes"]
        assert desk.dropped_for == ["frame"]

    asyncio.run(scene())


def test_where_there_is_no_room_the_author_waits_and_loses_nothing() -> None:
    async def scene() -> None:
        desk = Desk(limit=100)
        documents = [bytes([65 + number]) * 40 for number in range(20)]
        async with author(desk) as (reader, writer):
            writer.write(frames(*documents))
            for number in range(20):
                await desk.has(min(20, number + 2))
                assert len(desk.asked) <= number + 2  # two are all that there is room for
                desk.answer(number)
            found = await answers(reader, 20)
            assert [found[0].removeprefix(b"first "), *found[1:]] == documents
            assert desk.intake.held == 0

    asyncio.run(scene())


def test_no_more_than_a_window_is_dealt_with_at_once() -> None:
    async def scene() -> None:
        desk = Desk()
        async with author(desk) as (reader, writer):
            writer.write(frames(*([b"event"] * (WINDOW + 9))))
            await desk.has(WINDOW)
            assert len(desk.asked) == WINDOW
            desk.answer(*range(WINDOW))
            await desk.has(WINDOW + 9)
            desk.answer(*range(WINDOW, WINDOW + 9))
            assert len(await answers(reader, WINDOW + 9)) == WINDOW + 9

    asyncio.run(scene())


def test_a_container_is_answered_in_order_and_ends_the_connection(container: Callable[..., bytes]) -> None:
    async def scene() -> None:
        desk = Desk()
        async with author(desk) as (reader, writer):
            writer.write(frames(b"before", container(b"a", b"b"), b"never read"))
            await desk.has(3)
            desk.answer(2, 0, 1)
            assert await answers(reader) == [b"first before", b"a", b"b"]
        assert desk.dropped_for == []

    asyncio.run(scene())


def test_a_container_that_is_damaged_is_taken_up_to_there(container: Callable[..., bytes]) -> None:
    async def scene() -> None:
        desk = Desk()
        async with author(desk) as (reader, writer):
            writer.write(frames(container(b"a", b"b")[: 2 * 512 + 100]))
            await desk.has(2)
            desk.answer(0, 1)
            writer.write_eof()
            assert await answers(reader) == [
                b"first a",
                b"the container is damaged: a file begins with what is no header",
            ]
        assert desk.dropped_for == ["frame"]

    asyncio.run(scene())


def test_whoever_is_silent_is_left_unless_we_owe_him_an_answer() -> None:
    async def scene() -> None:
        desk = Desk()
        async with author(desk, timeout=0.1) as (reader, writer):
            writer.write(frames(b"a"))
            await desk.has(1)
            await desk.was_patient(2)
            assert desk.dropped_for == []
            desk.answer(0)
            assert await answers(reader) == [b"first a"]
            assert desk.dropped_for == ["silent"]
        async with author(desk, timeout=0.1) as (reader, writer):
            writer.write(frames(b"half")[:6])
            assert await answers(reader) == []
            assert desk.dropped_for == ["silent", "slow"]
        assert desk.intake.held == 0

    asyncio.run(scene())


def test_answers_of_one_moment_are_one_write() -> None:
    async def scene() -> None:
        written: list[tuple[bytes, bool]] = []
        order = AnswerQueue(lambda said, broken: written.append((said, broken)))
        tells = [order.owe() for _ in range(4)]
        for tell, said in reversed(list(zip(tells, (b"a", b"b", b"c"), strict=False))):
            tell(said)
        await asyncio.sleep(0)
        assert (written, len(order), order.promised) == ([(frames(b"a", b"b", b"c"), False)], 1, 4)
        partial(tells[3], None)()
        await asyncio.sleep(0)
        assert written[1:] == [(b"", True)]

    asyncio.run(scene())
