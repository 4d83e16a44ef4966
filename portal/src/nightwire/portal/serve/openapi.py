"""The API's endpoints, from which its routes and its OpenAPI document are made."""

import re
from typing import Any, NamedTuple

from starlette.convertors import IntegerConvertor, register_url_convertor

from nightwire.core import __version__

TOPICS = ("topic", "survey")
"""Parameters that choose a list's topics."""
PARAMETERS = {
    "topic": "One stream, by its Kafka topic.",
    "survey": "One survey; voevent for VOEvents.",
    "most": "Most alerts in the answer.",
    "before": "Only what came in before the alert of this number in the same list.",
    "after": "Begin behind the alert of this number in the same list.",
    "strips": "Each row with its stamps, as a data URL.",
    "format": "Form of the answer.",
    "bytes": "base64: with the stamps.",
    "stretch": "asinh, linear (both between ZScale's limits) or minmax.",
    "q": "An id, a position in any usual writing, or a part of a stream's name.",
    "radius": "Around a position. [arcsec]",
    "hours": "How far back.",
    "order": "Of the HEALPix cells.",
    "owner": "Whose filter: yours, unless it says another.",
    "version": "Of a filter: the newest that was live, unless it says another.",
}
"""Description of each query parameter."""


class _Number(IntegerConvertor):
    """A number of 64 bits: Python refuses one of thousands of digits."""

    regex = "[0-9]{1,18}"


register_url_convertor("number", _Number())


class Endpoint(NamedTuple):
    """One path of the API.

    Attributes:
        path: As Starlette writes it.
        name: Of its handler.
        summary: What the answer is.
        media_types: Of the answer.
        query: Query parameters.
        method: HTTP method, in small letters.
        body: Keys of the request's JSON.
    """

    path: str
    name: str
    summary: str
    media_types: tuple[str, ...] = ("application/json",)
    query: tuple[str, ...] = ()
    method: str = "get"
    body: tuple[str, ...] = ()


NAME = "{survey}/{name:path}"
OWN_FILTER = "/api/filters/of/{name}"
RECORD = "{topic}/{partition:number}/{offset:number}"
FILES = ("text/csv", "application/fits", "application/x-votable+xml", "application/vnd.apache.parquet")
ENDPOINTS = (
    Endpoint("/api/alerts", "alerts", "Recent alerts, newest first.", query=(*TOPICS, "most", "before")),
    Endpoint(
        "/api/live", "live", "What comes in: the newest of each half second, the rest counted.",
        ("text/event-stream",), (*TOPICS, "most", "after", "strips"),
    ),
    Endpoint(f"/api/object/{NAME}", "of_name", "Recent alerts and light curve of an object or alert."),
    Endpoint(
        f"/api/curve/{NAME}", "curve", "A light curve as csv, fits, votable, parquet.", FILES, ("format",)
    ),
    Endpoint(f"/api/finder/{NAME}", "finder", "A finder chart.", ("application/pdf",)),
    Endpoint(f"/api/record/{RECORD}", "record", "The record at an offset.", query=("bytes",)),
    Endpoint(f"/api/stamps/{RECORD}", "stamps", "All stamps of an alert, small.", ("image/jpeg",)),
    Endpoint(
        f"/api/stamp/{RECORD}/{{name}}", "stamp", "One stamp: png with scale and north, or fits.",
        ("image/png", "image/fits"), ("stretch", "format"),
    ),
    Endpoint(
        f"/api/skymaps/{RECORD}", "skymap",
        "The 50 % and 90 % regions of a VOEvent's skymap: areas, or png; 503 until it is there.",
        ("application/json", "image/png"), ("format",),
    ),
    Endpoint("/api/night", "of_night", "Accounts, filters, dead letters, streams, gateways."),
    Endpoint(
        "/api/dead-letters/{number:number}/replay", "replay_letter",
        "What was replayed, and what was refused by name; alike: all of its reason near it.",
        method="post", body=("alike",),
    ),
    Endpoint("/api/find", "search", "What an id, a position or a name finds.", query=("q", "radius")),
    Endpoint("/api/sky", "sky", "Alerts in each HEALPix cell.", query=(*TOPICS, "hours", "order")),
    Endpoint("/api/moc", "sky_moc", "Where alerts came from (MOC), json or fits.",
             ("application/json", "application/fits"), (*TOPICS, "hours", "format")),
    Endpoint("/api/filters", "filters", "Your filters."),
    Endpoint(
        "/api/filters/names", "filter_names", "What filters may ask of a survey's alerts.", query=("survey",)
    ),
    Endpoint(
        "/api/filters/try", "try_filter", "A filter tried on recent alerts, or last night's.",
        method="post", body=("language", "text", "survey", "last", "last_night"),
    ),
    Endpoint(OWN_FILTER, "filter_of_name", "One of your filters.", query=("version",)),
    Endpoint(
        OWN_FILTER, "submit_filter", "A filter submitted: its next version.",
        method="post", body=(
            *("language", "text", "survey", "cap", "choice", "notify", "entry", "columns", "transform"),
            *("output", "drop", "means", "lite", "sources", "behind", "since"),
            *("targets", "radius", "target_columns"),
        ),
    ),
    Endpoint(f"{OWN_FILTER}/comments", "filter_comments", "What was said about a filter.", query=("owner",)),
    Endpoint(
        f"{OWN_FILTER}/comments", "comment_filter", "Something said about a filter, or taken back (an id).",
        method="post", query=("owner",), body=("text", "take_back"),
    ),
    Endpoint(f"{OWN_FILTER}/log", "filter_log", "What was asked for a filter, answered and noticed."),
    Endpoint(f"{OWN_FILTER}/overflow", "filter_overflow", "What its cap cut off."),
    Endpoint(
        f"{OWN_FILTER}/do/{{action}}", "change_filter", "enable, disable, rollback, remove; (stop-)backfill.",
        method="post", body=("version", "since"),
    ),
)  # fmt: skip


def document(site: str) -> dict[str, Any]:
    """Return the API of the portal of *site* as an OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for one in ENDPOINTS:
        paths.setdefault(re.sub(r":\w+}", "}", one.path), {})[one.method] = _operation(one)
    info = {"title": f"nightwire portal of {site}", "version": __version__}
    login = {"basic": {"type": "http", "scheme": "basic"}, "token": {"type": "http", "scheme": "bearer"}}
    security: list[dict[str, list[str]]] = [{}, {"basic": []}, {"token": []}]
    return {
        "openapi": "3.1.0", "info": info, "paths": paths, "security": security,
        "components": {"securitySchemes": login},
    }  # fmt: skip


def _operation(one: Endpoint) -> dict[str, Any]:
    numbers = {"most", "before", "after", "radius", "hours", "order", "partition", "offset", "number"}

    def parameter(name: str, where: str) -> dict[str, Any]:
        kind = {"type": "number" if name in numbers else "string"}
        text = {"description": PARAMETERS[name]} if where == "query" else {}
        return {"name": name, "in": where, "required": where == "path", "schema": kind, **text}

    inside = re.findall(r"{(\w+)", one.path)
    refused = {"description": "Refused; the message says why.", "content": {"application/json": {}}}
    schema = {"type": "object", "properties": {name: {} for name in one.body}}
    return {
        "operationId": one.name,
        "summary": one.summary,
        **({"requestBody": {"content": {"application/json": {"schema": schema}}}} if one.body else {}),
        "parameters": [parameter(name, "path") for name in inside]
        + [parameter(n, "query") for n in one.query],
        "responses": {
            "200": {"description": one.summary, "content": {kind: {} for kind in one.media_types}},
            "default": refused,
        },
    }
