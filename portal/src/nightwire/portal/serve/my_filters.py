"""The pages "My filters": the list, one filter, the editor, a shared text."""

from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from nightwire.filters.cli import Comment, CommentError, read_comments
from nightwire.filters.language import FilterError
from nightwire.portal.account import Form, form_of, form_token
from nightwire.portal.filters import Owner, Tried, Wish, questions
from nightwire.portal.model.words import path
from nightwire.portal.serve.pages import render
from nightwire.portal.serve.portal import Portal
from nightwire.schemas.serving import RefusedError
from nightwire.schemas.topics import NameError_

PAGE = 100
"""Filters on a page."""
LAST = 200
"""Alerts on which a filter is tried, unless more are wished."""
MOST = 500
"""And at most."""
BEGINNING = {
    "python": 'LIMIT = 20.0  # AB mag\n\n\ndef keep(alert):\n    """Bright and sure."""\n'
    "    if alert.magnitude is None or alert.snr is None:\n        return False\n"
    "    return alert.magnitude < LIMIT and alert.snr > 10\n",
    "sql": "magnitude < 20 AND snr > 10",
}
"""A filter to begin with, in each language."""
CAP = 20
"""Most alerts a visit, unless it is said."""
TEXTS = ("text", "survey", "notify", "entry", "transform", "output", "behind", "since")
LISTS = ("columns", "drop", "means", "sources", "target_columns")
FIELDS = (*TEXTS, *LISTS, "name", "language", "cap", "choice", "lite", "last", "last_night", "radius")
"""Fields of the editor's form."""


