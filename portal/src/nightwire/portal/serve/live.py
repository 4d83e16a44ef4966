"""What comes in, as server-sent events: the newest of each half second, the rest counted.

Those who ask for the same are told the same bytes within a beat, which are made once; each list at
a moment of its own, so that the stream's carriers never wait for all of them.
"""

import asyncio
import json
import random
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial

from starlette.requests import Request
from starlette.responses import StreamingResponse

from nightwire.portal.account.sessions import OPEN_LIST
from nightwire.portal.authorization import address_of
from nightwire.portal.model import Row
from nightwire.portal.records import MissingError
from nightwire.portal.serve.once import Once
from nightwire.portal.serve.portal import Portal, chosen, number
from nightwire.schemas import SchemaError
from nightwire.schemas.serving import RefusedError, source_of

Told = tuple[int, bytes]
"""Number of the newest alert, and the event."""
BEAT = 0.5
"""Time between two messages. [s]"""
MOST = 8
"""Alerts in one message: more than that nobody sees."""
SILENCE = 30
"""Beats without an alert after which a comment says that we are there."""
WRITTEN = 256
"""Newest rows whose text is kept: who looks at the same alerts is told the same."""
SHARED = 32
"""Newest events that are kept: of a hundred alerts with stamps each has a megabyte."""
MOST_OPEN, MOST_OF_ONE = 300, 8
"""Streams that are open at once, and those of one `source_of`."""


class Streams:
    """The open streams of live alerts.

    Args:
        ending: Whether the server is about to leave.
    """

    def __init__(self, ending: Callable[[], bool] = lambda: False) -> None:
        self._open: dict[str, int] = {}
        self._written, self._told = Once[str](WRITTEN), Once[Told](SHARED)
        self.ending = ending

    @property
    def count(self) -> int:
        """How many are open."""
        return sum(self._open.values())

    async def answer(self, portal: Portal, http: Request) -> StreamingResponse:
        """Follow what ``?topic=`` or ``?survey=`` ask for, from ``?after=`` on.

        Raises:
            RefusedError: He is not let in, or too many streams are open.
        """
        await portal.visible(http)
        source = source_of(address_of(http))
        if self.count >= MOST_OPEN or self._open.get(source, 0) >= MOST_OF_ONE:
            raise RefusedError(429, "too many live lists are open; close one")
        after = http.headers.get("Last-Event-ID") or http.query_params.get("after") or ""
        start = int(after) if after.isdecimal() and len(after) < 16 else portal.recent.newest_number
        most = int(number(http, "most", MOST, 1, 100))
        events = self._events(portal, http, source, min(start, portal.recent.newest_number), most)
        return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def _events(
        self, portal: Portal, http: Request, source: str, number: int, most: int
    ) -> AsyncIterator[bytes]:
        """Yield events; who may read what is asked anew at each beat, so that no right outlives."""
        self._open[source] = self._open.get(source, 0) + 1
        try:
            setattr(http.state, OPEN_LIST, True)
            said, silent, drawn = "", 0, "strips" in http.query_params
            moment = BEAT * random.random()  # noqa: S311  (no secret)
            yield b"retry: 2000\n\n"
            while not self.ending():
                topics = chosen(http, await portal.authorizer.visible(http, portal.topics()))
                asked = number, topics, most, drawn
                told = int(time.monotonic() / BEAT), *asked
                number, event = await self._told.get(told, partial(self._event, portal, *asked))
                silent = 0 if event else silent + 1
                if (trouble := portal.trouble()) != said:
                    said = trouble
                    event += f"event: state\ndata: {json.dumps(trouble)}\n\n".encode()
                if silent % SILENCE == SILENCE - 1:
                    event += b": here\n\n"
                if event:
                    yield event
                await asyncio.sleep(BEAT - (time.monotonic() - moment) % BEAT)
        except RefusedError as error:  # a right that was taken away, a topic that is gone
            if error.status == 503:  # Kafka is silent: who listens comes again
                return
            yield f"event: refused\ndata: {json.dumps(str(error))}\n\n".encode()
        finally:
            self._open[source] -= 1
            if not self._open[source]:
                del self._open[source]

    async def _event(
        self, portal: Portal, number: int, topics: frozenset[str], most: int, drawn: bool
    ) -> Told:
        newest = portal.recent.newest_number
        rows, more = portal.recent.since(number, topics, most)
        newest = max([newest, *(row.number for row in rows[:1])])  # some came in between
        if not rows:
            return newest, b""
        texts = (
            self._written.get((row.number, drawn), partial(self._text, portal, row, drawn)) for row in rows
        )
        found = ", ".join(await asyncio.gather(*texts))
        return newest, f'id: {newest}\nevent: rows\ndata: {{"rows": [{found}], "more": {more}}}\n\n'.encode()

    async def _text(self, portal: Portal, row: Row, drawn: bool) -> str:
        """Return a row as JSON, its stamps *drawn* in it where they can be had."""
        found = row.as_json()
        if drawn and row.stamps:
            with suppress(MissingError, SchemaError):
                found["strip"] = (
                    "data:image/jpeg;base64," + b64encode(await portal.strip(row.record_id)).decode()
                )
        return json.dumps(found)
