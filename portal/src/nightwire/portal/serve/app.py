"""The portal as an ASGI application: routes, errors, what browsers may do."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from confluent_kafka import KafkaException
from prometheus_client import Counter
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from nightwire.filters.language import FilterError
from nightwire.portal.account.sessions import LONGEST
from nightwire.portal.records import MissingError
from nightwire.portal.serve import api, filters_api, my_filters, night, pages, sign_in
from nightwire.portal.serve.live import LiveStreams
from nightwire.portal.serve.openapi import ENDPOINTS, document
from nightwire.portal.serve.portal import Portal
from nightwire.schemas import SchemaError, StampError
from nightwire.schemas.serving import RefusedError, hung_up, refusal
from nightwire.schemas.topics import NameError_

SAFE: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers by which a browser runs and fetches nothing but ours, whatever alerts hold."""

STATUS: Mapping[type[Exception], int] = {
    RefusedError: 400,  # it has a status of its own
    MissingError: 410,
    SchemaError: 422,
    StampError: 422,
    FilterError: 422,
    NameError_: 422,
    KafkaException: 503,
}
"""HTTP's status of each error that a request may end with."""
Answering = Callable[[Portal, Request], Awaitable[Response]]
PAGES: Mapping[str, Answering] = {
    "/": pages.live,
    "/object/{survey}/{name:path}": pages.of_name,
    "/find": pages.search,
    "/sky": pages.sky,
    "/sky/view": pages.sky_view,
    "/night": night.night,
    "/api": pages.about_api,
    "/sign-in": sign_in.sign_in,
    "/sign-out": sign_in.sign_out,
    "/filters": my_filters.mine,
    "/filters/new": my_filters.write,
    "/filters/of/{name}": my_filters.one,
    "/shared/{link}": my_filters.shared,
}
FORMS = ("/night", "/sign-in", "/sign-out", "/filters/new", "/filters/of/{name}", "/shared/{link}")
"""Pages that take forms, by POST."""


def application(
    portal: Portal, answered: Counter, streams: LiveStreams, *, private: bool = False
) -> Starlette:
    """Return the portal; *answered* counts its answers, by path and status.

    Its cookies are for TLS alone where the way here is *private*.
    """

    async def openapi(_portal: Portal, _http: Request) -> Response:
        return JSONResponse(document(portal.site))

    named: dict[str, Any] = {**vars(night), **vars(filters_api), **vars(api)}
    answers = [(one.path, named.get(one.name, streams.answer), [one.method]) for one in ENDPOINTS]
    answers += [("/api/openapi.json", openapi, ["get"])]
    answers += [(path, page, ["get", "post"] if path in FORMS else ["get"]) for path, page in PAGES.items()]
    routes: list[Route | Mount] = [
        Route(path, partial(_respond, portal, answer, answered), methods=methods)
        for path, answer, methods in answers
    ]
    routes.append(Mount("/static", StaticFiles(packages=[("nightwire.portal", "static")])))
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(_Safe),
            Middleware(GZipMiddleware, minimum_size=1000, compresslevel=4),
            Middleware(
                SessionMiddleware,
                secret_key=portal.authorizer.sessions.secret,
                session_cookie="__Host-nightwire" if private else "nightwire",
                max_age=round(LONGEST),
                https_only=private,
            ),
        ],
        exception_handlers={ClientDisconnect: hung_up, HTTPException: partial(_nothing, portal)},
    )


class _Safe:
    """Adds `SAFE` to every answer, but for what that says itself."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app

    async def __call__(
        self, scope: dict[str, object], receive: object, send: Callable[..., Awaitable[None]]
    ) -> None:
        async def safely(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                own = MutableHeaders(scope=message)
                for name, text in SAFE.items():
                    own.setdefault(name, text)
            await send(message)

        await self._app(scope, receive, safely)


async def _respond(portal: Portal, answer: Answering, answered: Counter, http: Request) -> Response:
    path = http.scope["route"].path if "route" in http.scope else ""
    try:
        response = await answer(portal, http)
    except tuple(STATUS) as error:
        status = next(code for kind, code in STATUS.items() if isinstance(error, kind))
        response = _refused(portal, http, getattr(error, "status", status), str(error))
    response.headers.setdefault("Cache-Control", "no-store")
    answered.labels(path, str(response.status_code)).inc()
    return response


def _refused(portal: Portal, http: Request, status: int, why: str) -> Response:
    """Return a refusal: JSON to programs, a page to people, whom no name is the way to sign in."""
    if http.url.path.startswith("/api/"):
        return refusal(status, why)
    if status == 401:
        return sign_in.to_sign_in(http)
    return pages.render(portal, "error.html", status, status=status, why=why)


async def _nothing(portal: Portal, http: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return _refused(portal, http, status, "there is no such page" if status == 404 else str(error))
