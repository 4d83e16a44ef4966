"""HTTP to those outside: bounded in time and size, redirects not followed."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field

import httpx

from nightwire.core.outside.ssrf import Refused, Unavailable

TIMEOUT = 10.0
"""Longest time for a request and its answer, as a whole, unless it says another. [s]"""
MAX_ANSWER = 1 << 20
"""Longest answer that is read, unless it says another. [byte]"""
AGAIN = frozenset({408, 425, 429})
"""Answers of the class 4xx after which asking again may help, unless it says others."""


@dataclass
class OutboundClient:
    """An HTTP client for pinned URLs; used by one thread.

    Attributes:
        timeout: Longest time for a request and its answer, as a whole. [s]
        again: Answers of the classes 3xx and 4xx after which asking again may help.
    """

    timeout: float = field(default_factory=lambda: TIMEOUT)
    again: Collection[int] = AGAIN
    _runner: asyncio.Runner = field(default_factory=asyncio.Runner)

    def __post_init__(self) -> None:
        self._client = httpx.AsyncClient(timeout=self.timeout, follow_redirects=False, trust_env=False)

    def send(self, request: httpx.Request, most: int = MAX_ANSWER) -> bytes:
        """Return the answer to a request that `PinnedUrl` made.

        Args:
            request: The request.
            most: Longest answer that is read; of 0 none is. [byte]

        Raises:
            Unavailable: There is none; asking again may help.
            Refused: There will never be one.
        """
        try:
            return self._runner.run(self._answer(request, most))
        except TimeoutError as error:
            raise Unavailable(f"no answer within {self.timeout:g} s") from error
        except httpx.HTTPError as error:
            raise Unavailable(f"no answer: {type(error).__name__} {error}".strip()) from error

    def close(self) -> None:
        """Close the connections."""
        self._runner.run(self._client.aclose())
        self._runner.close()

    async def _answer(self, request: httpx.Request, most: int) -> bytes:
        async with asyncio.timeout(self.timeout):  # httpx alone bounds each byte's wait, not their sum
            answer = await self._client.send(request, stream=True)
            try:
                body = b""
                if most:
                    body = await _read(answer, most)
            finally:
                await answer.aclose()
        _judge(answer, body, self.again)
        return body


def _judge(answer: httpx.Response, body: bytes, again: Collection[int]) -> None:
    if answer.is_success:
        return
    said = f"answers {answer.status_code} {body[:200].decode(errors='replace')}".strip()
    if answer.is_redirect:
        said += f" to {answer.headers.get('location', '')[:200]}: redirects are not followed"
    if (answer.is_redirect or answer.is_client_error) and answer.status_code not in again:
        raise Refused(said)
    raise Unavailable(said)


async def _read(answer: httpx.Response, most: int) -> bytes:
    body = bytearray()
    async for some in answer.aiter_raw():  # nobody asked for a packed one
        body += some
        if len(body) > most:
            raise Refused(f"the answer has more than {most:,} bytes")
    return bytes(body)
