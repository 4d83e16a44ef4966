"""The registry's server: HTTP in front, Kafka behind."""

import json
import logging
from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, make_wsgi_app
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from nightwire.schemas.kafka_environment import properties
from nightwire.schemas.registry.access import WriteAccess
from nightwire.schemas.registry.api import Api, ApiError, Request
from nightwire.schemas.registry.kafka_log import KafkaLog
from nightwire.schemas.registry.store import Store
from nightwire.schemas.serving import (
    RefusedError,
    TLSDoor,
    body_of,
    hung_up,
    plain_server,
    run,
    serve_wsgi,
    tls_server,
)


class Metrics:
    """What the registry counts.

    Args:
        registry: Where the metrics are collected.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "nightwire_schemas_requests_total",
            "Requests answered, by HTTP method and status.",
            ["method", "status"],
            registry=registry,
        )
        self.records = Counter(
            "nightwire_schemas_log_records_total",
            "Records read from the log, by what came of them (applied, refused, foreign).",
            ["outcome"],
            registry=registry,
        )
        self.ready = Gauge(
            "nightwire_schemas_ready",
            "1 once the log has been read to its end.",
            registry=registry,
        )
        self.schemas = Gauge("nightwire_schemas_known", "Schemas known, by id.", registry=registry)


log = logging.getLogger(__name__)

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
MAX_BODY = 4 << 20
"""Longest request. [byte]  Rubin's schemas have 0.1 MB."""

Endpoint = Callable[[Request], Any]


def routes(api: Api) -> list[tuple[str, str, Endpoint]]:
    """Return method, path and answer of every endpoint."""
    version = "/subjects/{subject}/versions/{version}"
    return [
        ("GET", "/", lambda _: {}),
        ("GET", "/subjects", api.subjects),
        ("POST", "/subjects/{subject}", api.look_up),
        ("DELETE", "/subjects/{subject}", api.delete),
        ("GET", "/subjects/{subject}/versions", api.versions),
        ("POST", "/subjects/{subject}/versions", api.register),
        ("GET", version, api.version),
        ("DELETE", version, api.delete),
        ("GET", f"{version}/schema", api.version_schema),
        ("GET", "/v1/metadata/id", api.identity),
        ("GET", "/schemas/types", api.types),
        ("GET", "/schemas/ids/{id}", api.schema),
        ("GET", "/schemas/ids/{id}/schema", api.schema_text),
        ("GET", "/schemas/ids/{id}/versions", api.schema_versions),
        ("GET", "/schemas/ids/{id}/subjects", api.schema_subjects),
        ("GET", "/config", api.config),
        ("PUT", "/config", api.set_config),
        ("GET", "/config/{subject}", api.config),
        ("PUT", "/config/{subject}", api.set_config),
        ("DELETE", "/config", api.unset_config),
        ("DELETE", "/config/{subject}", api.unset_config),
        ("GET", "/mode", api.mode),
        ("PUT", "/mode", api.set_mode),
        ("GET", "/mode/{subject}", api.mode),
        ("PUT", "/mode/{subject}", api.set_mode),
        ("DELETE", "/mode/{subject}", api.unset_mode),
        ("POST", "/compatibility/subjects/{subject}/versions", api.compatible),
        ("POST", "/compatibility/subjects/{subject}/versions/{version}", api.compatible),
        ("GET", "/associations/{rest:path}", api.no_associations),
    ]


def guarded_routes(api: Api, guard: Callable[[Endpoint], Endpoint]) -> list[tuple[str, str, Endpoint]]:
    """Return the same, with *guard* before those that change something."""
    asking = (api.look_up, api.compatible)
    return [
        (method, path, answer if method == "GET" or answer in asking else guard(answer))
        for method, path, answer in routes(api)
    ]


def refuse(_answer: Endpoint) -> Endpoint:
    """Return an endpoint that refuses: where nobody has a password, other machines only read."""

    def refusal(_request: Request) -> Any:
        raise ApiError(40301, "schemas are registered on the registry's own machine")

    return refusal


