"""The API of the pages for everybody: JSON, files and pictures."""

import time
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from nightwire.consumers.formats import json_line
from nightwire.core.voevents import skymap_url
from nightwire.portal.exports import FORMATS
from nightwire.portal.model import RecordId, Row, density, moc
from nightwire.portal.model.formatting import sexagesimal
from nightwire.portal.model.sky_coverage import ORDER
from nightwire.portal.pictures import Target, finder_pdf, in_order, stamp_png
from nightwire.portal.serve.portal import (
    EPOCHS,
    Portal,
    alerts_of_object,
    chosen_topics,
    classifications_json,
    find,
    list_rows,
    number_param,
)
from nightwire.schemas import Stamp
from nightwire.schemas.serving import RefusedError
from nightwire.schemas.topics import VOEVENTS

IMMUTABLE = {"Cache-Control": "private, max-age=86400, immutable"}
"""Headers of what is made of one record, which never changes."""


async def alerts(portal: Portal, http: Request) -> Response:
    """List recent alerts, newest first."""
    visible = await portal.visible(http)
    return await portal.cached_response(http, visible, partial(_alerts, portal, http, visible))


async def _alerts(portal: Portal, http: Request, visible: frozenset[str]) -> Response:
    rows = list_rows(portal, http, visible)
    return JSONResponse({"alerts": [row.as_json() for row in rows]})


async def of_name(portal: Portal, http: Request) -> Response:
    """Give the recent alerts of an object, and its light curve."""
    rows, archive_missing = await alerts_of_object(portal, http, visible := await portal.visible(http))
    curve, missing = await portal.curve(rows)
    return JSONResponse(
        {
            "alerts": [row.as_json() for row in rows],
            "filters": portal.recent.filters(rows[0], visible),
            "matches": await portal.crossmatched(rows[0]),
            "returned": classifications_json(portal, rows, visible),
            "curve": [asdict(one) for one in curve],
            "missing": missing or archive_missing,
        }
    )


async def curve(portal: Portal, http: Request) -> Response:
    """Give an object's light curve as a file of ``?format=``."""
    rows, _ = await alerts_of_object(portal, http, await portal.visible(http))
    form, name = http.query_params.get("format", "csv"), rows[0].object or rows[0].id
    if form not in FORMATS:
        raise RefusedError(400, f"{form[:20]!r} is no format; there are {', '.join(FORMATS)}")
    found, _ = await portal.curve(rows)
    media_type, make = FORMATS[form]
    body = await run_in_threadpool(make, found, name)
    return Response(body, media_type=media_type, headers=_attachment(f"{rows[0].survey}-{name}.{form}"))


async def record(portal: Portal, http: Request) -> Response:
    """Give the record at an offset as JSON; stamps as base64 with ``?bytes=base64``."""
    record_id = await _record_id(portal, http)
    alert = await portal.alert(record_id)
    body = json_line(alert, with_bytes=http.query_params.get("bytes") == "base64")
    return Response(body, media_type="application/json", headers=IMMUTABLE)


async def stamps(portal: Portal, http: Request) -> Response:
    """Show the stamps of the alert at an offset beside each other, small."""
    record_id = await _record_id(portal, http)
    return Response(await portal.strip(record_id), media_type="image/jpeg", headers=IMMUTABLE)


async def stamp(portal: Portal, http: Request) -> Response:
    """Show one stamp with scale and north, by ``?stretch=``; or give it as ``?format=fits``."""
    record_id, name = await _record_id(portal, http), http.path_params["name"]
    raw = (await run_in_threadpool(portal.records.stamps, record_id)).get(name)
    if raw is None:
        raise RefusedError(404, f"the alert has no stamp {name[:40]!r}")
    if http.query_params.get("format") == "fits":
        file = _attachment(f"{'-'.join(map(str, record_id))}-{name}.fits")
        return Response(Stamp(name, raw).fits, media_type="image/fits", headers=IMMUTABLE | file)
    body = await run_in_threadpool(stamp_png, name, raw, http.query_params.get("stretch", "asinh"))
    return Response(body, media_type="image/png", headers=IMMUTABLE)


