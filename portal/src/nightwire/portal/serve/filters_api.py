"""The API beside "My filters": the same questions and wishes, as JSON."""

import json
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from nightwire.filters.cli import CommentError, read_comments
from nightwire.portal.account import check_token
from nightwire.portal.account.forms import HEADER, MOST
from nightwire.portal.filters import Outcome, Wish, questions
from nightwire.portal.filters.names import names as names_of
from nightwire.portal.serve.my_filters import number_of, tried, wish_of
from nightwire.portal.serve.portal import Portal
from nightwire.schemas.serving import RefusedError, login_of, object_of


async def filters(portal: Portal, http: Request) -> Response:
    """List the filters of who asks, as `nightwire filter list --json`."""
    return _json(await portal.ask(await portal.owner(http), questions.listed))


async def filter_of_name(portal: Portal, http: Request) -> Response:
    """Tell one version of a filter."""
    version = number_of(http.query_params.get("version"))
    shown = await portal.ask(await portal.owner(http), questions.shown, http.path_params["name"], version)
    return _json(shown.json())


async def filter_log(portal: Portal, http: Request) -> Response:
    """Tell the log of a filter."""
    return _json(await portal.ask(await portal.owner(http), questions.told, http.path_params["name"]))


async def filter_overflow(portal: Portal, http: Request) -> Response:
    """Tell what passed a filter and was cut off by its cap."""
    return _json(await portal.ask(await portal.owner(http), questions.cut_off, http.path_params["name"]))


async def filter_names(portal: Portal, http: Request) -> Response:
    """List what a filter may ask of a survey's alerts."""
    await portal.owner(http)
    survey = http.query_params.get("survey", "")[:40]
    found = await portal.wait_for(names_of, portal.actions.where.schema_registry, survey)
    return _json([one._asdict() for one in found])


async def try_filter(portal: Portal, http: Request) -> Response:
    """Try a filter, and change nothing."""
    owner, said = await portal.owner(http), await said_by(http)
    return _json(asdict(await tried(portal, owner, _wish(said), said)))


async def submit_filter(portal: Portal, http: Request) -> Response:
    """Submit a filter."""
    owner, said = await portal.owner(http), await said_by(http)
    wish = _wish(said)
    return _outcome(await portal.wait_for(portal.actions.submitted, owner, http.path_params["name"], wish))


def _wish(said: dict[str, Any]) -> Wish:
    """Return the filter that a program writes, whose targets are a text."""
    targets = str(said.get("targets") or "").encode(errors="replace")
    return wish_of({**said, "targets": ("targets", targets)})


async def filter_comments(portal: Portal, http: Request) -> Response:
    """Tell what was said about a filter, of who asks or of the ``?owner=``."""
    owner = await portal.owner(http)
    whose = http.query_params.get("owner", owner.name)
    asked = (owner.bootstrap, whose, http.path_params["name"])
    try:
        found = await portal.wait_for(owner.ask, read_comments, *asked)
    except CommentError as error:
        raise RefusedError(403, str(error)) from error
    return _json([asdict(one) for one in found])


async def comment_filter(portal: Portal, http: Request) -> Response:
    """Say something about a filter, or take it back."""
    owner, said = await portal.owner(http), await said_by(http)
    if back := str(said.get("take_back") or ""):
        await portal.wait_for(portal.actions.taken_back, owner, back)
    else:
        about = (http.query_params.get("owner", owner.name), http.path_params["name"])
        await portal.wait_for(portal.actions.said, owner, *about, str(said.get("text") or ""))
    return await filter_comments(portal, http)


async def change_filter(portal: Portal, http: Request) -> Response:
    """Enable, disable or remove a filter, or roll it back."""
    owner, said, where = await portal.owner(http), await said_by(http), http.path_params
    wish = (where["name"], where["action"], number_of(said.get("version")), str(said.get("since") or ""))
    return _outcome(await portal.wait_for(portal.actions.changed, owner, *wish))


async def said_by(http: Request) -> dict[str, Any]:
    """Return the JSON that a program, or a script of ours, sent: no page of another site's can.

    Raises:
        RefusedError: It is too long, or no JSON; or comes without the browser's token.
    """
    if http.headers.get("Content-Type", "").partition(";")[0].strip() != "application/json":
        raise RefusedError(415, "send application/json")
    if login_of(http.headers.get("Authorization", "")) is None:
        check_token(http, http.headers.get(HEADER, ""))
    return await object_of(http, MOST)


def _outcome(done: Outcome) -> Response:
    return JSONResponse(asdict(done), 200 if done.accepted else 422)


def _json(found: Any) -> Response:
    return Response(json.dumps(found, default=str), media_type="application/json")
