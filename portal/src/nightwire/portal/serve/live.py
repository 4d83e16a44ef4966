"""Live lists as server-sent events: the newest alerts of each half second, the rest counted.

Equal requests share an interval's event, which is made once. Each stream sends at a moment of its
own within the interval, so that the CPU is never busy with all of them at once.
"""

import asyncio
import json
import random
import sys
import time
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from nightwire.portal.account import address_of
from nightwire.portal.account.sessions import LIVE_LIST
from nightwire.portal.model import Row
from nightwire.portal.records import MissingError
from nightwire.portal.serve.portal import Portal, chosen_topics, number_param
from nightwire.portal.serve.single_flight import SingleFlight
from nightwire.schemas import SchemaError
from nightwire.schemas.serving import RefusedError, source_of

Client = tuple[bool, str]
"""Whether it shows who it is, and its `source_of`."""
Event = tuple[int, bytes]
"""Number of the newest alert, and the event."""
INTERVAL = 0.5
"""Time between two events. [s]"""
MAX_ROWS = 8
"""Alerts in one event: nobody sees more."""
KEEPALIVE = 10
"""Intervals without an event after which a comment is sent: a proxy keeps the connection, and
closes it where its own client is gone, which would count as open until then."""
CACHED_ROWS = 256
"""Newest rows whose JSON is cached."""
CACHED_EVENTS = 32
"""Newest events that are cached: one of a hundred alerts with stamps has a megabyte."""
MAX_OPEN, MAX_PER_SOURCE = 300, 8
"""Streams that are open at once, of strangers and of others each, and those of one client."""


class LiveStreams:
    """The open streams of server-sent events.

    Args:
        ending: Returns whether the server shuts down.
    """

    def __init__(self, ending: Callable[[], bool] = lambda: False) -> None:
        self._open = Counter[Client]()
        self._texts, self._shared = SingleFlight[str](CACHED_ROWS), SingleFlight[Event](CACHED_EVENTS)
        self.ending = ending

    @property
    def count(self) -> int:
        """Number of open streams."""
        return self._open.total()

    async def answer(self, portal: Portal, http: Request) -> Response:
        """Open a stream of ``?topic=`` or ``?survey=``, from ``?after=`` on; to HEAD, none.

        A proxy takes an answer to HEAD for done: the next request on its connection would wait.

        Raises:
            RefusedError: The user is not known, or 429: too many streams are open.
        """
        await portal.visible(http)
        client = portal.authorizer.shows_who(http), source_of(address_of(http))
        self._check(client, 1)
        if http.method == "HEAD":
            return Response(media_type="text/event-stream")
        after = http.headers.get("Last-Event-ID") or http.query_params.get("after") or ""
        start = int(after) if after.isdecimal() and len(after) < 16 else sys.maxsize
        most = int(number_param(http, "most", MAX_ROWS, 1, 100))
        events = self._events(portal, http, client, start, most)
        return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    def _check(self, client: Client, more: int) -> None:
        """Refuse *more* streams of *client* where too many are open."""
        alike = sum(count for (known, _), count in self._open.items() if known == client[0])
        if alike + more > MAX_OPEN or self._open[client] + more > MAX_PER_SOURCE:
            raise RefusedError(429, "too many live lists are open; close one")

    async def _events(
        self, portal: Portal, http: Request, client: Client, number: int, most: int
    ) -> AsyncIterator[bytes]:
        """Yield events; the user's rights are asked anew for each, so that none outlives."""
        self._open[client] += 1
        try:
            self._check(client, 0)  # several may have come before one was counted
            setattr(http.state, LIVE_LIST, True)
            shown_trouble, idle, strips = "", 0, "strips" in http.query_params
            moment = INTERVAL * random.random()  # noqa: S311  (no secret)
            yield b"retry: 2000\n\n"
            while not self.ending():
                topics = chosen_topics(http, await portal.authorizer.visible(http, portal.topics()))
                asked = min(number, portal.recent.newest_number(topics)), topics, most, strips
                key = int(time.monotonic() / INTERVAL), *asked
                number, event = await self._shared.get(key, partial(self._event, portal, *asked))
                idle = 0 if event else idle + 1
                if (trouble := portal.trouble()) != shown_trouble:
                    shown_trouble = trouble
                    event += f"event: state\ndata: {json.dumps(trouble)}\n\n".encode()
                if idle % KEEPALIVE == KEEPALIVE - 1:
                    event += b": here\n\n"
                if event:
                    yield event
                await asyncio.sleep(INTERVAL - (time.monotonic() - moment) % INTERVAL)
        except RefusedError as error:  # a right that was revoked, a topic that is gone
            if error.status == 503:  # Kafka is unavailable: the browser connects again
                return
            yield f"event: refused\ndata: {json.dumps(str(error))}\n\n".encode()
        finally:
            self._open -= Counter([client])

    async def _event(
        self, portal: Portal, number: int, topics: frozenset[str], most: int, strips: bool
    ) -> Event:
        newest = portal.recent.newest_number(topics)
        rows, more = portal.recent.since(number, topics, most)
        newest = max([newest, *(row.number for row in rows[:1])])  # some came in between
        if not rows:
            return newest, b""
        texts = (self._texts.get((row, strips), partial(self._text, portal, row, strips)) for row in rows)
        found = ", ".join(await asyncio.gather(*texts))
        return newest, f'id: {newest}\nevent: rows\ndata: {{"rows": [{found}], "more": {more}}}\n\n'.encode()

    async def _text(self, portal: Portal, row: Row, strips: bool) -> str:
        """Return a row as JSON, with its stamps as a data URL if *strips* and there are any."""
        found = row.as_json()
        if strips and row.stamps:
            with suppress(MissingError, SchemaError):
                strip = b64encode(await portal.strip(row.record_id)).decode()
                found["strip"] = f"data:image/jpeg;base64,{strip}"
        return json.dumps(found)
