"""The HTTP API: alerts by id, object, cone and SQL, in pages; packets; IVOA's cone search."""

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import chain
from typing import Any

from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]
from prometheus_client import Counter
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from nightwire.archive.querying import FORMATS, Archive, BusyError, avro_parts, parse_columns, votable_error
from nightwire.archive.storage import ArchiveError, StorageError
from nightwire.schemas import SchemaError, StampError, stamp_file
from nightwire.schemas import survey as survey_called
from nightwire.schemas.serving import KafkaAccess, RefusedError, asking, hung_up, may, object_of, refusal
from nightwire.schemas.topics import alerts

PAGE_ROWS = 1000
"""Rows of a page, unless more are asked for."""
MAX_PAGE_ROWS = 50_000
"""Most rows of a page."""
MAX_PACKETS = 500
"""Most packets of an answer."""
PACKET_COLUMNS = ("partition", "offset", "schema_id")
"""The columns by which whole alerts are found."""
PAGE_BYTES = 4 << 20
"""Size at which a page of packets ends. [byte]"""
CONCURRENT_PACKETS = 4
"""Most answers with packets that are made at the same time; others wait."""
SQL_BYTES = 64 << 20
"""Most memory that an answer to SQL takes. [byte]"""
MAX_CONE_ROWS = 2_000_000
"""Most index rows that a cone search reads: 0.5 GB."""
MAX_BODY = 64 << 10
"""Longest body of a request. [byte]"""
SQL_TIMEOUT = 30.0
"""Longest time for a query in SQL. [s]"""

Handler = Callable[[Archive, Request], Any]
"""Answers a request, in a thread of its own, with a table or a response."""


def application(archive: Archive, access: KafkaAccess, answered: Counter) -> Starlette:
    """Return the HTTP API of *archive* as an ASGI application; *answered* counts its requests."""
    handlers: Mapping[str, Handler] = {
        "/surveys": surveys,
        "/{survey}/alerts/{id}": partial(alerts_of, Archive.get),
        "/{survey}/alerts/{id}/stamps/{stamp}": stamp,
        "/{survey}/objects/{id}": partial(alerts_of, Archive.object),
        "/{survey}/objects/{id}/light_curve": light_curve,
        "/{survey}/cone": cone,
        "/{survey}/scs": simple_cone_search,
        "/{survey}/records/{partition:int}": packets,
        "/{survey}/records/{partition:int}/first": first_since,
    }
    serve = partial(_respond, archive, access, answered, asyncio.Semaphore(CONCURRENT_PACKETS))
    routes = [Route(path, partial(serve, handler)) for path, handler in handlers.items()]
    routes.insert(0, Route("/query", partial(serve, query), methods=["GET", "POST"]))
    return Starlette(routes=routes, exception_handlers={ClientDisconnect: hung_up})


async def _respond(
    archive: Archive,
    access: KafkaAccess,
    answered: Counter,
    packet_slots: asyncio.Semaphore,
    handler: Handler,
    http: Request,
) -> Response:
    try:
        named = http.path_params.get("survey")
        whose = [named] if named else await run_in_threadpool(lambda: archive.surveys)
        await _check_access(access, http, whose)
        if http.method == "POST":
            http.state.body = await object_of(http, MAX_BODY)
        has_packets = handler is packets or http.query_params.get("as") == "avro"
        async with packet_slots if has_packets else nullcontext():
            response = await run_in_threadpool(_handle, archive, handler, http)
    except RefusedError as error:
        response = refusal(error.status, str(error))
    except (StorageError, BusyError, OSError) as error:
        response = refusal(503, _without_folder(archive, error))
    except (ArchiveError, SchemaError) as error:
        response = refusal(400, _without_folder(archive, error))
    response.headers["Cache-Control"] = "no-store"
    answered.labels(http.scope["route"].path, str(response.status_code)).inc()
    return response


