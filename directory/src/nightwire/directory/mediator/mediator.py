"""Topics over HTTP: long poll, server-sent events, acknowledging, publishing."""

import asyncio
import json
import logging
import time
from collections import Counter as Counts
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from urllib.parse import urlencode

from prometheus_client import CollectorRegistry, Counter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from nightwire.core.congestion import Reduction
from nightwire.core.datagrams import Worth, worth_of
from nightwire.core.presence import ArchiveClient, SiteHttpError
from nightwire.directory.authorization import Authorizer
from nightwire.directory.mediator import formats
from nightwire.directory.mediator.client_pool import Key, Pool, Result, in_thread
from nightwire.directory.mediator.kafka_access import Who, properties_of
from nightwire.directory.mediator.priority import handler_of
from nightwire.directory.mediator.publishing import MAX_BATCH, Publisher, batch, raw
from nightwire.directory.mediator.read_request import Asked, asked
from nightwire.directory.mediator.session import Session, text
from nightwire.directory.mediator.slow_link import SlowLinkSession
from nightwire.directory.mediator.stamps import AlertFetcher, picture
from nightwire.filters.language import FilterError
from nightwire.schemas import AlertDecoder, RegistryAwayError, SchemaError, SchemaRegistry
from nightwire.schemas.serving import RefusedError, Token, body_of
from nightwire.schemas.topics import MAX_MESSAGE

log = logging.getLogger("nightwire.directory")

PAST = 5.0
"""Longest wait for the archive, which fresh alerts wait for, too. [s]"""
SLICE = 0.25
"""Longest wait for Kafka before it is looked whether somebody still listens. [s]"""
PATIENCE = 1.0
"""How long a request waits for the one before it, of the same session, to end. [s]"""
PING = 15.0
"""Silence after which a stream of events says that it is there. [s]"""
SESSIONS, SESSIONS_OF_ONE = 128, 32
PUBLISHERS, AT_ONCE, AT_ONCE_OF_ONE = 64, 64, 16
"""Most writers that are kept, requests that write at once, and such of one user."""

FETCHERS, FETCHERS_OF_ONE = 128, 32
"""Most clients that fetch stamps, one a user and partition."""

Answering = Callable[[Request], Awaitable[Response]]


