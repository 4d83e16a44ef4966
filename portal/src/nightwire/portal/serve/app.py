"""The portal as an ASGI application: routes, errors, what browsers may do."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

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

from nightwire.portal.records import MissingError
from nightwire.portal.serve import api, night, pages
from nightwire.portal.serve.live import Streams
from nightwire.portal.serve.openapi import ENDPOINTS, document
from nightwire.portal.serve.portal import Portal
from nightwire.schemas import SchemaError, StampError
from nightwire.schemas.serving import RefusedError, hung_up, refusal

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
}


def application(portal: Portal, answered: Counter, streams: Streams) -> Starlette:
    """Return the portal; *answered* counts its answers, by path and status."""

    async def openapi(_portal: Portal, _http: Request) -> Response:
        return JSONResponse(document(portal.site))

    named = {**vars(night), **vars(api), "live": streams.answer}
    answers: dict[str, Answering] = {one.path: named[one.name] for one in ENDPOINTS}
    answers |= {"/api/openapi.json": openapi, **PAGES}
    routes: list[Route | Mount] = [
        Route(path, partial(_respond, portal, answer, answered), methods=["GET"])
        for path, answer in answers.items()
    ]
    routes.append(Mount("/static", StaticFiles(packages=[("nightwire.portal", "static")])))
    return Starlette(
        routes=routes,
        middleware=[Middleware(_Safe), Middleware(GZipMiddleware, minimum_size=1000)],
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
    """Return a refusal: JSON to programs, a page to people."""
    found = refusal(status, why)
    if http.url.path.startswith("/api/"):
        return found
    page = pages.render(portal, "error.html", status, status=status, why=why)
    page.headers.update({name: text for name, text in found.headers.items() if name == "www-authenticate"})
    return page


async def _nothing(portal: Portal, http: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return _refused(portal, http, status, "there is no such page" if status == 404 else str(error))
