"""What many ask for at once is made once, and no longer than it is true."""

import asyncio
import gzip

from starlette.requests import Request
from starlette.responses import Response

from nightwire.portal.serve.single_flight import ResponseCache, SingleFlight


async def test_who_asks_at_the_same_time_gets_what_is_being_made() -> None:
    made: list[int] = []

    async def make() -> int:
        made.append(1)
        await asyncio.sleep(0.01)
        return len(made)

    flights = SingleFlight[int](1)
    leaves = asyncio.ensure_future(flights.get("a", make))
    await asyncio.sleep(0)
    leaves.cancel()
    found = await asyncio.gather(*(flights.get("a", make) for _ in range(9)))
    assert [*found, await flights.get("b", make), await flights.get("a", make)] == [1] * 9 + [2, 3]


async def test_what_is_forgotten_is_made_anew_and_told_to_who_waits() -> None:
    made: list[int] = []

    async def make() -> int:
        made.append(1)
        number = len(made)
        await asyncio.sleep(0.01)
        return number

    flights = SingleFlight[int](9)
    waiting = asyncio.ensure_future(flights.get("a", make))
    await asyncio.sleep(0)
    flights.forget("a")
    assert [await flights.get("a", make), await waiting] == [2, 1]


async def test_an_error_is_told_to_all_and_not_kept() -> None:
    async def fail() -> int:
        raise ValueError

    async def make() -> int:
        return 7

    flights = SingleFlight[int](9)
    failed = await asyncio.gather(*(flights.get("a", fail) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in failed] == [ValueError] * 3
    assert await flights.get("a", make) == 7


def test_an_answer_is_made_again_when_something_has_come_in_and_packed_for_who_takes_it() -> None:
    made: list[int] = []

    async def make() -> Response:
        made.append(1)
        return Response(f"page {len(made)}", headers={"X-Mine": "not kept"})

    def asked(query: str, *headers: tuple[bytes, bytes]) -> Request:
        scope = {"type": "http", "headers": list(headers), "path": "/", "query_string": query.encode()}
        return Request(scope | {"server": ("portal", 80), "scheme": "http"})

    async def ask() -> list[bytes]:
        cache = ResponseCache()
        plain = [
            await cache.respond(asked(query), seen, make)
            for query, seen in (("", 1), ("", 1), ("most=1", 1), ("", 2), ("", 1))
        ]
        packed = await cache.respond(asked("", (b"accept-encoding", b"gzip")), 2, make)
        assert packed.headers["Content-Encoding"] == "gzip"
        assert "X-Mine" not in packed.headers
        return [*(one.body for one in plain), gzip.decompress(packed.body)]

    pages = asyncio.run(ask())
    assert pages == [b"page 1", b"page 1", b"page 2", b"page 3", b"page 1", b"page 3"]
