"""Who asks, and may see what, by Kafka's own answer; what strangers see; limits of rates."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeVar

from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]
from starlette.requests import Request

from nightwire.portal.account import Sessions
from nightwire.schemas.serving import (
    KafkaAccess,
    Login,
    RefusedError,
    Token,
    Tries,
    answered,
    login_of,
    source_of,
)
from nightwire.schemas.topics import VOEVENTS

Answer = TypeVar("Answer")
WHO = "show a name and a password (basic authentication), or a token; or sign in"
LOOPBACK = ("127.0.0.1", "::1")
MOST_KNOWN = 10_000
"""Most addresses whose rates are remembered."""


@dataclass(frozen=True)
class Gate:
    """Lets in whom Kafka lets in.

    Attributes:
        access: Asks Kafka.
        public: Whether who shows no name sees the surveys' alerts and the VOEvents.
        proxied: Whether a password reaches the plain door unread: a proxy in front ends TLS, or the
            door is published to this machine alone.
        sessions: Who is signed in.
        tries: Wrong passwords, by address.
    """

    access: KafkaAccess
    public: bool = False
    proxied: bool = False
    sessions: Sessions = field(default_factory=Sessions)
    tries: Tries = field(default_factory=Tries)

    def login(self, http: Request) -> Login | Token | None:
        """Return who asks, by what the request shows or by the browser's session; None: nobody."""
        if (shown := login_of(http.headers.get("Authorization", ""))) is not None:
            return shown
        session = self.sessions.of(http)
        return None if session is None else session.login

    async def enter(self, http: Request, login: Login | Token) -> None:
        """Sign in who asks, if Kafka lets him in.

        Raises:
            RefusedError: It does not, or does not answer; he was wrong too often; or others could
                read his password on its way.
        """
        self.private(http)
        await self._known(http, login)
        self.sessions.begin(http, login)

    async def user(self, http: Request) -> Login | Token:
        """Return who asks, whom Kafka knows, where it asks for names.

        Raises:
            RefusedError: 401: nobody, or nobody whom it knows; or Kafka does not say.
        """
        if (login := self.login(http)) is None:
            raise RefusedError(401, WHO)
        await self._known(http, login)
        return login

    async def _known(self, http: Request, login: Login | Token) -> None:
        if self.access.demanded:
            await self._answered(http, login, self.access.may, AclOperation.DESCRIBE)

    def private(self, http: Request) -> None:
        """Do nothing where a password reaches us unread: by TLS, a proxy, or on this machine.

        Raises:
            RefusedError: 403: it does not.
        """
        if self.access.demanded and not (
            self.proxied or http.url.scheme == "https" or address_of(http) in LOOPBACK
        ):
            raise RefusedError(403, "a password would travel unencrypted: come by https")

    async def visible(self, http: Request, topics: Iterable[str]) -> frozenset[str]:
        """Return those of *topics* that who asks may read.

        Raises:
            RefusedError: He shows no name where one is wanted, or a wrong password; or Kafka does
                not say.
        """
        if not self.access.demanded:
            return frozenset(topics)
        login = self.login(http)
        if login is None and self.public:
            return frozenset(topic for topic in topics if topic == VOEVENTS or topic.startswith("alerts."))
        if login is None:
            raise RefusedError(401, WHO)
        asked = login, AclOperation.READ, list(topics)
        if (held := self.access.held(*asked)) is not None:  # most often, and then no thread is needed
            return held
        return await self._answered(http, login, self.access.allowed, *asked[1:])

    async def may_write(self, http: Request, topic: str) -> bool:
        """Whether who asks, by name, may write to *topic*.

        Raises:
            RefusedError: He shows a wrong password, or Kafka does not say.
        """
        login = self.login(http)
        if login is None or not self.access.demanded:
            return login is not None
        return await self._answered(http, login, self.access.may, AclOperation.WRITE, topic)

    async def _answered(
        self, http: Request, login: Login | Token, ask: Callable[..., Answer], *asked: object
    ) -> Answer:
        """Return what Kafka answers *login*: wrong ones are counted, and a session that is ends."""
        session = self.sessions.of(http)
        known = session is not None and session.login == login
        if not known:
            self.tries.check(address_of(http))
        try:
            return await answered(ask, login, *asked)
        except RefusedError as error:
            if error.status == HTTPStatus.UNAUTHORIZED and known:
                self.sessions.end(http)
            elif error.status == HTTPStatus.UNAUTHORIZED:
                self.tries.wrong(address_of(http))
            raise


def address_of(http: Request) -> str:
    """Return the address that asks; empty where none is known."""
    return http.client.host if http.client else ""


@dataclass
class RateLimit:
    """A bucket of tokens for each `source_of`: a page with a hundred stamps fits in at once.

    Attributes:
        rate: Requests that an address may make, on the average. [1/s]
        burst: And at once.
        clock: Gives the time. [s, any steady clock]
    """

    rate: float = 60.0
    burst: float = 600.0
    clock: Callable[[], float] = time.monotonic
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def check(self, http: Request) -> None:
        """Take a token of who asks.

        Raises:
            RefusedError: 429: there is none left.
        """
        address, now = source_of(address_of(http)), self.clock()
        left, since = self._left.pop(address, (self.burst, now))
        left = min(self.burst, left + (now - since) * self.rate)
        self._left[address] = max(0.0, left - 1), now
        if len(self._left) > MOST_KNOWN:
            self._left.popitem(last=False)
        if left < 1:
            raise RefusedError(429, "too many requests from this address; wait a few seconds")
