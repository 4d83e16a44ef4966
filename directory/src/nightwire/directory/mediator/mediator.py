"""Topics over HTTP: long poll, server-sent events, acknowledgement, publishing."""

import asyncio
import json
import logging
import time
from collections import Counter as Counts
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
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
from nightwire.directory.mediator.client_pool import ClientPool, Key, Result, in_thread
from nightwire.directory.mediator.kafka_access import Credentials, client_properties
from nightwire.directory.mediator.priority import compile_priority
from nightwire.directory.mediator.publishing import MAX_BATCH, Publisher, parse_batch, parse_raw
from nightwire.directory.mediator.read_request import ReadRequest, parse_read_request
from nightwire.directory.mediator.session import Session, format_cursor
from nightwire.directory.mediator.slow_link import SlowLinkSession
from nightwire.directory.mediator.stamps import AlertFetcher, stamp_image
from nightwire.filters.language import FilterError
from nightwire.schemas import AlertDecoder, RegistryAwayError, SchemaError, SchemaRegistry
from nightwire.schemas.serving import RefusedError, Token, body_of
from nightwire.schemas.topics import MAX_MESSAGE

log = logging.getLogger("nightwire.directory")

ARCHIVE_TIMEOUT = 5.0
"""Longest wait for the archive; fresh alerts wait meanwhile. [s]"""
POLL_TIME = 0.25
"""Longest wait for Kafka between two checks that the client is connected. [s]"""
LOCK_TIMEOUT = 1.0
"""How long a request waits for the session's previous one. [s]"""
KEEPALIVE = 15.0
"""Silence after which a stream of events sends a comment. [s]"""
SESSIONS, SESSIONS_PER_USER = 128, 32
PUBLISHERS, WRITES, WRITES_PER_USER = 64, 64, 16
"""Most producers in the pool, parallel writes, and such of one user."""

FETCHERS, FETCHERS_PER_USER = 128, 32
"""Most stamp fetchers in all (one a user and partition), and of one user."""

Handler = Callable[[Request], Awaitable[Response]]
Endpoint = tuple[str, str, Handler]
"""Method, path and handler."""


