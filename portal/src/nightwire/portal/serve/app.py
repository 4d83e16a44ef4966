"""The portal as an ASGI application: routes, security headers, errors."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from typing import Any

from confluent_kafka import KafkaException
from prometheus_client import Counter
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from nightwire.core.kafka import error_text
from nightwire.filters.language import FilterError
from nightwire.portal.records import MissingError
from nightwire.portal.serve import api, filters_api, my_filters, night, pages, sign_in
from nightwire.portal.serve.live import LiveStreams
from nightwire.portal.serve.openapi import ENDPOINTS, document
from nightwire.portal.serve.portal import Portal
from nightwire.schemas import SchemaError, StampError
from nightwire.schemas.serving import RefusedError, hung_up, refusal
from nightwire.schemas.topics import NameError_

SECURITY_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers that let browsers run and fetch nothing but ours, whatever alerts hold."""

STATUS: Mapping[type[Exception], int] = {
    RefusedError: 400,  # it has a status of its own
    MissingError: 410,
    SchemaError: 422,
    StampError: 422,
    FilterError: 422,
    NameError_: 422,
    KafkaException: 503,
}
"""HTTP status of each error that a handler may raise."""
Handler = Callable[[Portal, Request], Awaitable[Response]]
PAGES: Mapping[str, Handler] = {
    "/": pages.live,
    "/object/{survey}/{name:path}": pages.of_name,
    "/find": pages.search,
    "/sky": pages.sky,
    "/sky/view": pages.sky_view,
    "/night": night.night,
    "/api": pages.about_api,
    "/sign-in": sign_in.sign_in,
    "/sign-out": sign_in.sign_out,
    "/filters": my_filters.filters_page,
    "/filters/new": my_filters.editor,
    "/filters/of/{name}": my_filters.filter_page,
    "/shared/{link}": my_filters.shared_filter,
}
FORMS = ("/night", "/sign-in", "/sign-out", "/filters/new", "/filters/of/{name}", "/shared/{link}")
"""Pages with forms, sent by POST."""


def application(
    portal: Portal, counter: Counter, streams: LiveStreams, *, private: bool = False
) -> "_SecurityHeaders":
    """Return the portal's application, whose responses *counter* counts by path and status.

    Its cookies are for TLS alone if *private*.
    """

    async def openapi(_portal: Portal, _http: Request) -> Response:
        return JSONResponse(document(portal.site))

    named: dict[str, Any] = {**vars(night), **vars(filters_api), **vars(api)}
    handlers = [(one.path, named.get(one.name, streams.answer), [one.method]) for one in ENDPOINTS]
    handlers += [("/api/openapi.json", openapi, ["get"])]
    handlers += [(path, page, ["get", "post"] if path in FORMS else ["get"]) for path, page in PAGES.items()]
    routes: list[Route | Mount] = [
        Route(path, partial(_respond, portal, handler, counter), methods=methods)
        for path, handler, methods in handlers
    ]
    routes.append(Mount("/static", StaticFiles(packages=[("nightwire.portal", "static")])))
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(_RateLimit, portal=portal, counter=counter),
            Middleware(GZipMiddleware, minimum_size=1000, compresslevel=4),
            portal.authorizer.sessions.middleware(private=private),
        ],
        exception_handlers={ClientDisconnect: hung_up, HTTPException: partial(_http_error, portal)},
    )
    return _SecurityHeaders(app)  # around the answer to an error of ours, too


class _SecurityHeaders:
    """Adds those of `SECURITY_HEADERS` that a response does not set itself."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app

    async def __call__(
        self, scope: dict[str, object], receive: object, send: Callable[..., Awaitable[None]]
    ) -> None:
        async def send_with_headers(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                own = MutableHeaders(scope=message)
                for name, text in SECURITY_HEADERS.items():
                    own.setdefault(name, text)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class _RateLimit:
    """Refuses the requests of clients that send too many, whatever they ask for."""

    def __init__(self, app: Callable[..., Awaitable[None]], portal: Portal, counter: Counter) -> None:
        self._app, self._portal, self._counter = app, portal, counter

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        answer = self._app
        if scope["type"] == "http":
            try:
                self._portal.rate_limiter.check(http := Request(scope))
            except RefusedError as error:
                self._counter.labels("", str(error.status)).inc()
                answer = _refusal(self._portal, http, error.status, str(error))
        await answer(scope, receive, send)


async def _respond(portal: Portal, handler: Handler, counter: Counter, http: Request) -> Response:
    path = http.scope["route"].path if "route" in http.scope else ""
    try:
        response = await handler(portal, http)
    except tuple(STATUS) as error:
        status = next(code for kind, code in STATUS.items() if isinstance(error, kind))
        why = error_text(error) if isinstance(error, KafkaException) else str(error)
        response = _refusal(portal, http, getattr(error, "status", status), why)
    response.headers.setdefault("Cache-Control", "no-store")
    counter.labels(path, str(response.status_code)).inc()
    return response


def _refusal(portal: Portal, http: Request, status: int, why: str) -> Response:
    """Return a refusal: JSON of the API; else a page, or for 401 a redirect to the sign-in."""
    why = why.encode(errors="replace").decode()  # JSON can spell half a character
    if http.url.path.startswith("/api/"):
        return refusal(status, why)
    if status == 401:
        return sign_in.redirect(http)
    return pages.render(portal, "error.html", status, status=status, why=why)


async def _http_error(portal: Portal, http: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return _refusal(portal, http, status, "there is no such page" if status == 404 else str(error))