async def finder(portal: Portal, http: Request) -> Response:
    """Give a finder chart (PDF) of the newest alert of an object that has a stamp."""
    rows, _ = await alerts_of_object(portal, http, await portal.visible(http))
    row, found = await run_in_threadpool(_stamped, portal, rows)
    name = in_order(list(found))[0]
    facts = [f"alert {row.id}, {row.as_json()['time'] or 'at an unknown time'}"]
    facts += [] if row.magnitude is None else [f"{row.band or ''} {row.magnitude:.2f} mag (AB, difference)"]
    target = Target(
        f"{row.survey} {row.object or row.id}"[:60], sexagesimal(row.ra, row.dec), "\n".join(facts)
    )
    body = await run_in_threadpool(finder_pdf, target, Stamp(name, found[name]))
    return Response(
        body, media_type="application/pdf", headers=_attachment(f"finder-{row.survey}-{row.id}.pdf")
    )


def _stamped(portal: Portal, rows: list[Row]) -> tuple[Row, Mapping[str, bytes]]:
    """Return the newest alert that has stamps, and these: what is archived only may have some."""
    for row in [row for row in rows if row.stamps][:EPOCHS]:
        if found := portal.records.stamps(row.record_id):
            return row, found
    raise RefusedError(404, "no recent alert of it has a stamp")


async def skymap(portal: Portal, http: Request) -> Response:
    """Give the regions of a VOEvent's skymap; with ``?format=png`` drawn."""
    event = await portal.alert(await _record_id(portal, http))
    url = skymap_url(event.alert) if event.topic == VOEVENTS else ""
    if not url:
        raise RefusedError(404, "it names no skymap")
    found = portal.skymaps.get(url)
    if http.query_params.get("format") == "png":
        return Response(found.png, media_type="image/png", headers=IMMUTABLE)
    return JSONResponse(found.as_json())


async def search(portal: Portal, http: Request) -> Response:
    """Find ``?q=``: an id, a position, the name of a filter."""
    visible = await portal.visible(http)
    return JSONResponse((await run_in_threadpool(find, portal, http, visible)).as_json())


async def sky(portal: Portal, http: Request) -> Response:
    """Count alerts in HEALPix cells of ``?order=``, of the last ``?hours=``."""
    topics = chosen_topics(http, await portal.visible(http))
    order = int(number_param(http, "order", ORDER, 0, 12))
    rows = await run_in_threadpool(portal.recent.placed, topics, since_hours(http))
    cells = await run_in_threadpool(density, rows, order)
    return JSONResponse({"order": order, "scheme": "nested", "alerts": len(rows), "cells": cells})


async def sky_moc(portal: Portal, http: Request) -> Response:
    """Give the map (MOC) of where alerts came from, as ``?format=`` json or fits."""
    topics = chosen_topics(http, await portal.visible(http))
    rows = await run_in_threadpool(portal.recent.placed, topics, since_hours(http))
    found = await run_in_threadpool(moc, rows)
    if http.query_params.get("format") == "fits":
        from io import BytesIO

        file = BytesIO()
        await run_in_threadpool(lambda: found.serialize("fits").writeto(file))
        return Response(file.getvalue(), media_type="application/fits", headers=_attachment("moc.fits"))
    return JSONResponse(found.serialize("json"))


def since_hours(http: Request) -> float:
    """Return the time ``?hours=`` ago. [s since 1970]"""
    return time.time() - 3600 * number_param(http, "hours", 24, 0, 24 * 365)


async def _record_id(portal: Portal, http: Request) -> RecordId:
    """Return topic, partition and offset of the path, if the user may read the topic."""
    topic, partition, offset = (http.path_params[name] for name in ("topic", "partition", "offset"))
    await portal.require_visible(http, topic)
    if partition >= 1 << 31 or offset >= 1 << 63:
        raise RefusedError(404, "there is no such offset")
    return topic, partition, offset


def _attachment(name: str) -> dict[str, str]:
    """Return the header by which browsers save a file, its name made of safe characters."""
    safe = "".join(one if one.isascii() and (one.isalnum() or one in ".-_") else "_" for one in name)
    return {"Content-Disposition": f'attachment; filename="{safe[-120:]}"'}