def application(endpoints: Iterable[tuple[str, str, Endpoint]], metrics: Metrics) -> Starlette:
    """Return the registry as an ASGI application with *endpoints*."""
    return Starlette(
        routes=[
            Route(path, partial(_respond, answer, metrics), methods=[method])
            for method, path, answer in endpoints
        ],
        exception_handlers={404: _not_found, 405: _not_found, ClientDisconnect: hung_up},
    )


async def _respond(answer: Endpoint, metrics: Metrics, http: HttpRequest) -> Response:
    try:
        body, login = await body_of(http, MAX_BODY), http.headers.get("Authorization", "")
        request = Request(http.path_params, dict(http.query_params), body, login)
        response = _json(await run_in_threadpool(answer, request), 200)
    except RefusedError as error:
        response = _json({"error_code": error.status, "message": str(error)}, error.status)
    except ApiError as error:
        response = _json({"error_code": error.code, "message": str(error)}, error.status)
        if error.status == HTTPStatus.UNAUTHORIZED:
            response.headers["WWW-Authenticate"] = 'Basic realm="schema registry"'
    metrics.requests.labels(http.method, str(response.status_code)).inc()
    return response


def _json(value: Any, status: int) -> Response:
    return Response(json.dumps(value), status, media_type=MEDIA_TYPE)


async def _not_found(http: HttpRequest, _error: Exception) -> Response:
    return _json({"error_code": 404, "message": f"HTTP 404 Not Found: {http.method} {http.url.path}"}, 404)


def serve(
    bootstrap: str, host: str, port: int, metrics_port: int, door: TLSDoor | None = None, tokens: str = ""
) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that are being answered are finished.

    Args:
        bootstrap: Kafka's address.
        host: Where to listen.
        port: And at which port.
        metrics_port: Of the pages ``/metrics`` and ``/health``; 0 for none.
        door: For other machines, by TLS; None for none.
        tokens: Where Kafka judges the site's own tokens.

    Raises:
        TLSError: The door's certificate cannot be used.
    """
    collected = CollectorRegistry()
    metrics = Metrics(collected)
    store = Store(on_record=lambda outcome: metrics.records.labels(outcome).inc())
    metrics.ready.set_function(lambda: float(store.ready))
    metrics.schemas.set_function(lambda: float(store.count()))
    kafka = KafkaLog(bootstrap, on_record=store.take, on_restart=store.restart, on_ready=store.end_of_log)
    api = Api(store, kafka, lambda: kafka.cluster_id)
    access = WriteAccess({**properties(), "bootstrap.servers": bootstrap}, tokens)
    inside = guarded_routes(api, access.guard)
    outside = inside if access.demanded else guarded_routes(api, refuse)
    servers = [plain_server(application(inside, metrics), host, port)]
    servers += [tls_server(application(outside, metrics), door)] if door else []
    kafka.start()
    stop_page = serve_metrics(
        collected,
        host,
        metrics_port,
        lambda: all(server.started for server in servers) and store.ready and kafka.alive(),
    )
    log.info("serving schemas on http://%s:%d from %s", host, port, bootstrap)
    try:
        run(servers)
    finally:
        kafka.stop()
        stop_page()


def serve_metrics(
    collected: CollectorRegistry, host: str, port: int, healthy: Callable[[], bool]
) -> Callable[[], None]:
    """Serve ``/metrics`` and ``/health`` (200 or 503) on a port of their own, unless it is 0.

    Returns:
        What to call to stop.
    """
    if not port:
        return lambda: None
    metrics = make_wsgi_app(collected)

    def page(environ: Any, start_response: Any) -> Any:
        if environ.get("PATH_INFO") != "/health":
            return metrics(environ, start_response)
        start_response("200 OK" if healthy() else "503 Service Unavailable", [("Content-Type", "text/plain")])
        return [b"healthy\n" if healthy() else b"not listening yet, or the log has not been read\n"]

    return serve_wsgi(page, host, port).shutdown
