"""The pages "My filters": the list, one filter, the editor, a shared text."""

from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from nightwire.filters.cli import Comment, CommentError, read_comments
from nightwire.filters.language import FilterError
from nightwire.portal.account import Form, csrf_token, read_form
from nightwire.portal.account.forms import MAX_UPLOAD
from nightwire.portal.filters import FilterDraft, Owner, TrialReport, queries
from nightwire.portal.model.formatting import path
from nightwire.portal.serve.pages import render
from nightwire.portal.serve.portal import Portal
from nightwire.schemas.serving import RefusedError
from nightwire.schemas.topics import NameError_

PAGE_SIZE = 100
"""Filters on a page."""
SAMPLE, MAX_SAMPLE = 200, 500
"""Alerts on which a filter is tried: by default, and at most."""
INITIAL_TEXTS = {
    "python": 'LIMIT = 20.0  # AB mag\n\n\ndef keep(alert):\n    """Bright and sure."""\n'
    "    if alert.magnitude is None or alert.snr is None:\n        return False\n"
    "    return alert.magnitude < LIMIT and alert.snr > 10\n",
    "sql": "magnitude < 20 AND snr > 10",
}
"""The editor's first text, in each language."""
CAP = 20
"""Default of the most alerts a visit."""
TEXTS = ("text", "survey", "notify", "entry", "transform", "output", "behind", "since")
LISTS = ("columns", "drop", "means", "sources", "target_columns")
FIELDS = (*TEXTS, *LISTS, "name", "language", "cap", "choice", "lite", "last", "last_night", "radius")
"""Fields of the editor's form."""


