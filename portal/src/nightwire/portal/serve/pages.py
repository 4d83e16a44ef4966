"""The pages for everybody: live list, object, search, sky, API."""

import json
import time
from collections.abc import Callable
from functools import cache, lru_cache, partial
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from nightwire.consumers import ReceivedAlert
from nightwire.consumers.formats import json_line
from nightwire.core.voevents import Post, missing, post, thread
from nightwire.portal.exports import FORMATS
from nightwire.portal.model import VOEVENT, Row, circle, density, formatting
from nightwire.portal.model.mollweide import outlines
from nightwire.portal.model.rows import UNIX_EPOCH, is_unfiltered, iso
from nightwire.portal.model.sky_coverage import ORDER
from nightwire.portal.pictures import STRETCHES, in_order
from nightwire.portal.records import MissingError
from nightwire.portal.serve.api import since_hours
from nightwire.portal.serve.portal import (
    PAGE_SIZE,
    Portal,
    alerts_of_object,
    chosen_topics,
    classifications_json,
    find,
    list_rows,
    number_param,
)
from nightwire.schemas import SchemaError
from nightwire.schemas.serving import RefusedError
from nightwire.schemas.topics import VOEVENTS

MAX_RECORD = 200_000
"""Longest record that a page shows. [character]"""
SHADES = 8
"""Shades of the sky map."""
MIN_RADIUS = 1.5
"""Radius of the smallest circle that is seen on a map of the sky. [deg]"""
CACHED_ROWS = 2000
"""Newest rows whose HTML is cached: pages of a hundred have most rows in common."""

ALADIN = files("nightwire.portal") / "static" / "vendor" / "aladin.js"
"""Made by `make portal-assets`."""
SKY_VIEW_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "worker-src blob:; connect-src 'self' data: {0}; img-src 'self' data: blob: {0}; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
"""Content security policy of the sky view: Aladin Lite is WebAssembly with a style sheet in it."""
TILE_HOSTS = "https://*.unistra.fr https://*.u-strasbg.fr"
"""Hosts of surveys' images, for viewers who ask for these."""