def _without_folder(archive: Archive, error: Exception) -> str:
    """Return the message of an error without the folder or bucket of *archive*."""
    return str(error).replace(str(archive.store), "the archive")


async def _check_access(access: KafkaAccess, http: Request, surveys: Sequence[str]) -> None:
    """Check the caller's right to read the alerts of all *surveys*, unless Kafka has no passwords.

    Raises:
        RefusedError: The login is missing or wrong, or lacks the right.
    """
    if (login := asking(access, http)) is None:
        return
    if not surveys:
        await may(access, login, AclOperation.DESCRIBE)  # a wrong password is refused here, too
    for survey in surveys:
        if not await may(access, login, AclOperation.READ, alerts(survey)):
            raise RefusedError(403, f"{login.name} has no right to read {alerts(survey)}")


def _handle(archive: Archive, handler: Handler, http: Request) -> Response:
    found = handler(archive, http)
    return found if isinstance(found, Response) else _page(http, found)


def surveys(archive: Archive, _http: Request) -> Response:
    """Answer with the names of the surveys."""
    return JSONResponse(archive.surveys)


def alerts_of(find: Callable[..., Any], archive: Archive, http: Request) -> Any:
    """Answer with the alerts of an id, or of an object; ``?as=avro``: whole, with their stamps."""
    survey, name = http.path_params["survey"], http.path_params["id"]
    whole = http.query_params.get("as") == "avro"
    columns = PACKET_COLUMNS if whole else parse_columns(http.query_params.get("columns"))
    found = find(archive, name, survey, columns)
    if not len(found):
        raise RefusedError(404, f"no alert of {name} is archived")
    return _container(archive, survey, _rows(http, found), _link(http, found)) if whole else found


def _container(archive: Archive, survey: str, rows: Any, headers: Mapping[str, str]) -> Response:
    """Answer with the whole alerts of *rows*; each is read as the one before is sent."""

    def parts() -> Iterator[tuple[int, bytes]]:
        return avro_parts(archive.packets_of(rows, survey), archive.decode)

    ids = {*rows.column("schema_id").to_pylist()}
    if (None in ids or len(ids) > 1) and (count := len({number for number, _ in parts()})) > 1:
        raise RefusedError(409, f"these alerts have {count} schemas, a container has one: ask by id")
    body = (part for _, part in parts())
    if (head := next(body, None)) is None:
        raise RefusedError(404, "these alerts are no longer kept whole")
    return StreamingResponse(chain([head], body), media_type="application/avro", headers=headers)


def stamp(archive: Archive, http: Request) -> Response:
    """Answer with a stamp of the alert of an id, ``science.fits`` or ``science.png``."""
    name, alert_id = http.path_params["survey"], http.path_params["id"]
    if (found := archive.newest(alert_id, name)) is None:
        raise RefusedError(404, f"no alert of {alert_id} is archived")
    try:
        stamps = survey_called(name).view(found.alert).stamps
        media_type, body = stamp_file(stamps, http.path_params["stamp"])
    except LookupError as error:
        raise RefusedError(404, str(error.args[0])) from error
    except StampError as error:
        raise RefusedError(422, str(error)) from error
    return Response(body, media_type=media_type)


def light_curve(archive: Archive, http: Request) -> Any:
    """Answer with the merged light curve of an object."""
    return archive.light_curve(http.path_params["id"], http.path_params["survey"])


def cone(archive: Archive, http: Request) -> Any:
    """Answer ``?ra=&dec=&radius=``. [deg]"""
    ra, dec, radius = (_number(http, name) for name in ("ra", "dec", "radius"))
    columns = parse_columns(http.query_params.get("columns"))
    return archive.cone(ra, dec, radius, http.path_params["survey"], columns, max_rows=MAX_CONE_ROWS)


