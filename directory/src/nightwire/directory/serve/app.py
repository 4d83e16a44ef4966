"""The directory over HTTP: queries, entries, interests, exports and the page."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import KafkaException
from prometheus_client import Counter
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from nightwire.core.kafka import DeliveryError
from nightwire.core.presence import EntryError, entry, entry_key, home_header
from nightwire.core.subscriptions import InterestError, interest_key, interest_of
from nightwire.directory.answers import EXPORTS
from nightwire.directory.answers.service_discovery import targets
from nightwire.directory.authorization import Authorizer
from nightwire.directory.ingest import write
from nightwire.directory.mediator import Endpoint, Handler, Mediator
from nightwire.directory.model import QueryError, View
from nightwire.directory.page import SECURITY_HEADERS, graph, static
from nightwire.directory.serve.flows import flow_endpoints
from nightwire.directory.serve.query_executor import QueryExecutor
from nightwire.schemas import SchemaError
from nightwire.schemas.records import ENTRY, SUBSCRIPTION
from nightwire.schemas.serving import RefusedError, body_of, hung_up, object_of, refusal
from nightwire.schemas.topics import DIRECTORY, SUBSCRIPTIONS, NameError_

MAX_BODY = 128 << 10
"""Longest request. [byte]"""
FIELDS = frozenset({"kind", "name", "owner", "survey", "topic", "endpoints", "capabilities"})
"""The fields of an entry in JSON."""


@dataclass(frozen=True)
class Site:
    """The site that is served.

    Attributes:
        view: The directory's rows.
        name: This site's name.
        bootstrap: Its Kafka.
        authorizer: Of its requests.
        ready: Whether the log was read to its end.
        mediator: Reads and writes topics over HTTP; None: not at all.
    """

    view: View
    name: str
    bootstrap: str
    authorizer: Authorizer
    ready: Callable[[], bool] = lambda: True
    mediator: Mediator | None = None

    def check_ready(self) -> None:
        """Check that the log was read to its end.

        Raises:
            RefusedError: It is being read.
        """
        if not self.ready():
            raise RefusedError(503, "the log is being read; ask again in a moment")


def application(site: Site, requests: Counter) -> Starlette:
    """Return the directory of *site* as an ASGI application; *requests* counts its requests."""
    executor = QueryExecutor(site.view)
    endpoints: list[Endpoint] = [
        ("POST", "/query", partial(query, site, executor)),
        ("GET", "/query", partial(query, site, executor)),
        ("POST", "/entries", partial(add, site)),
        ("DELETE", "/entries/{kind}/{name}", partial(remove, site)),
        ("PUT", "/subscriptions", partial(put_interest, site)),
        ("DELETE", "/subscriptions/{name}", partial(delete_interest, site)),
        *flow_endpoints(site.bootstrap, site.authorizer),
        ("GET", "/http_sd", partial(http_sd, site)),
        *(site.mediator.endpoints(site.authorizer) if site.mediator else ()),
        ("GET", "/export/{form}", partial(export, site)),
        ("GET", "/graph.json", partial(graph_json, site)),
        ("GET", "/", partial(page, site, "index.html")),
        ("GET", "/page.css", partial(page, None, "page.css")),
        ("GET", "/page.js", partial(page, None, "page.js")),
    ]
    routes = [
        Route(path, partial(_respond, handler, requests), methods=[method])
        for method, path, handler in endpoints
    ]
    return Starlette(routes=routes, exception_handlers={ClientDisconnect: hung_up})


async def query(site: Site, executor: QueryExecutor, http: Request) -> Response:
    """Answer ``{"sql": …}``, or ``?sql=…``; ``?as=`` names the form."""
    await site.authorizer.may_read(http)
    site.check_ready()
    sql = (
        http.query_params.get("sql") if http.method == "GET" else (await object_of(http, MAX_BODY)).get("sql")
    )
    if not isinstance(sql, str):
        raise RefusedError(400, 'say {"sql": "SELECT …"}')
    format_ = http.query_params.get("as", "json")
    media_type, body = await executor.answer(sql, http.client.host if http.client else "", format_)
    return Response(body, media_type=media_type, headers=home_header(site.name))


async def add(site: Site, http: Request) -> Response:
    """Write an entry, for users who may write `directory`, or own it."""
    fields = await object_of(http, MAX_BODY)
    if unknown := fields.keys() - FIELDS:
        raise RefusedError(400, f"{', '.join(sorted(unknown))}: there are {', '.join(sorted(FIELDS))}")
    texts = {name: fields.get(name, "") for name in FIELDS - {"endpoints", "capabilities"}}
    endpoints, capabilities = fields.get("endpoints", {}), fields.get("capabilities", {})
    if not all(isinstance(one, str) for one in (*texts.values(), *_values(endpoints))):
        raise RefusedError(400, "names are texts, endpoints an object of texts")
    if not isinstance(capabilities, dict):
        raise RefusedError(400, "capabilities are an object")
    found = entry(**texts, endpoints=endpoints, capabilities=capabilities)
    owner = _owner(site, found["kind"], found["name"], found["owner"])
    await site.authorizer.may_write(http, DIRECTORY, owner)
    await run_in_threadpool(write, site.bootstrap, {entry_key(found): ENTRY.encode(found)})
    return JSONResponse({"site": site.name, "kind": found["kind"], "name": found["name"]}, 201)


async def remove(site: Site, http: Request) -> Response:
    """Delete an entry, for users who may write `directory`, or own it."""
    kind, name = http.path_params["kind"], http.path_params["name"]
    await site.authorizer.may_write(http, DIRECTORY, _owner(site, kind, name))
    key = entry_key({"site": site.name, "kind": kind, "name": name})
    await run_in_threadpool(write, site.bootstrap, {key: None})
    return Response(status_code=204)


async def put_interest(site: Site, http: Request) -> Response:
    """Write an interest of the user in a topic that he may read, or write if it is an offer.

    The body is the record of the topic `subscriptions`.
    """
    body = await body_of(http, MAX_BODY)
    found = SUBSCRIPTION.decode(body)
    key = interest_key(found)
    interest_of(key, body)
    may = site.authorizer.may_read if found["kind"] == "subscription" else site.authorizer.may_write
    await site.authorizer.writer(http)
    login = await may(http, found["topic"])
    if found["site"] != site.name or (login is not None and login.name != found["subscriber"]):
        raise RefusedError(403, f"{key} is not yours at {site.name}")
    await run_in_threadpool(write, site.bootstrap, {key: body}, SUBSCRIPTIONS)
    return JSONResponse({"site": site.name, "name": found["name"]}, 201)


async def delete_interest(site: Site, http: Request) -> Response:
    """Delete an interest of the user, or of ``?subscriber=`` where Kafka has no passwords."""
    await site.authorizer.writer(http)
    login = await site.authorizer.login(http)
    who = http.query_params.get("subscriber", "") if login is None else login.name
    key = interest_key({"site": site.name, "subscriber": who, "name": http.path_params["name"]})
    await run_in_threadpool(write, site.bootstrap, {key: None}, SUBSCRIPTIONS)
    return Response(status_code=204)


async def http_sd(site: Site, _http: Request) -> Response:
    """Answer Prometheus, without credentials; at an error it keeps its last targets."""
    site.check_ready()
    return JSONResponse(targets(site.view, site.name))


async def export(site: Site, http: Request) -> Response:
    """Answer with a document of the site, one of `EXPORTS`."""
    await site.authorizer.may_read(http)
    site.check_ready()
    if (format_ := http.path_params["form"]) not in EXPORTS:
        raise RefusedError(404, f"{format_!r} is no form; there are {', '.join(EXPORTS)}")
    media_type, make = EXPORTS[format_]
    return Response(await run_in_threadpool(make, site.view, site.name), media_type=media_type)


async def graph_json(site: Site, http: Request) -> Response:
    """Answer the page with the graph of writers and readers."""
    await site.authorizer.may_read(http)
    site.check_ready()
    return JSONResponse(await run_in_threadpool(graph, site.view, site.name))


async def page(site: Site | None, name: str, http: Request) -> Response:
    """Answer with a file of the page; with *site*, to users with credentials alone."""
    if site is not None:
        await site.authorizer.may_read(http)
    media_type, body = static(name)
    return Response(body, media_type=media_type, headers=SECURITY_HEADERS)


def _owner(site: Site, kind: str, name: str, wanted: str | None = None) -> str | None:
    """Return the owner who may change an entry; None for nobody."""
    sql = "SELECT owner FROM peers WHERE site = ? AND kind = ? AND name = ?"
    there = [owner for (owner,) in site.view.query(sql, site.name, kind, name).rows]
    if kind in {"process", "site", "neighbour"} or (there and wanted is not None and there != [wanted]):
        return None
    return (there[0] if there else wanted) or None


def _values(endpoints: Any) -> list[Any]:
    return list(endpoints.values()) if isinstance(endpoints, dict) else [None]


async def _respond(handler: Handler, requests: Counter, http: Request) -> Response:
    try:
        response = await handler(http)
    except (RefusedError, QueryError, EntryError, InterestError, SchemaError, NameError_) as error:
        response = refusal(error.status if isinstance(error, RefusedError) else 400, str(error))
    except (DeliveryError, KafkaException) as error:
        response = refusal(503, str(error))
    response.headers["Cache-Control"] = "no-store"
    requests.labels(
        http.scope["route"].path if "route" in http.scope else "", str(response.status_code)
    ).inc()
    return response