@cache
def templates() -> Environment:
    """Return the pages' templates: every text is escaped."""
    found = Environment(
        loader=PackageLoader("nightwire.portal"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # none changes while we run; a check costs two system calls each time
    )
    found.globals |= {
        "path": formatting.path,
        "object_url": formatting.object_url,
        "fixed": formatting.fixed,
        "iso": iso,
    }
    found.globals["row_html"] = row_html
    return found


@lru_cache(CACHED_ROWS)
def row_html(row: Row) -> Markup:
    """Return a row as HTML."""
    line: Callable[[Row], Markup] = templates().get_template("rows.html").module.line  # type: ignore[attr-defined]
    return line(row)


def render(portal: Portal, page: str, code: int = 200, **values: Any) -> Response:
    """Render a page."""
    context = {"site": portal.site, "trouble": portal.trouble(), "q": "", **values}
    return HTMLResponse(templates().get_template(page).render(context), code)


async def live(portal: Portal, http: Request) -> Response:
    """Show the newest alerts."""
    visible = await portal.visible(http)
    return await portal.cached_response(http, visible, partial(_live, portal, http, visible))


async def _live(portal: Portal, http: Request, visible: frozenset[str]) -> Response:
    rows = list_rows(portal, http, visible)
    asked = {name: http.query_params.get(name, "") for name in ("topic", "survey", "before")}
    surveys = [
        VOEVENT if topic == VOEVENTS else topic[len("alerts.") :] for topic in visible if is_unfiltered(topic)
    ]
    filters = [topic for topic in visible if topic.startswith("filter.")]
    at_least = portal.recent.newest_number(chosen_topics(http, visible))
    newest = max((row.number for row in rows), default=at_least)
    more = rows[-1].number if len(rows) >= PAGE_SIZE else 0
    return render(
        portal, "live.html", rows=rows, asked=asked, surveys=sorted(surveys), filters=sorted(filters),
        newest=newest, more=more,
    )  # fmt: skip


async def of_name(portal: Portal, http: Request) -> Response:
    """Show an object, or an alert without one."""
    rows, missing = await alerts_of_object(portal, http, visible := await portal.visible(http))
    wanted = http.query_params.get("alert", rows[0].id)
    shown = next((row for row in rows if row.id == wanted), rows[0])
    stretch = http.query_params.get("stretch", STRETCHES[0])
    values: dict[str, Any] = {
        "shown": shown,
        "rows": rows,
        "name": shown.object or shown.id,
        "position": formatting.sexagesimal(shown.ra, shown.dec).split("\n"),
        "galactic": formatting.galactic(shown.ra, shown.dec),
        "stretch": stretch if stretch in STRETCHES else STRETCHES[0],
        "stretches": STRETCHES,
        "formats": list(FORMATS),
        "matches": await portal.crossmatched(shown),
        "returned": classifications_json(portal, rows, visible),
        "filters": portal.recent.filters(shown, visible),
        "lines": formatting.python_lines(shown, str(http.base_url).rstrip("/")),
    }
    try:
        alert = await portal.alert(shown.record_id)
        values |= {"record": _record(alert), "stamps": in_order(list(alert.stamps)), "missing": missing}
        values["event"] = _event(portal, shown, alert) if alert.topic == VOEVENTS else None
    except (MissingError, SchemaError) as error:
        values |= {"record": "", "stamps": [], "missing": str(error), "event": None}
    return render(portal, "object.html", **values)


def _event(portal: Portal, shown: Row, alert: ReceivedAlert) -> dict[str, Any]:
    """Return a VOEvent's fields, its thread and its localization."""
    posts = thread(portal.recent.posts(), alert.alert["ivorn"])
    where = localization(portal, shown, post(alert.alert))
    return {**alert.alert, "thread": posts, "absent": missing(posts), "where": where}


def localization(portal: Portal, row: Row, event: Post) -> dict[str, str]:
    """Return what shows an event's localization: circle, skymap or its pending URL, summary."""
    found = dict.fromkeys(("circle", "map", "pending", "summary"), "")
    if event.position is not None:
        ra, dec, error = event.position
        found["circle"] = _points(circle(ra, dec, max(error, MIN_RADIUS)))
    if event.skymap:
        at = formatting.path("api", "skymaps", *row.record_id)
        try:
            found |= {"summary": portal.skymaps.get(event.skymap).summary, "map": f"{at}?format=png"}
        except RefusedError as error:
            found |= {"summary": str(error), "pending": at if error.status == 503 else ""}
    return found


def _points(outline: list[tuple[float, float]]) -> str:
    return " ".join(f"{x:.4f},{-y:.4f}" for x, y in outline)


def _record(alert: ReceivedAlert) -> str:
    """Return the record of an alert as text: of a VOEvent its author's, else JSON."""
    raw = alert.alert.get("raw") if alert.topic == VOEVENTS else None
    if isinstance(raw, bytes):
        text = raw.decode(errors="replace")
    else:
        text = json.dumps(json.loads(json_line(alert)), indent=1, ensure_ascii=False)
    return text[:MAX_RECORD] + ("\n… the rest by the API" if len(text) > MAX_RECORD else "")


async def search(portal: Portal, http: Request) -> Response:
    """Show the result of a search; redirect to an object where it is the only one."""
    visible = await portal.visible(http)
    found = await run_in_threadpool(find, portal, http, visible)
    if len(found.named) == 1 and not found.near:
        return RedirectResponse(formatting.object_url(found.named[0]), 303)
    q = http.query_params.get("q", "")[:500]
    return render(portal, "find.html", q=q, found=found, radius=f"{found.radius * 3600:g}")


async def sky(portal: Portal, http: Request) -> Response:
    """Show where on the sky alerts came from."""
    visible = await portal.visible(http)
    return await portal.cached_response(http, visible, partial(_sky, portal, http, visible))


async def _sky(portal: Portal, http: Request, visible: frozenset[str]) -> Response:
    topics = chosen_topics(http, visible)
    hours = http.query_params.get("hours") or "24"
    rows = await run_in_threadpool(portal.recent.placed, topics, since_hours(http))
    cells = await run_in_threadpool(_cells, rows)
    return render(
        portal, "sky.html", cells=cells, hours=hours, until=iso(time.time() / 86_400 + UNIX_EPOCH),
        alerts=len(rows), count=len(cells), most=max((one["count"] for one in cells), default=0),
    )  # fmt: skip


def _cells(rows: list[Row]) -> list[dict[str, Any]]:
    """Return the cells of the map: outline, shade, number of alerts, centre."""
    counts = density(rows)
    most = max(counts.values(), default=1)
    found = []
    for cell, count in counts.items():
        shade = 1 + round((SHADES - 1) * (count / most) ** 0.5)
        found.append({"cell": cell, "count": count, "shade": shade, "points": _cell_points(cell)})
    return found


@cache  # of 3,072 cells
def _cell_points(cell: int) -> str:
    return _points(outlines([cell], ORDER)[0])


async def sky_view(portal: Portal, http: Request) -> Response:
    """Show a position on the sky by Aladin Lite, where that is bundled, else on the map."""
    await portal.visible(http)
    ra, dec = number_param(http, "ra", 0, 0, 360), number_param(http, "dec", 0, -90, 90)
    field = number_param(http, "fov", 180, 0.001, 360)
    tiles = "tiles" in http.query_params
    page = render(
        portal, "view.html", ra=ra, dec=dec, field=field, tiles=tiles, bundled=ALADIN.is_file(),
        circle=_points(circle(ra, dec, MIN_RADIUS)),
    )  # fmt: skip
    page.headers["Content-Security-Policy"] = SKY_VIEW_POLICY.format(TILE_HOSTS if tiles else "")
    return page


async def about_api(portal: Portal, http: Request) -> Response:
    """Show what the API answers."""
    from nightwire.portal.serve.openapi import document

    await portal.visible(http)
    return render(portal, "api.html", paths=document(portal.site)["paths"])
