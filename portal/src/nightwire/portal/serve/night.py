"""The page and the API of the night: the pipeline's status."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from nightwire.consumers.admin import SentBack, letter_lines, letter_record
from nightwire.core.voevents import Post, missing, thread
from nightwire.portal.account import csrf_token, read_form
from nightwire.portal.filters import Owner
from nightwire.portal.model import VOEVENT, RecentAlerts
from nightwire.portal.pipeline_status import PipelineStatus
from nightwire.portal.serve.filters_api import json_body
from nightwire.portal.serve.my_filters import whole_number
from nightwire.portal.serve.pages import localization, render
from nightwire.portal.serve.portal import Portal
from nightwire.schemas.serving import Login, RefusedError, Token
from nightwire.schemas.topics import ACCOUNTS, VOEVENTS, seen

THREADS = 20
"""Most threads of VOEvents that are shown."""
NOTHING = None, ""
Answers = Mapping[str, tuple[Any, str]]


async def night(portal: Portal, http: Request) -> Response:
    """Show the pipeline's status; or replay dead letters, by an operator's form."""
    done = None
    if http.method == "POST":
        form = await read_form(http)
        number, login = whole_number(form.get("number")), await portal.authorizer.authenticated(http)
        done = await _replay(portal, http, login, number, form.get("action") == "alike")
    visible, found = await _answers(portal, http)
    threads = await run_in_threadpool(newest_threads, portal.recent) if VOEVENTS in visible else []
    return render(
        portal,
        "night.html",
        found=found,
        visible=visible,
        directory=portal.pipeline.directory,
        parties=_parties(found.get("streams", NOTHING)[0]),
        replayed=_replayed(found) | {one.number for one in (done.replayed if done else ())},
        done=done,
        token=csrf_token(http) if "letters" in found and await _is_operator(portal, http) else "",
        threads=[(one, missing(one), _localization(portal, one)) for one in threads],
        letter_lines=letter_lines,
    )


async def of_night(portal: Portal, http: Request) -> Response:
    """Give the pipeline's status, as far as the user may see it."""
    _, found = await _answers(portal, http)
    replayed = _replayed(found)
    forms: dict[str, Callable[[Any], Any]] = {
        "accounts": lambda answer: answer.as_json(),
        "letters": lambda answer: [letter_record(one, one.number in replayed) for one in answer],
    }
    answers = {
        name: {"answer": answer and forms.get(name, lambda it: it)(answer), "missing": why}
        for name, (answer, why) in found.items()
    }
    return Response(json.dumps(answers, default=str), media_type="application/json")


async def replay_letter(portal: Portal, http: Request) -> Response:
    """Replay a dead letter, or all of its reason."""
    login = await portal.authorizer.authenticated(http)  # before a megabyte of a stranger's is read
    body = await json_body(http)
    done = await _replay(portal, http, login, http.path_params["number"], body.get("alike") is True)
    return JSONResponse(asdict(done), 422 if done.refused and not done.replayed else 200)


async def _replay(portal: Portal, http: Request, login: Login | Token, number: int, alike: bool) -> SentBack:
    """Replay a dead letter, or all alike, as the operator *login*, who sent the request.

    Raises:
        RefusedError: 403: the user is no operator; or see `PipelineStatus.replay`.
    """
    if not await _may_replay(portal, http):
        raise RefusedError(403, f"Kafka does not let {login.name[:60]} write {ACCOUNTS}: operators replay")
    operator = Owner.of(login, portal.authorizer.access, portal.actions.where.kafka)
    return await portal.run_slow(partial(portal.pipeline.replay, alike=alike), operator, number)


async def _is_operator(portal: Portal, http: Request) -> bool:
    """Whether the page has buttons to replay; not where Kafka does not answer."""
    try:
        return await _may_replay(portal, http)
    except RefusedError:
        return False


async def _may_replay(portal: Portal, http: Request) -> bool:
    """Whether the user may write accounts: else a second click would replay a letter twice."""
    return await portal.authorizer.may_write(http, ACCOUNTS)


def newest_threads(recent: RecentAlerts) -> list[list[Post]]:
    """Return the threads of the newest VOEvents, each oldest first."""
    posts, found, shown = recent.posts(), list[list[Post]](), set[str]()
    for one in posts:
        if one.ivorn not in shown and len(found) < THREADS:
            found.append(thread(posts, one.ivorn))
            shown |= {each.ivorn for each in found[-1]}
    return found


def _localization(portal: Portal, posts: list[Post]) -> dict[str, str] | None:
    """Return the localization of a thread's newest event that has one; None: none has."""
    event = next((one for one in reversed(posts) if one.position or one.skymap), None)
    rows = portal.recent.named(VOEVENT, event.ivorn, [VOEVENTS]) if event else []
    return localization(portal, rows[0], event) if event and rows else None


async def _answers(portal: Portal, http: Request) -> tuple[frozenset[str], Answers]:
    """Return the topics that the user may read, and the answers to him."""
    visible = await portal.visible(http)
    owners = {topic.split(".")[1] for topic in visible if topic.startswith("filter.")}
    more = await portal.authorizer.visible(http, {*PipelineStatus.TOPICS, *map(seen, owners)})
    return visible, await run_in_threadpool(portal.pipeline.answers, more)


def _replayed(found: Answers) -> set[int]:
    """Return the numbers of the dead letters that were replayed; none without accounts."""
    accounted = found.get("accounts", NOTHING)[0]
    return accounted.replayed if accounted else set()


def _parties(graph: Any) -> list[tuple[Any, list[str], list[str]]]:
    """Return each stream of the directory's graph, with the names of its writers and readers."""
    writers, readers = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    nodes = {one["id"]: one for one in graph["nodes"]} if graph else {}
    for edge in graph["edges"] if graph else ():
        writers[edge["to"]].append(nodes[edge["from"]]["name"])
        readers[edge["from"]].append(nodes[edge["to"]]["name"])
    streams = [one for one in nodes.values() if one["shape"] == "topic" and not one["own"]]
    return [(one, writers[one["id"]], readers[one["id"]]) for one in streams]
