"""Requests over HTTP to those outside: where they may go, how long they take, what answers mean."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx

from nightwire.flows.terminals.address import PinnedUrl, pinned
from nightwire.flows.terminals.outgoing import BEFORE, Refused, Unavailable, secret

TIMEOUT = 10.0
"""Longest time for a request and its answer, as a whole. [s]"""
MAX_ANSWER = 1 << 20
"""Longest answer that is read. [byte]"""
AGAIN = {408, 425, 429}
"""Answers of the class 4xx after which asking again may help."""


def _client() -> httpx.AsyncClient:
    return httpx.AsyncClient(timeout=TIMEOUT, follow_redirects=False, trust_env=False)


@dataclass
class Outside:
    """Asks those outside; used by one thread.

    Attributes:
        inside: Whether addresses of private networks are allowed.
    """

    inside: bool
    _client: httpx.AsyncClient = field(default_factory=_client)
    _runner: asyncio.Runner = field(default_factory=asyncio.Runner)

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Post *body*; what is answered does not matter, however long it is.

        Args:
            url: Where to, or the variable that holds it.
            body: What is posted.
            headers: Of the request.

        Raises:
            Unavailable: It was not taken; asking again may help.
            Refused: It will never be.
        """
        self._ask(self._pinned(url).request(body, headers), most=0)

    def ask(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Return the answer to a request.

        Raises:
            Unavailable: There is none; asking again may help.
            Refused: There will never be one.
        """
        return self._ask(self._pinned(url).request(body, headers, method), most=MAX_ANSWER)

    def close(self) -> None:
        """Close the connections."""
        self._runner.run(self._client.aclose())
        self._runner.close()

    def _pinned(self, url: str) -> PinnedUrl:
        try:
            return pinned(secret(url), inside=self.inside)
        except Refused:
            if not url.startswith(BEFORE):
                raise
            raise Refused(f"{url} holds no URL that may be asked") from None  # it is a secret

    def _ask(self, request: httpx.Request, most: int) -> bytes:
        try:
            return self._runner.run(self._answer(request, most))
        except TimeoutError as error:
            raise Unavailable(f"no answer within {TIMEOUT:g} s") from error
        except httpx.HTTPError as error:
            raise Unavailable(f"no answer: {type(error).__name__} {error}".strip()) from error

    async def _answer(self, request: httpx.Request, most: int) -> bytes:
        async with asyncio.timeout(TIMEOUT):  # httpx alone bounds each byte's wait, not their sum
            answer = await self._client.send(request, stream=True)
            try:
                body = b""
                if most:
                    body = await _read(answer, most)
            finally:
                await answer.aclose()
        _judge(answer, body)
        return body


def _judge(answer: httpx.Response, body: bytes) -> None:
    if answer.is_success:
        return
    said = f"answers {answer.status_code} {body[:200].decode(errors='replace')}".strip()
    if answer.is_redirect:
        raise Refused(f"{said} to {answer.headers.get('location', '')[:200]}: redirects are not followed")
    if answer.is_client_error and answer.status_code not in AGAIN:
        raise Refused(said)
    raise Unavailable(said)


async def _read(answer: httpx.Response, most: int) -> bytes:
    body = b""
    async for some in answer.aiter_raw():  # nobody asked for a packed one
        body += some
        if len(body) > most:
            raise Refused(f"the answer has more than {most} bytes")
    return body
