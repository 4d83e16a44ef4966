"""The API beside "My filters": the same queries and actions, as JSON."""

import json
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from nightwire.filters.cli import CommentError, read_comments
from nightwire.portal.account import CSRF_HEADER, check_csrf_token
from nightwire.portal.account.forms import MAX_JSON, in_time
from nightwire.portal.filters import EngineAnswer, FilterDraft, queries
from nightwire.portal.filters.completion import completions
from nightwire.portal.serve.my_filters import draft_of, run_trial, whole_number
from nightwire.portal.serve.portal import Portal
from nightwire.schemas.serving import RefusedError, login_of, object_of


async def filters(portal: Portal, http: Request) -> Response:
    """List the owner's filters, as `nightwire filter list --json`."""
    return _json(await portal.query(await portal.owner(http), queries.list_filters))


async def filter_of_name(portal: Portal, http: Request) -> Response:
    """Give one version of a filter."""
    wanted = http.path_params["name"], whole_number(http.query_params.get("version"))
    return _json((await portal.query(await portal.owner(http), queries.show_version, *wanted)).json())


async def filter_log(portal: Portal, http: Request) -> Response:
    """Give the log of a filter."""
    return _json(await portal.query(await portal.owner(http), queries.read_log, http.path_params["name"]))


async def filter_overflow(portal: Portal, http: Request) -> Response:
    """List the alerts that passed a filter and exceeded its cap."""
    return _json(await portal.query(await portal.owner(http), queries.overflow, http.path_params["name"]))


async def filter_names(portal: Portal, http: Request) -> Response:
    """List the attributes and fields of a survey's alerts."""
    await portal.owner(http)
    survey = http.query_params.get("survey", "")[:40]
    found = await portal.run_slow(completions, portal.actions.where.schema_registry, survey)
    return _json([one._asdict() for one in found])


async def try_filter(portal: Portal, http: Request) -> Response:
    """Try a filter."""
    owner, body = await portal.owner(http), await json_body(http)
    return _json(asdict(await run_trial(portal, owner, _draft(body), body)))


async def submit_filter(portal: Portal, http: Request) -> Response:
    """Submit a filter."""
    owner, body = await portal.owner(http), await json_body(http)
    draft = _draft(body)
    return _answer(await portal.run_slow(portal.actions.submit, owner, http.path_params["name"], draft))


def _draft(body: dict[str, Any]) -> FilterDraft:
    """Return the filter in the API's JSON, in which targets are a text."""
    targets = str(body.get("targets") or "").encode(errors="replace")
    return draft_of({**body, "targets": ("targets", targets)})


async def filter_comments(portal: Portal, http: Request) -> Response:
    """List the comments on a filter of the owner's, or of ``?owner=``."""
    owner = await portal.owner(http)
    whose = http.query_params.get("owner", owner.name)
    asked = (owner.bootstrap, whose, http.path_params["name"])
    try:
        found = await portal.run_slow(owner.ask, read_comments, *asked)
    except CommentError as error:
        raise RefusedError(403, str(error)) from error
    return _json([asdict(one) for one in found])


async def comment_filter(portal: Portal, http: Request) -> Response:
    """Comment on a filter, or take a comment back."""
    owner, body = await portal.owner(http), await json_body(http)
    if back := str(body.get("take_back") or ""):
        await portal.run_slow(portal.actions.take_back, owner, back)
    else:
        about = (http.query_params.get("owner", owner.name), http.path_params["name"])
        await portal.run_slow(portal.actions.comment, owner, *about, str(body.get("text") or ""))
    return await filter_comments(portal, http)


async def change_filter(portal: Portal, http: Request) -> Response:
    """Carry out one of `ACTIONS` on a filter."""
    owner, body, where = await portal.owner(http), await json_body(http), http.path_params
    change = (where["name"], where["action"], whole_number(body.get("version")), str(body.get("since") or ""))
    return _answer(await portal.run_slow(portal.actions.change, owner, *change))


async def json_body(http: Request) -> dict[str, Any]:
    """Return the JSON object in a request, which no other site's page can have sent.

    Raises:
        RefusedError: It is too long, or no JSON; or a browser sent it without the CSRF token.
    """
    if http.headers.get("Content-Type", "").partition(";")[0].strip() != "application/json":
        raise RefusedError(415, "send application/json")
    if login_of(http.headers.get("Authorization", "")) is None:
        check_csrf_token(http, http.headers.get(CSRF_HEADER, ""))
    async with in_time():
        return await object_of(http, MAX_JSON)


def _answer(done: EngineAnswer) -> Response:
    return JSONResponse(asdict(done), 200 if done.accepted else 422)


def _json(found: Any) -> Response:
    return Response(json.dumps(found, default=str), media_type="application/json")