def simple_cone_search(archive: Archive, http: Request) -> Response:
    """Answer as IVOA's Simple Cone Search 1.03 wants it: always a VOTable, errors too."""
    asked = {name.upper(): value for name, value in http.query_params.items()}
    try:
        ra, dec, radius = (float(asked[name]) for name in ("RA", "DEC", "SR"))
        found = archive.cone(ra, dec, radius, http.path_params["survey"], max_rows=MAX_CONE_ROWS)
        most = min(MAX_PAGE_ROWS, int(asked.get("MAXREC", PAGE_ROWS)))
        body = FORMATS["votable"][1](found.slice(0, 0 if radius == 0 else max(0, most)))
    except (KeyError, ValueError, ArchiveError) as error:
        why = f"no {error.args[0]}" if isinstance(error, KeyError) else str(error)
        body = votable_error(f"Error in the parameters: {why}")
    return Response(body, media_type="text/xml;content=x-votable")


def query(archive: Archive, http: Request) -> Any:
    """Answer ``{"sql": …}``, or ``?sql=…``."""
    sql = getattr(http.state, "body", http.query_params).get("sql")
    if not isinstance(sql, str):
        raise RefusedError(400, 'say {"sql": "SELECT …"}')
    rows = _whole_number(http, "start", 0) + _limit(http) + 1
    return archive.query_in_worker(sql, max_rows=rows, timeout=SQL_TIMEOUT, max_bytes=SQL_BYTES)


def packets(archive: Archive, http: Request) -> Response:
    """Answer ``?from=&until=`` with the first packets of these offsets, a stream of Arrow.

    The header ``Next-Offset`` says where to go on: at *from* itself where the archive ends there.
    """
    begin, end = (_whole_number(http, name, 0) for name in ("from", "until"))
    most = min(_whole_number(http, "limit", MAX_PACKETS), MAX_PACKETS)
    tables, number = archive.tables(http.path_params["survey"]), http.path_params["partition"]
    end = max(begin, min(end, begin + most, tables.position(number)))
    rows, after = tables.page(number, begin, end, PAGE_BYTES)
    media_type, make = FORMATS["arrow"]
    return Response(make(rows), media_type=media_type, headers={"Next-Offset": str(after)})


def first_since(archive: Archive, http: Request) -> Response:
    """Answer ``?since=MS`` with the first offset that was written then or later, null for none."""
    since = _whole_number(http, "since", 0)
    found = archive.tables(http.path_params["survey"]).first_since(http.path_params["partition"], since)
    return JSONResponse({"offset": found})


def _page(http: Request, found: Any) -> Response:
    """Answer with a page of *found*, in the form that is asked for."""
    form = http.query_params.get("as", "json")
    if form not in FORMATS:
        whole = "; whole alerts (avro) are had by id and by object"
        raise RefusedError(400, f"as={form}: there are {', '.join(FORMATS)}{whole}")
    media_type, make = FORMATS[form]
    return Response(make(_rows(http, found)), media_type=media_type, headers=_link(http, found))


def _rows(http: Request, found: Any) -> Any:
    return found.slice(_whole_number(http, "start", 0), _limit(http))


def _limit(http: Request) -> int:
    most = MAX_PACKETS if http.query_params.get("as") == "avro" else MAX_PAGE_ROWS
    return min(_whole_number(http, "limit", PAGE_ROWS), most)


def _link(http: Request, found: Any) -> dict[str, str]:
    """Return the header that says where the next page is, if there is one."""
    after = _whole_number(http, "start", 0) + _limit(http)
    if after >= len(found):
        return {}
    return {"Link": f'<{http.url.include_query_params(start=after)}>; rel="next"'}


def _number(http: Request, name: str) -> float:
    text = http.query_params.get(name)
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise RefusedError(400, f"{name}={text}: a number of degrees is wanted")
    return number


def _whole_number(http: Request, name: str, default: int) -> int:
    text = http.query_params.get(name, str(default))
    if not text.isdecimal() or len(text) > 18:
        raise RefusedError(400, f"{name}={text}: a whole number is wanted")
    return int(text)