class Mediator:
    """Reads and writes a Kafka's topics for HTTP clients, with their own credentials.

    Args:
        bootstrap: Kafka's address.
        registry: The schema registry's URL; empty for none.
        collected: The registry of its counters.
        archive: The archive's URL; empty for none.

    Attributes:
        stopping: Whether the process is about to end: polls and streams end, too.
    """

    def __init__(
        self, bootstrap: str, registry: str, collected: CollectorRegistry, archive: str = ""
    ) -> None:
        self._bootstrap, self._decoder = bootstrap, AlertDecoder(SchemaRegistry(registry or None))
        self._archive = archive
        self._sessions = ClientPool[Session](SESSIONS, SESSIONS_PER_USER)
        self._publishers = ClientPool[Publisher](PUBLISHERS, 1)
        self._fetchers = ClientPool[AlertFetcher](FETCHERS, FETCHERS_PER_USER)
        self.stopping: Callable[[], bool] = lambda: False
        self._writing = Counts[str | bytes]()
        labels = ["direction", "topic"]
        name, what = "nightwire_mediator", "read (out) and written (in) over HTTP, by topic."
        self._records = Counter(f"{name}_records_total", f"Records {what}", labels, registry=collected)
        self._bytes = Counter(f"{name}_bytes_total", f"Bytes of values {what}", labels, registry=collected)
        what = "Records over slow links: full, reduced or skipped; of these followed, expired or empty."
        labels = ["topic", "became"]
        self._slow = Counter("nightwire_slow_link_records_total", what, labels, registry=collected)

    def endpoints(self, authorizer: Authorizer) -> list[Endpoint]:
        """Return the endpoints of topics."""
        path = "/topics/{topic}"
        record = f"{path}/records/{{partition:int}}/{{offset:int}}"
        return [
            ("GET", f"{path}/records", partial(self._read, authorizer)),
            ("POST", f"{path}/records", partial(self._publish, authorizer)),
            ("POST", f"{path}/commit", partial(self._commit, authorizer)),
            ("GET", f"{record}/stamps/{{name}}", partial(self._stamp, authorizer)),
        ]

    async def _read(self, authorizer: Authorizer, http: Request) -> Response:
        """Answer with the next records, or with server-sent events."""
        request, login, key = await _parse_read(authorizer, http)
        session = await self._sessions.get(key, partial(self._session, authorizer, request, login))
        with ExitStack() as locks:
            await _acquire(session.request_lock)
            locks.callback(session.request_lock.release)
            await self._in_session(key, partial(session.resume, request.after, request.paid))
            if not request.events:
                return await self._poll(key, session, request, http)
            first = await self._in_session(key, partial(self._read_events, session, request))
            return EventStream(self._stream(key, session, request, login, first), locks.pop_all())

    def _session(self, authorizer: Authorizer, request: ReadRequest, login: Credentials) -> Session:
        client, where = self._client(authorizer, login), (request.topic, request.group)
        if request.slow is None:
            return Session(client, *where)
        return SlowLinkSession(
            self._bootstrap,
            client,
            *where,
            limit=request.slow,
            handler=Reduction(self._decoder, request.rank, self._priority(request)),
            count=lambda became, count: self._slow.labels(request.topic, became).inc(count),
            share=self._sessions.share,
            archive=self._archive_client(request.topic, login),
        )

    def _client(self, authorizer: Authorizer, login: Credentials) -> dict[str, Any]:
        return client_properties(authorizer.access, self._bootstrap, login)

    def _archive_client(self, topic: str, login: Credentials) -> ArchiveClient | None:
        """Return the archive's client with the credentials *login*; None for none of *topic*."""
        if not (self._archive and topic.startswith("alerts.")):
            return None
        shown = login.text if isinstance(login, Token) else login and (login.name, login.password)
        try:
            return ArchiveClient(self._archive, shown, timeout=ARCHIVE_TIMEOUT)
        except SiteHttpError as error:
            log.warning("what Kafka has forgotten is not asked for: %s", error)
            return None

    def _priority(self, request: ReadRequest) -> Worth | None:
        if not request.first:
            return None
        survey = request.topic.removeprefix("alerts.")
        try:
            return worth_of(compile_priority(request.first, survey), survey, self._decoder)
        except (FilterError, SchemaError) as error:
            raise RefusedError(400, f"first: {error}") from error

    async def _poll(self, key: Key, session: Session, request: ReadRequest, http: Request) -> Response:
        deadline = time.monotonic() + request.timeout
        while True:
            wait = min(POLL_TIME, max(0.0, deadline - time.monotonic()))
            found = await self._in_session(key, partial(self._read_batch, session, request, wait))
            if found is not None or time.monotonic() >= deadline or self.stopping():
                break
            if await http.is_disconnected():
                break
        if found is None:
            session.check_reachable()
        following = session.next_parameters(request.after)
        url = f"{http.url.path}?{urlencode({**http.query_params, **following})}"
        headers = {"Nightwire-After": following["after"], "Link": f'<{url}>; rel="next"', **session.headers()}
        if found is None:
            empty = JSONResponse([]) if request.format == "json" else Response(status_code=204)
            empty.headers.update(headers)
            return empty
        media_type, more, body = found
        return Response(body, headers={**headers, **more}, media_type=media_type)

    async def _stream(
        self, key: Key, session: Session, request: ReadRequest, login: Credentials, first: bytes
    ) -> AsyncIterator[bytes]:
        """Yield events until the client disconnects, its token expires, or Kafka refuses."""
        body, sent_at = first or b": \n\n", time.monotonic()
        try:
            while not self.stopping():
                _check_expiry(login)
                if body or time.monotonic() - sent_at > KEEPALIVE:
                    yield body or b": \n\n"
                    sent_at = time.monotonic()
                body = await self._in_session(key, partial(self._read_events, session, request))
        except RefusedError as error:
            refusal = {"status": error.status, "message": str(error)}
            yield f"event: error\ndata: {json.dumps(refusal)}\n\n".encode()

    def _read_batch(self, session: Session, request: ReadRequest, wait: float) -> formats.EncodedBatch | None:
        """Return the next records in the request's format; None where none came in time."""
        messages = session.poll(request.max_records, request.max_bytes, wait)
        if not messages:
            return None
        self._count("out", request.topic, [len(message) for message in messages])
        if request.format == "avro":
            return formats.frames(messages)
        if request.format == "raw":
            return formats.raw(messages) if request.max_records == 1 else formats.multipart(messages)
        return formats.json_array(messages, self._value(request), stamps=request.stamps)

    def _read_events(self, session: Session, request: ReadRequest) -> bytes:
        done = {**request.after, **session.delivered}
        messages = session.poll(request.max_records, request.max_bytes, POLL_TIME)
        cursors = []
        for message in messages:
            done[message.partition() or 0] = (message.offset() or 0) + 1
            cursors.append(format_cursor(done))
        self._count("out", request.topic, [len(message) for message in messages])
        return formats.events(messages, self._value(request), cursors, stamps=request.stamps)

    async def _commit(self, authorizer: Authorizer, http: Request) -> Response:
        """Acknowledge the records before ``after=``; answer when Kafka has committed."""
        request, _, key = await _parse_read(authorizer, http)
        if (session := self._sessions.existing(key)) is None:
            raise RefusedError(409, "nothing is being read here: acknowledge by after= of the next request")
        await in_thread(partial(session.commit, request.after, request.paid))
        return Response(status_code=204)

    async def _stamp(self, authorizer: Authorizer, http: Request) -> Response:
        """Answer with a stamp of the alert at an offset."""
        login, named = await authorizer.login(http), http.path_params
        _check_expiry(login)
        partition, offset = (named["topic"], named["partition"]), named["offset"]
        key = Key(_user_key(login, http), partition[0], member=str(partition[1]))
        fetcher = await self._fetchers.get(
            key,
            lambda: AlertFetcher(self._bootstrap, self._client(authorizer, login), partition),
        )
        message = await in_thread(partial(fetcher.record, offset))
        media_type, body = await in_thread(partial(stamp_image, message, self._decoder, named["name"]))
        self._count("out", partition[0], [len(body)])
        return Response(body, media_type=media_type)

    async def _publish(self, authorizer: Authorizer, http: Request) -> Response:
        """Write a record, or a batch of them; answer when Kafka has acknowledged them."""
        topic, login = http.path_params["topic"], await authorizer.writer(http)
        _check_expiry(login)
        user, headers = _user_key(login, http), http.headers
        is_batch = headers.get("Content-Type", "").startswith("application/json")
        with self._write_slot(user):
            publisher = await self._publishers.get(
                Key(user), lambda: Publisher(self._client(authorizer, login))
            )
            body = await body_of(http, MAX_BATCH if is_batch else MAX_MESSAGE)
            records = await in_thread(partial(parse_batch, body)) if is_batch else [parse_raw(body, headers)]
            outcomes = await in_thread(partial(publisher.publish, topic, records))
        there = zip(records, outcomes, strict=True)
        self._count("in", topic, [len(record.value or b"") for record, one in there if "offset" in one])
        if failed := [one for one in outcomes if "status" in one]:
            self._publishers.drop(Key(user))
            if not is_batch:
                raise RefusedError(failed[0]["status"], failed[0]["message"])
        statuses = {one.get("status", 200) for one in outcomes}
        return JSONResponse({"records": outcomes}, statuses.pop() if len(statuses) == 1 else 207)

    async def _in_session(self, key: Key, work: Callable[[], Result]) -> Result:
        """Return the result of *work* with the session of *key*; close that when Kafka refuses."""
        try:
            return await in_thread(work)
        except RegistryAwayError as error:
            raise RefusedError(503, str(error)) from error
        except RefusedError:
            self._sessions.drop(key)
            raise

    @contextmanager
    def _write_slot(self, user: str | bytes) -> Iterator[None]:
        """Count the block as one of the parallel writes of *user*."""
        if self._writing.total() >= WRITES or self._writing[user] >= WRITES_PER_USER:
            raise RefusedError(
                429, f"{self._writing[user]} requests of yours are being written: wait for one"
            )
        self._writing[user] += 1
        try:
            yield
        finally:
            self._writing[user] -= 1
            self._writing += Counts()  # drops zeros

    def _value(self, request: ReadRequest) -> formats.ValueFields:
        if request.format == "json":
            return partial(formats.decoded_value, self._decoder)
        return formats.base64_value

    def _count(self, direction: str, topic: str, sizes: list[int]) -> None:
        if sizes:
            self._records.labels(direction, topic).inc(len(sizes))
            self._bytes.labels(direction, topic).inc(sum(sizes))


class EventStream(StreamingResponse):
    """Server-sent events, and the *locks* that are released with them."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes], locks: ExitStack) -> None:
        super().__init__(events)
        self._locks = locks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        with self._locks:
            await super().__call__(scope, receive, send)


async def _parse_read(authorizer: Authorizer, http: Request) -> tuple[ReadRequest, Credentials, Key]:
    request, login = parse_read_request(http), await authorizer.login(http)
    _check_expiry(login)
    slow = "" if request.slow is None else f"{request.slow} {request.rank} {request.first}"
    return request, login, Key(_user_key(login, http), request.topic, request.group, request.member, slow)


async def _acquire(lock: asyncio.Lock) -> None:
    try:
        await asyncio.wait_for(lock.acquire(), LOCK_TIMEOUT)
    except TimeoutError as error:
        why = "another request reads here, in this group: wait for it, or name another member="
        raise RefusedError(409, why) from error


def _check_expiry(login: Credentials) -> None:
    if isinstance(login, Token) and time.time() >= login.expires:
        raise RefusedError(401, "the token has ended")


def _user_key(login: Credentials, http: Request) -> str | bytes:
    return login.digest if login is not None else http.client.host if http.client else ""