async def filters_page(portal: Portal, http: Request) -> Response:
    """List the owner's filters."""
    owner = await portal.owner(http)
    wanted = http.query_params.get("q", "")[:40]
    rows = [one for one in await portal.query(owner, queries.list_filters) if wanted in one["name"]]
    number = whole_number(http.query_params.get("page"))
    return _page(
        portal, http, owner, "filters.html", rows=rows[number * PAGE_SIZE : (number + 1) * PAGE_SIZE],
        count=len(rows), wanted=wanted, number=number, pages=-(-len(rows) // PAGE_SIZE),
    )  # fmt: skip


async def filter_page(portal: Portal, http: Request) -> Response:
    """Show a filter: statistics, text, versions and their diff, log, overflow; or change it."""
    owner, name = await portal.owner(http), http.path_params["name"]
    done, asked = None, http.query_params
    if http.method == "POST":
        form = await read_form(http)
        change = (form.get("action", ""), whole_number(form.get("version")), form.get("since", ""))
        if not await _change_comments(portal, owner, owner.name, name, form):
            done = await portal.run_slow(portal.actions.change, owner, name, *change)
    shown = await portal.query(owner, queries.show_version, name, whole_number(asked.get("version")))
    before = next((number for number in shown.versions if number < shown.version), shown.version)
    number = whole_number(asked.get("against")) or before
    against = await portal.query(owner, queries.show_version, name, number)
    log = await portal.query(owner, queries.read_log, name)
    comments, unread = await _or_refusal(portal.query(owner, read_comments, name))
    values: dict[str, Any] = {
        "backfill": queries.backfill_status(log),
        "comments": comments,
        "unread": unread,
        "log": log,
        "cut": await portal.query(owner, queries.overflow, name),
        "changes": [*queries.diff(against, shown)],
        "link": path("shared", portal.actions.sign_link(owner.name, name, shown.version)),
    }
    return _page(portal, http, owner, "filter.html", shown=shown, against=against, done=done, **values)


async def _or_refusal(comments: Awaitable[list[Comment]]) -> tuple[list[Comment], str]:
    """Return *comments*, and why they may not be read; empty where they may."""
    try:
        return await comments, ""
    except CommentError as error:
        return [], str(error)


async def _change_comments(portal: Portal, owner: Owner, whose: str, name: str, form: Form) -> bool:
    """Write or take back a comment by a form; return whether the form does either."""
    if form.get("action") == "comment":
        await portal.run_slow(portal.actions.comment, owner, whose, name, form.get("text", ""))
    elif form.get("action") == "take-back":
        await portal.run_slow(portal.actions.take_back, owner, form.get("comment", ""))
    else:
        return False
    return True


async def editor(portal: Portal, http: Request) -> Response:
    """Show the editor; or try, or submit, its filter."""
    owner, status = await portal.owner(http), 200
    values: dict[str, Any] = {"most": MAX_SAMPLE, "last": SAMPLE, "cap": CAP}
    values |= {"reasons": [], "tried": None, "done": None}
    topics = sorted(topic for topic in portal.topics() if topic.startswith("alerts."))
    values["surveys"] = [topic.removeprefix("alerts.") for topic in topics]
    if http.method == "POST":
        form = await read_form(http, MAX_UPLOAD)
        values["asked"] = asked = dict.fromkeys(FIELDS, "") | form
        status, found = await _try_or_submit(portal, owner, {**asked, "targets": form.file})
        values |= found
    else:
        values["asked"] = await _initial_values(portal, owner, http)
    return _page(portal, http, owner, "editor.html", status, **values)


async def _try_or_submit(portal: Portal, owner: Owner, form: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Try or submit the editor's filter; return HTTP's status and the template's values."""
    draft = draft_of(form)
    try:
        if form.get("action") == "submit":
            return 200, {"done": await portal.run_slow(portal.actions.submit, owner, form["name"], draft)}
        return 200, {"tried": await run_trial(portal, owner, draft, form)}
    except (FilterError, NameError_) as error:
        return 422, {"reasons": getattr(error, "reasons", [str(error)])}


async def run_trial(
    portal: Portal, owner: Owner, draft: FilterDraft, asked: Mapping[str, Any]
) -> TrialReport:
    """Try a filter on as many alerts as a form or the API's JSON asks for."""
    last, night = whole_number(asked.get("last"), SAMPLE), bool(asked.get("last_night"))
    if not 1 <= last <= MAX_SAMPLE:
        raise RefusedError(400, f"a filter is tried on 1 to {MAX_SAMPLE} alerts")
    return await portal.run_slow(partial(portal.actions.try_filter, of_last_night=night), owner, draft, last)


def draft_of(asked: Mapping[str, Any]) -> FilterDraft:
    """Return the filter in the fields of a form, or of the API's JSON.

    Raises:
        RefusedError: 400: a field is not valid.
    """
    language, choice = asked.get("language") or "python", asked.get("choice") or "first"
    texts = {name: asked.get(name) or "" for name in TEXTS}
    lists: dict[str, Any] = {name: _names(asked.get(name)) for name in LISTS}
    file, targets = asked.get("targets") or ("", b"")
    if str(language) not in INITIAL_TEXTS or choice not in ("first", "best"):
        raise RefusedError(400, "language is python or sql, choice is first or best")
    if not all(isinstance(text, str) for text in texts.values()):
        raise RefusedError(400, f"{', '.join(TEXTS)} are texts")
    texts["behind"] = texts["behind"] or "newest"
    try:
        radius = float(asked.get("radius") or 2.0)
    except (TypeError, ValueError, OverflowError) as error:
        raise RefusedError(400, f"radius={str(asked['radius'])[:20]!r} is no number [arcsec]") from error
    return FilterDraft(
        language, cap=whole_number(asked.get("cap"), CAP), choice=choice, lite=bool(asked.get("lite")),
        targets=targets, file=file, radius=radius, **texts, **lists,
    )  # fmt: skip


def _names(value: Any) -> list[str]:
    """Return the names in a list, or in a text with commas."""
    names = value if isinstance(value, list) else str(value or "").split(",")
    return [name.strip() for name in map(str, names) if name.strip()]


async def _initial_values(portal: Portal, owner: Owner, http: Request) -> dict[str, str]:
    """Return the editor's first values: those of a filter's version, or defaults."""
    asked, blank = http.query_params, dict.fromkeys(FIELDS, "")
    if name := asked.get("name"):
        shown = await portal.query(owner, queries.show_version, name, whole_number(asked.get("version")))
        same = ("survey", "cap", "choice", "entry", "transform", "output", "behind")
        recorded = {key: str(shown.record[key]) for key in same}
        recorded |= {key: ", ".join(shown.record[key]) for key in ("drop", "means", "sources")}
        own = {"language": shown.language, "text": shown.record["source"], "name": name}
        return {**blank, **recorded, **own}
    language = "sql" if asked.get("language") == "sql" else "python"
    return {**blank, "language": language, "text": INITIAL_TEXTS[language], "survey": asked.get("survey", "")}


async def shared_filter(portal: Portal, http: Request) -> Response:
    """Show the text of a signed link; or write or take back a comment on it."""
    owner, name, version, text = await portal.run_slow(portal.actions.open_link, http.path_params["link"])
    if http.method == "POST":
        form = await read_form(http)
        await _change_comments(portal, await portal.owner(http), owner, name, form)
    login, kafka = portal.authorizer.login(http), portal.actions.where.kafka
    comments, unread = await _or_refusal(portal.run_slow(read_comments, kafka, owner, name))
    return render(
        portal, "shared.html", owner=owner, name=name, version=version, text=text, comments=comments,
        unread=unread, who=login.name if login else "", token=csrf_token(http), at=http.url.path,
    )  # fmt: skip


def whole_number(value: Any, default: int = 0) -> int:
    """Return *value* as a whole number from 0 on; *default* where it is empty.

    Raises:
        RefusedError: 400: it is no such number.
    """
    text = "" if value is None else str(value)
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise RefusedError(400, f"{text[:40]!r} is no whole number from 0 on")
    return int(text)


def _page(
    portal: Portal, http: Request, owner: Owner, page: str, status: int = 200, **values: Any
) -> Response:
    """Render a page of an owner's, with the token of its forms."""
    verified = portal.authorizer.access.demanded
    return render(portal, page, status, token=csrf_token(http), owner=owner.name, verified=verified, **values)
