"""Authentication and authorization of requests, by Kafka's own answer."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeVar

from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]
from starlette.requests import Request

from nightwire.portal.account import Sessions, address_of
from nightwire.portal.model.rows import is_unfiltered
from nightwire.schemas.serving import (
    KafkaAccess,
    Login,
    RefusedError,
    Token,
    Tries,
    answered,
    login_of,
)

Answer = TypeVar("Answer")
CREDENTIALS_WANTED = "show a name and a password (basic authentication), or a token; or sign in"
LOOPBACK = ("127.0.0.1", "::1")


@dataclass(frozen=True)
class Authorizer:
    """Authenticates users, and tells which topics they may read and write, as Kafka does.

    Attributes:
        access: Asks Kafka.
        public: Whether anonymous users see the surveys' alerts and the VOEvents.
        proxied: Whether passwords reach the plain port unread: a proxy in front ends TLS, or the
            port is published to this machine alone.
        sessions: Of signed-in browsers.
        tries: Counts wrong passwords, by address.
    """

    access: KafkaAccess
    public: bool = False
    proxied: bool = False
    sessions: Sessions = field(default_factory=Sessions)
    tries: Tries = field(default_factory=Tries)

    def login(self, http: Request) -> Login | Token | None:
        """Return the credentials in the request's header, else in its session; None: anonymous."""
        if (shown := login_of(http.headers.get("Authorization", ""))) is not None:
            return shown
        session = self.sessions.of(http)
        return None if session is None else session.login

    def shows_who(self, http: Request) -> bool:
        """Whether the request has credentials, where Kafka demands any."""
        return self.access.demanded and self.login(http) is not None

    async def sign_in(self, http: Request, login: Login | Token) -> None:
        """Begin a session for *login*, whom Kafka knows.

        Raises:
            RefusedError: Kafka refuses the login, or does not answer; too many wrong ones came from
                this address; or the connection is not encrypted.
        """
        self.require_encryption(http)
        await self._verify(http, login)
        self.sessions.begin(http, login)

    async def authenticated(self, http: Request) -> Login | Token:
        """Return the request's credentials, verified by Kafka where it demands names.

        Raises:
            RefusedError: 401: there are none, or wrong ones; or Kafka does not answer.
        """
        if (login := self.login(http)) is None:
            raise RefusedError(401, CREDENTIALS_WANTED)
        await self._verify(http, login)
        return login

    async def _verify(self, http: Request, login: Login | Token) -> None:
        if self.access.demanded:
            await self._ask_kafka(http, login, self.access.may, AclOperation.DESCRIBE)

    def require_encryption(self, http: Request) -> None:
        """Refuse a password that came neither by TLS, nor a proxy, nor from this machine.

        Raises:
            RefusedError: 403: it would travel unencrypted.
        """
        if self.access.demanded and not (
            self.proxied or http.url.scheme == "https" or address_of(http) in LOOPBACK
        ):
            raise RefusedError(403, "a password would travel unencrypted: come by https")

    async def visible(self, http: Request, topics: Iterable[str]) -> frozenset[str]:
        """Return those of *topics* that the user may read.

        Raises:
            RefusedError: Credentials are missing or wrong, or Kafka does not answer.
        """
        if not self.access.demanded:
            return frozenset(topics)
        login = self.login(http)
        if login is None and self.public:
            return frozenset(filter(is_unfiltered, topics))
        if login is None:
            raise RefusedError(401, CREDENTIALS_WANTED)
        asked = login, AclOperation.READ, list(topics)
        self._is_of_session(http, login)  # what is held tells a guess right from wrong
        if (held := self.access.held(*asked)) is not None:  # most often, and then no thread is needed
            return held
        return await self._ask_kafka(http, login, self.access.allowed, *asked[1:])

    async def may_write(self, http: Request, topic: str) -> bool:
        """Whether the user, who is not anonymous, may write to *topic*.

        Raises:
            RefusedError: The credentials are wrong, or Kafka does not answer.
        """
        login = self.login(http)
        if login is None or not self.access.demanded:
            return login is not None
        return await self._ask_kafka(http, login, self.access.may, AclOperation.WRITE, topic)

    def _is_of_session(self, http: Request, login: Login | Token) -> bool:
        """Whether *login* is that of the request's session, else one that it shows itself.

        Raises:
            RefusedError: 429: it is not, and too many wrong ones came from this address.
        """
        session = self.sessions.of(http)
        known = session is not None and session.login == login
        if not known:
            self.tries.check(address_of(http))
        return known

    async def _ask_kafka(
        self, http: Request, login: Login | Token, ask: Callable[..., Answer], *asked: object
    ) -> Answer:
        """Return Kafka's answer to *login*; a wrong one is counted, or ends its session."""
        known = self._is_of_session(http, login)
        try:
            return await answered(ask, login, *asked)
        except RefusedError as error:
            if error.status == HTTPStatus.UNAUTHORIZED and known:
                self.sessions.end(http)
            elif error.status == HTTPStatus.UNAUTHORIZED:
                self.tries.wrong(address_of(http))
            raise
