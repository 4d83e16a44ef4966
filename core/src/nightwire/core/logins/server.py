"""The process at which users choose passwords and get tokens, by HTTP and by HTTPS."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from prometheus_client import CollectorRegistry, Counter
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from nightwire.core.access.passwords import PasswordError, checked_password, set_password
from nightwire.core.kafka import REFUSALS, admin, answering, error_code, identity
from nightwire.core.logins.invitations import Invitation, InvitationError
from nightwire.core.presence import HttpService, registered, request_counter
from nightwire.core.tls.token_key import public_keys, signed_token, token_key
from nightwire.schemas.serving import (
    Login,
    RefusedError,
    Tries,
    hung_up,
    login_of,
    object_of,
    refusal,
    run,
)
from nightwire.schemas.topics import NAME

log = logging.getLogger("nightwire.users")

MAX_BODY = 4 << 10
"""Longest request. [byte]"""
DAY = 86_400
MAX_LIFE = 366 * DAY
"""Longest life of a token. [s]"""


@dataclass
class Users:
    """What users may do for themselves.

    Attributes:
        bootstrap: Kafka's address; we may set passwords there.
        key: File of the key that signs tokens.
        tries: Wrong logins.
    """

    bootstrap: str
    key: Path
    tries: Tries

    def accept(self, asked: Any, address: str, _login: object) -> dict[str, Any]:
        """Take up an invitation (``code``): its user gets a ``password``, and the code ends."""
        try:
            invitation = Invitation.read(_text(asked, "code"))
        except InvitationError as error:
            self.tries.wrong(address)
            raise RefusedError(403, str(error)) from error
        password = _new_password(asked)
        self._enter(Login(invitation.principal, invitation.code), address, "this invitation holds no more")
        set_password(self._kafka, invitation.name, password)
        set_password(self._kafka, invitation.principal, None)
        log.info("%s took up the invitation", invitation.name)
        return {"name": invitation.name}

    def change(self, asked: Any, address: str, login: object) -> dict[str, Any]:
        """Give a user, who shows the old one, a new ``password``."""
        user = self._user(login, address)
        set_password(self._kafka, user.name, _new_password(asked))
        log.info("%s changed the password", user.name)
        return {"name": user.name}

    def token(self, asked: Any, address: str, login: object) -> dict[str, Any]:
        """Give a user, who shows name and password, a token for ``seconds``."""
        seconds = asked.get("seconds", DAY)
        if not isinstance(seconds, int | float) or not 0 < seconds <= MAX_LIFE:
            raise RefusedError(400, f"a token holds for at most {MAX_LIFE // DAY} days")
        user = self._user(login, address)
        log.info("%s got a token for %d s", user.name, seconds)
        text = signed_token(token_key(self.key), user.name, seconds)
        return {"token": text, "name": user.name, "expires": int(time.time() + seconds)}

    def healthy(self) -> bool:
        """Whether Kafka answers us."""
        try:
            return bool(self._kafka.list_topics(timeout=1.0).brokers)
        except KafkaException:
            return False

    @property
    def _kafka(self) -> AdminClient:
        if "_admin" not in vars(self):
            self._admin = admin(self.bootstrap)
        return self._admin

    def _user(self, login: object, address: str) -> Login:
        if not isinstance(login, Login) or not NAME.fullmatch(login.name):
            raise RefusedError(401, "show name and password (basic authentication)")
        self._enter(login, address, "the name or the password is wrong")
        return login

    def _enter(self, login: Login, address: str, refusal: str) -> None:
        """Check *login* with Kafka itself."""
        keys = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": login.name}
        client = identity(self.bootstrap) | keys | {"sasl.password": login.password}
        try:
            answering(self.bootstrap, client)
        except KafkaException as error:
            if error_code(error) not in REFUSALS:
                raise RefusedError(503, "Kafka does not answer now; try again") from error
            self.tries.wrong(address)
            raise RefusedError(401, refusal) from error


def _text(asked: Any, name: str) -> str:
    found = asked.get(name)
    if not isinstance(found, str):
        raise RefusedError(400, f"the body has no text named {name!r}")
    return found


def _new_password(asked: Any) -> str:
    try:
        return checked_password(_text(asked, "password"))
    except PasswordError as error:
        raise RefusedError(400, str(error)) from error


Answer = Callable[[Any, str, object], dict[str, Any]]


def application(users: Users, answered: Counter) -> Starlette:
    """Return what users may ask for as an ASGI application."""
    posts: dict[str, Answer] = {
        "/invitations/accept": users.accept,
        "/password": users.change,
        "/tokens": users.token,
    }
    keys = public_keys(token_key(users.key))
    routes = [
        Route(path, partial(_respond, answer, users.tries, answered), methods=["POST"])
        for path, answer in posts.items()
    ]
    return Starlette(
        routes=[*routes, Route("/jwks.json", lambda _: Response(keys, media_type="application/json"))],
        exception_handlers={ClientDisconnect: hung_up},
    )


async def _respond(answer: Answer, tries: Tries, answered: Counter, http: Request) -> Response:
    address = http.client.host if http.client else ""
    try:
        tries.check(address)
        asked = await object_of(http, MAX_BODY)
        login = login_of(http.headers.get("Authorization", ""))
        response = JSONResponse(await run_in_threadpool(answer, asked, address, login))
    except RefusedError as error:
        response = refusal(error.status, str(error))
    response.headers["Cache-Control"] = "no-store"
    answered.labels(http.scope["path"], str(response.status_code)).inc()
    return response


def serve(service: HttpService, key: Path) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Args:
        service: Where.
        key: File of the key that signs tokens.

    Raises:
        TLSError: The door's certificate cannot be used.
    """
    collected, kafka = CollectorRegistry(), service.where.kafka
    users = Users(kafka, key, Tries())
    app = application(users, request_counter(collected, "nightwire_users_requests_total"))
    servers = service.servers(app, app)
    log.info("passwords and tokens on %s", service.url)
    with (
        service.metrics_page(collected, servers, users.healthy),
        registered(kafka, "users", endpoints=service.endpoints),
    ):
        run(servers)