class Mediator:
    """Reads and writes the topics of a Kafka for who asks over HTTP, with his own rights.

    Args:
        bootstrap: Kafka's address.
        registry: The schema registry's; empty where there is none.
        collected: Where its counters go.
        archive: The archive's URL; empty where there is none.

    Attributes:
        ending: Whether the process is about to end: waits and streams end, too.
    """

    def __init__(
        self, bootstrap: str, registry: str, collected: CollectorRegistry, archive: str = ""
    ) -> None:
        self._bootstrap, self._decoder = bootstrap, AlertDecoder(SchemaRegistry(registry or None))
        self._archive = archive
        self._sessions = Pool[Session](SESSIONS, SESSIONS_OF_ONE)
        self._publishers = Pool[Publisher](PUBLISHERS, 1)
        self._fetchers = Pool[AlertFetcher](FETCHERS, FETCHERS_OF_ONE)
        self.ending: Callable[[], bool] = lambda: False
        self._writing = Counts[str | bytes]()
        labels = ["direction", "topic"]
        name, what = "nightwire_mediator", "read (out) and written (in) over HTTP, by topic."
        self._records = Counter(f"{name}_records_total", f"Records {what}", labels, registry=collected)
        self._bytes = Counter(f"{name}_bytes_total", f"Bytes of values {what}", labels, registry=collected)
        what = "Records over slow links: full, reduced or skipped; of these followed, expired or empty."
        labels = ["topic", "became"]
        self._slow = Counter("nightwire_slow_link_records_total", what, labels, registry=collected)

    def endpoints(self, authorizer: Authorizer) -> list[tuple[str, str, Answering]]:
        """Return method, path and what answers there, for whom *authorizer* lets in."""
        path = "/topics/{topic}"
        return [
            ("GET", f"{path}/records", partial(self._read, authorizer)),
            ("POST", f"{path}/records", partial(self._publish, authorizer)),
            ("POST", f"{path}/commit", partial(self._commit, authorizer)),
            (
                "GET",
                f"{path}/records/{{partition:int}}/{{offset:int}}/stamps/{{name}}",
                partial(self._stamp, authorizer),
            ),
        ]

    async def _read(self, authorizer: Authorizer, http: Request) -> Response:
        """Answer with the next records, or with a stream of them."""
        question, who, key = await _asked(authorizer, http)
        session = await self._sessions.get(key, partial(self._session, authorizer, question, who))
        with ExitStack() as turn:
            await _wait(session.turn)
            turn.callback(session.turn.release)
            await self._reading(key, partial(session.go_on, question.after, question.paid))
            if not question.events:
                return await self._poll(key, session, question, http)
            first = await self._reading(key, partial(self._events, session, question))
            return EventStream(self._stream(key, session, question, who, first), turn.pop_all())

    def _session(self, authorizer: Authorizer, question: Asked, who: Who) -> Session:
        client = properties_of(authorizer.access, self._bootstrap, who)
        where = question.topic, question.group
        if question.slow is None:
            return Session(client, *where)
        return SlowLinkSession(
            self._bootstrap,
            client,
            *where,
            limit=question.slow,
            handler=Reduction(self._decoder, question.rank, self._worth(question)),
            count=lambda became, count: self._slow.labels(question.topic, became).inc(count),
            share=self._sessions.share,
            archive=self._past(question.topic, who),
        )

    def _past(self, topic: str, who: Who) -> ArchiveClient | None:
        """Return what asks the archive, as *who*; None where it has nothing of *topic*."""
        if not (self._archive and topic.startswith("alerts.")):
            return None
        login = who.text if isinstance(who, Token) else who and (who.name, who.password)
        try:
            return ArchiveClient(self._archive, login, timeout=PAST)
        except SiteHttpError as error:
            log.warning("what Kafka has forgotten is not asked for: %s", error)
            return None

    def _worth(self, question: Asked) -> Worth | None:
        if not question.first:
            return None
        survey = question.topic.removeprefix("alerts.")
        try:
            return worth_of(handler_of(question.first, survey), survey, self._decoder)
        except (FilterError, SchemaError) as error:
            raise RefusedError(400, f"first: {error}") from error

    async def _poll(self, key: Key, session: Session, question: Asked, http: Request) -> Response:
        deadline = time.monotonic() + question.timeout
        while True:
            wait = min(SLICE, max(0.0, deadline - time.monotonic()))
            found = await self._reading(key, partial(self._batch, session, question, wait))
            if found is not None or time.monotonic() >= deadline or self.ending():
                break
            if await http.is_disconnected():
                break
        if found is None:
            session.check_there()
        following = session.next_question(question.after)
        url = f"{http.url.path}?{urlencode({**http.query_params, **following})}"
        headers = {"Nightwire-After": following["after"], "Link": f'<{url}>; rel="next"', **session.state()}
        if found is None:
            empty = JSONResponse([]) if question.form == "json" else Response(status_code=204)
            empty.headers.update(headers)
            return empty
        media_type, more, body = found
        return Response(body, headers={**headers, **more}, media_type=media_type)

    async def _stream(
        self, key: Key, session: Session, question: Asked, who: Who, first: bytes
    ) -> AsyncIterator[bytes]:
        """Yield events until the client leaves, his token ends, or Kafka refuses."""
        body, spoke = first or b": \n\n", time.monotonic()
        try:
            while not self.ending():
                _check_time(who)
                if body or time.monotonic() - spoke > PING:
                    yield body or b": \n\n"
                    spoke = time.monotonic()
                body = await self._reading(key, partial(self._events, session, question))
        except RefusedError as error:
            said = {"status": error.status, "message": str(error)}
            yield f"event: error\ndata: {json.dumps(said)}\n\n".encode()

    def _batch(self, session: Session, question: Asked, wait: float) -> formats.Batch | None:
        """Return the next records in the form that is asked for; None where none came in time."""
        messages = session.take(question.most, question.size, wait)
        if not messages:
            return None
        self._count("out", question.topic, [len(message) for message in messages])
        if question.form == "avro":
            return formats.frames(messages)
        if question.form == "raw":
            return formats.one_raw(messages) if question.most == 1 else formats.multipart(messages)
        return formats.json_array(messages, self._value(question), stamps=question.stamps)

    def _events(self, session: Session, question: Asked) -> bytes:
        done = {**question.after, **session.delivered}
        messages = session.take(question.most, question.size, SLICE)
        cursors = []
        for message in messages:
            done[message.partition() or 0] = (message.offset() or 0) + 1
            cursors.append(text(done))
        self._count("out", question.topic, [len(message) for message in messages])
        return formats.events(messages, self._value(question), cursors, stamps=question.stamps)

    async def _commit(self, authorizer: Authorizer, http: Request) -> Response:
        """Acknowledge what an open session delivered, and answer when Kafka has it."""
        question, _, key = await _asked(authorizer, http)
        if (session := self._sessions.there(key)) is None:
            raise RefusedError(409, "nothing is being read here: acknowledge by after= of the next request")
        await in_thread(partial(session.commit, question.after, question.paid))
        return Response(status_code=204)

    async def _stamp(self, authorizer: Authorizer, http: Request) -> Response:
        """Answer with a stamp of the alert at an offset."""
        who, named = await authorizer.login(http), http.path_params
        _check_time(who)
        place, offset = (named["topic"], named["partition"]), named["offset"]
        key = Key(_user(who, http), place[0], member=str(place[1]))
        fetcher = await self._fetchers.get(
            key,
            lambda: AlertFetcher(
                self._bootstrap, properties_of(authorizer.access, self._bootstrap, who), place
            ),
        )
        message = await in_thread(partial(fetcher.record, offset))
        media_type, body = await in_thread(partial(picture, message, self._decoder, named["name"]))
        self._count("out", place[0], [len(body)])
        return Response(body, media_type=media_type)

    async def _publish(self, authorizer: Authorizer, http: Request) -> Response:
        """Write a record, or a batch of them, and answer when Kafka has acknowledged."""
        topic, who = http.path_params["topic"], await authorizer.writer(http)
        _check_time(who)
        user, many = _user(who, http), http.headers.get("Content-Type", "").startswith("application/json")
        with self._place(user):
            publisher = await self._publishers.get(
                Key(user), lambda: Publisher(properties_of(authorizer.access, self._bootstrap, who))
            )
            body = await body_of(http, MAX_BATCH if many else MAX_MESSAGE)
            records = await in_thread(partial(batch, body)) if many else [raw(body, http.headers)]
            said = await in_thread(partial(publisher.publish, topic, records))
        there = zip(records, said, strict=True)
        self._count("in", topic, [len(record.value or b"") for record, one in there if "offset" in one])
        if failed := [one for one in said if "status" in one]:
            self._publishers.drop(Key(user))
            if not many:
                raise RefusedError(failed[0]["status"], failed[0]["message"])
        statuses = {one.get("status", 200) for one in said}
        return JSONResponse({"records": said}, statuses.pop() if len(statuses) == 1 else 207)

    async def _reading(self, key: Key, work: Callable[[], Result]) -> Result:
        """Return what *work* does with the session of *key*, which is closed when it fails."""
        try:
            return await in_thread(work)
        except RegistryAwayError as error:
            raise RefusedError(503, str(error)) from error
        except RefusedError:
            self._sessions.drop(key)
            raise

    @contextmanager
    def _place(self, user: str | bytes) -> Iterator[None]:
        """Hold a place among those who write at once within the block."""
        if self._writing.total() >= AT_ONCE or self._writing[user] >= AT_ONCE_OF_ONE:
            raise RefusedError(
                429, f"{self._writing[user]} requests of yours are being written: wait for one"
            )
        self._writing[user] += 1
        try:
            yield
        finally:
            self._writing[user] -= 1
            self._writing += Counts()  # forget who has none

    def _value(self, question: Asked) -> formats.ValueForm:
        if question.form == "json":
            return partial(formats.decoded, self._decoder)
        return formats.whole

    def _count(self, direction: str, topic: str, sizes: list[int]) -> None:
        if sizes:
            self._records.labels(direction, topic).inc(len(sizes))
            self._bytes.labels(direction, topic).inc(sum(sizes))


class EventStream(StreamingResponse):
    """Server-sent events, and *turn*, which ends with them."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes], turn: ExitStack) -> None:
        super().__init__(events)
        self._turn = turn

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        with self._turn:
            await super().__call__(scope, receive, send)


async def _asked(authorizer: Authorizer, http: Request) -> tuple[Asked, Who, Key]:
    question, who = asked(http), await authorizer.login(http)
    _check_time(who)
    slow = "" if question.slow is None else f"{question.slow} {question.rank} {question.first}"
    return question, who, Key(_user(who, http), question.topic, question.group, question.member, slow)


async def _wait(turn: asyncio.Lock) -> None:
    try:
        await asyncio.wait_for(turn.acquire(), PATIENCE)
    except TimeoutError as error:
        why = "another request reads here, in this group: wait for it, or name another member="
        raise RefusedError(409, why) from error


def _check_time(who: Who) -> None:
    if isinstance(who, Token) and time.time() >= who.expires:
        raise RefusedError(401, "the token has ended")


def _user(who: Who, http: Request) -> str | bytes:
    return who.digest if who is not None else http.client.host if http.client else ""