async def mine(portal: Portal, http: Request) -> Response:
    """List the filters of who asks."""
    owner = await portal.owner(http)
    wanted = http.query_params.get("q", "")[:40]
    rows = [one for one in await portal.ask(owner, questions.listed) if wanted in one["name"]]
    number = number_of(http.query_params.get("page"))
    page, pages = rows[number * PAGE : (number + 1) * PAGE], -(-len(rows) // PAGE)
    found: dict[str, Any] = {
        "rows": page,
        "count": len(rows),
        "wanted": wanted,
        "number": number,
        "pages": pages,
    }
    return _page(portal, http, owner, "filters.html", **found)


async def one(portal: Portal, http: Request) -> Response:
    """Show a filter: work, text, versions and their differences, log and overflow; or change it."""
    owner, name = await portal.owner(http), http.path_params["name"]
    done, asked = None, http.query_params
    if http.method == "POST":
        form = await form_of(http)
        wish = (form.get("action", ""), number_of(form.get("version")), form.get("since", ""))
        if not await _commented(portal, owner, owner.name, name, form):
            done = await portal.wait_for(portal.actions.changed, owner, name, *wish)
    shown = await portal.ask(owner, questions.shown, name, number_of(asked.get("version")))
    before = next((number for number in shown.versions if number < shown.version), shown.version)
    against = await portal.ask(owner, questions.shown, name, number_of(asked.get("against")) or before)
    log = await portal.ask(owner, questions.told, name)
    comments, unread = await _readable(portal.ask(owner, read_comments, name))
    values: dict[str, Any] = {
        "past": questions.past_of(log),
        "comments": comments,
        "unread": unread,
        "log": log,
        "cut": await portal.ask(owner, questions.cut_off, name),
        "changes": [*questions.differences(against, shown)],
        "link": path("shared", portal.actions.link(owner.name, name, shown.version)),
    }
    return _page(portal, http, owner, "filter.html", shown=shown, against=against, done=done, **values)


async def _readable(comments: Awaitable[list[Comment]]) -> tuple[list[Comment], str]:
    """Return *comments*, or why who asks may not read them."""
    try:
        return await comments, ""
    except CommentError as error:
        return [], str(error)


async def _commented(portal: Portal, owner: Owner, whose: str, name: str, form: Form) -> bool:
    """Carry out what a form wishes about comments; return whether it does."""
    if form.get("action") == "comment":
        await portal.wait_for(portal.actions.said, owner, whose, name, form.get("text", ""))
    elif form.get("action") == "take-back":
        await portal.wait_for(portal.actions.taken_back, owner, form.get("comment", ""))
    else:
        return False
    return True


async def write(portal: Portal, http: Request) -> Response:
    """Show the editor; or try, or submit, what was written in it."""
    owner, status = await portal.owner(http), 200
    values: dict[str, Any] = {"most": MOST, "last": LAST, "cap": CAP}
    values |= {"reasons": [], "tried": None, "done": None}
    topics = sorted(topic for topic in portal.topics() if topic.startswith("alerts."))
    values["surveys"] = [topic.removeprefix("alerts.") for topic in topics]
    if http.method == "POST":
        form = await form_of(http)
        values["asked"] = asked = dict.fromkeys(FIELDS, "") | form
        status, found = await _wished(portal, owner, {**asked, "targets": form.file})
        values |= found
    else:
        values["asked"] = await _beginning(portal, owner, http)
    return _page(portal, http, owner, "editor.html", status, **values)


async def _wished(portal: Portal, owner: Owner, form: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return what came of a form of the editor's, a trial or a submission, and HTTP's status."""
    wish = wish_of(form)
    try:
        if form.get("action") == "submit":
            return 200, {"done": await portal.wait_for(portal.actions.submitted, owner, form["name"], wish)}
        return 200, {"tried": await tried(portal, owner, wish, form)}
    except (FilterError, NameError_) as error:
        return 422, {"reasons": getattr(error, "reasons", [str(error)])}


async def tried(portal: Portal, owner: Owner, wish: Wish, asked: Mapping[str, Any]) -> Tried:
    """Return the trial of a filter on as many alerts as are *asked* for."""
    last, night = number_of(asked.get("last"), LAST), bool(asked.get("last_night"))
    if not 1 <= last <= MOST:
        raise RefusedError(400, f"a filter is tried on 1 to {MOST} alerts")
    return await portal.wait_for(partial(portal.actions.tried, of_last_night=night), owner, wish, last)


def wish_of(asked: Mapping[str, Any]) -> Wish:
    """Return the filter that a form, or a program, writes.

    Raises:
        RefusedError: 400: it is none.
    """
    language, choice = asked.get("language") or "python", asked.get("choice") or "first"
    texts = {name: asked.get(name) or "" for name in TEXTS}
    lists: dict[str, Any] = {name: _listed(asked.get(name)) for name in LISTS}
    file, targets = asked.get("targets") or ("", b"")
    if language not in BEGINNING or choice not in ("first", "best"):
        raise RefusedError(400, "language is python or sql, choice is first or best")
    if not all(isinstance(text, str) for text in texts.values()):
        raise RefusedError(400, f"{', '.join(TEXTS)} are texts")
    texts["behind"] = texts["behind"] or "newest"
    try:
        radius = float(asked.get("radius") or 2.0)
    except (TypeError, ValueError) as error:
        raise RefusedError(400, f"radius={str(asked['radius'])[:20]!r} is no number [arcsec]") from error
    return Wish(
        language, cap=number_of(asked.get("cap"), CAP), choice=choice, lite=bool(asked.get("lite")),
        targets=targets, file=file, radius=radius, **texts, **lists,
    )  # fmt: skip


def _listed(said: Any) -> list[str]:
    """Return names of a list, or between commas."""
    names = said if isinstance(said, list) else str(said or "").split(",")
    return [name.strip() for name in map(str, names) if name.strip()]


async def _beginning(portal: Portal, owner: Owner, http: Request) -> dict[str, str]:
    """Return what stands in the editor at first: a version of a filter, or one to begin with."""
    asked, blank = http.query_params, dict.fromkeys(FIELDS, "")
    if name := asked.get("name"):
        shown = await portal.ask(owner, questions.shown, name, number_of(asked.get("version")))
        same = ("survey", "cap", "choice", "entry", "transform", "output", "behind")
        kept = {key: str(shown.record[key]) for key in same}
        kept |= {key: ", ".join(shown.record[key]) for key in ("drop", "means", "sources")}
        own = {"language": shown.language, "text": shown.record["source"], "name": name}
        return {**blank, **kept, **own}
    language = "sql" if asked.get("language") == "sql" else "python"
    return {**blank, "language": language, "text": BEGINNING[language], "survey": asked.get("survey", "")}


async def shared(portal: Portal, http: Request) -> Response:
    """Show the text that a link opens, to whoever has it."""
    portal.rate_limiter.check(http)
    owner, name, version, text = await portal.wait_for(portal.actions.linked, http.path_params["link"])
    if http.method == "POST":
        form = await form_of(http)
        await _commented(portal, await portal.owner(http), owner, name, form)
    login = portal.authorizer.login(http)
    values: dict[str, Any] = {
        "who": login.name if login else "",
        "token": form_token(http),
        "at": http.url.path,
    }
    asked = portal.wait_for(read_comments, portal.actions.where.kafka, owner, name)
    values["comments"], values["unread"] = await _readable(asked)
    return render(portal, "shared.html", owner=owner, name=name, version=version, text=text, **values)


def number_of(said: Any, otherwise: int = 0) -> int:
    """Return a whole number that is none below 0; *otherwise* where nothing is said.

    Raises:
        RefusedError: 400: it is none.
    """
    text = "" if said is None else str(said)
    if not text:
        return otherwise
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise RefusedError(400, f"{text[:40]!r} is no whole number from 0 on")
    return int(text)


def _page(
    portal: Portal, http: Request, owner: Owner, page: str, status: int = 200, **values: Any
) -> Response:
    """Return a page of an owner's, with the token of its forms."""
    verified = portal.authorizer.access.demanded
    return render(portal, page, status, token=form_token(http), owner=owner.name, verified=verified, **values)
