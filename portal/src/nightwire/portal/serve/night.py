"""The night as a page, and by the API."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from nightwire.consumers.admin import letter_lines, letter_record
from nightwire.core.voevents import Post, missing, thread
from nightwire.portal.model import Recent
from nightwire.portal.night import Night
from nightwire.portal.serve.pages import render
from nightwire.portal.serve.portal import Portal
from nightwire.schemas.topics import VOEVENTS, seen

THREADS = 20
"""Most threads of VOEvents that are shown."""
NOTHING = None, ""
Answers = Mapping[str, tuple[Any, str]]


async def night(portal: Portal, http: Request) -> Response:
    """Show the state of the night."""
    visible, found = await _answers(portal, http)
    threads = await run_in_threadpool(newest_threads, portal.recent) if VOEVENTS in visible else []
    return render(
        portal,
        "night.html",
        found=found,
        visible=visible,
        directory=portal.night.directory,
        parties=_parties(found.get("streams", NOTHING)[0]),
        replayed=_replayed(found),
        threads=[(one, missing(one)) for one in threads],
        letter_lines=letter_lines,
    )


async def of_night(portal: Portal, http: Request) -> Response:
    """Tell the state of the night, as far as who asks may see it."""
    _, found = await _answers(portal, http)
    replayed = _replayed(found)
    forms: dict[str, Callable[[Any], Any]] = {
        "accounts": lambda answer: answer.as_json(),
        "letters": lambda answer: [letter_record(one, one.number in replayed) for one in answer],
    }
    told = {
        name: {"answer": answer and forms.get(name, lambda it: it)(answer), "missing": why}
        for name, (answer, why) in found.items()
    }
    return Response(json.dumps(told, default=str), media_type="application/json")


def newest_threads(recent: Recent) -> list[list[Post]]:
    """Return the threads of the newest VOEvents, each oldest first."""
    posts, found, told = recent.posts(), list[list[Post]](), set[str]()
    for one in posts:
        if one.ivorn not in told and len(found) < THREADS:
            found.append(thread(posts, one.ivorn))
            told |= {each.ivorn for each in found[-1]}
    return found


async def _answers(portal: Portal, http: Request) -> tuple[frozenset[str], Answers]:
    """Return the topics that who asks may read, and the answers for him."""
    visible = await portal.visible(http)
    owners = {topic.split(".")[1] for topic in visible if topic.startswith("filter.")}
    more = await portal.gate.visible(http, {*Night.TOPICS, *map(seen, owners)})
    return visible, await run_in_threadpool(portal.night.answers, more)


def _replayed(found: Answers) -> set[int]:
    """Return the numbers of the dead letters that were replayed, as far as is known."""
    accounted = found.get("accounts", NOTHING)[0]
    return accounted.replayed if accounted else set()


def _parties(graph: Any) -> list[tuple[Any, list[str], list[str]]]:
    """Return each stream of the directory's graph, and the names of who writes and who reads it."""
    writers, readers = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    nodes = {one["id"]: one for one in graph["nodes"]} if graph else {}
    for edge in graph["edges"] if graph else ():
        writers[edge["to"]].append(nodes[edge["from"]]["name"])
        readers[edge["from"]].append(nodes[edge["to"]]["name"])
    streams = [one for one in nodes.values() if one["shape"] == "topic" and not one["own"]]
    return [(one, writers[one["id"]], readers[one["id"]]) for one in streams]
