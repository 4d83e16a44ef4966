"""A night on a Kafka: simulated alerts of two surveys, what a filter passed, hostile VOEvents."""

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from astropy.io import fits
from prometheus_client import CollectorRegistry, Counter

from consumers.tests.returns.test_returns import body
from nightwire.core.catalogues import CatalogueStore
from nightwire.core.kafka import Writer, producer
from nightwire.core.runtime import Endpoints
from nightwire.core.stack import free_port
from nightwire.portal.account import RateLimiter
from nightwire.portal.archive_client import Archive
from nightwire.portal.authorization import Authorizer
from nightwire.portal.filters import FilterActions
from nightwire.portal.follower import Follower
from nightwire.portal.model import RecentAlerts
from nightwire.portal.pipeline_status import PipelineStatus
from nightwire.portal.records import Records, StampCache
from nightwire.portal.serve import Portal, application
from nightwire.portal.serve.live import LiveStreams
from nightwire.portal.skymaps import SkymapCache
from nightwire.schemas import SIM_ALERT_ID, Codec, records, sim_alert_schema
from nightwire.schemas.serving import KafkaAccess, plain_server
from nightwire.schemas.wire import frame
from tests._alerts import empty
from tests._serving import running
from tests._waiting import until

HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>{{7*191}}'
"""A text that means harm."""
MJD = 61_000.25
SIM, FILTER = "alerts.sim", "filter.ann.bright"


@cache
def image_bytes(number: int = 0, *, wcs: bool = True) -> bytes:
    """Return a FITS file of 30 × 30 pixels, 0.2 arcsec each, north up and east to the left."""
    image = np.random.default_rng(number).normal(100.0, 5.0, (30, 30)).astype(np.float32)
    image[13:17, 13:17] += 900.0
    unit = fits.PrimaryHDU(image)
    if wcs:
        cards = {"CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CRVAL1": 10.0, "CRVAL2": 5.0}
        unit.header.update(
            cards | {"CRPIX1": 15.5, "CRPIX2": 15.5, "CD1_1": -0.2 / 3600, "CD2_2": 0.2 / 3600}
        )
        unit.header.update({"CD1_2": 0.0, "CD2_1": 0.0})
    file = io.BytesIO()
    unit.writeto(file)
    return file.getvalue()


def sim_alert(number: int, *, history: int = 0, **source: Any) -> dict[str, Any]:
    """Return a simulated alert, with earlier detections and forced photometry."""
    alert = empty(sim_alert_schema())
    alert["diaSourceId"] = alert["diaSource"]["diaSourceId"] = number
    own = {"diaObjectId": 1000 + number, "midpointMjdTai": MJD, "ra": 10.5 + number * 1e-3, "dec": -20.25}
    own |= {"band": "r", "psfFlux": 3631.0, "psfFluxErr": 363.0, "visit": 7}
    alert["diaSource"] |= own | source
    before = [{**alert["diaSource"], "midpointMjdTai": MJD - 1 - n, "diaSourceId": 0} for n in range(history)]
    alert["prvDiaSources"] = before
    if history:
        schema = next(f for f in sim_alert_schema()["fields"] if f["name"] == "prvDiaForcedSources")
        items = next(one for one in schema["type"] if isinstance(one, dict))["items"]
        faint = empty(items) | {
            "midpointMjdTai": MJD - 30,
            "band": "g",
            "psfFlux": 10.0,
            "psfFluxErr": 36.31,
        }
        alert["prvDiaForcedSources"] = [faint]
    stamps = {f"cutout{name}": image_bytes(number % 20) for name in ("Science", "Template", "Difference")}
    return alert | stamps


def message(alert: Mapping[str, Any]) -> bytes:
    """Return a simulated alert as it lies in Kafka."""
    return frame(SIM_ALERT_ID, Codec(sim_alert_schema()).encode(dict(alert)))


def voevent(ivorn: str, **more: Any) -> bytes:
    """Return a VOEvent as it lies in Kafka."""
    fields = {"ivorn": ivorn, "role": "observation", "version": "2.0", "author": None, "date": None}
    fields |= {
        "event_time": "2026-11-25T01:02:03Z",
        "ra": 12.0,
        "dec": -5.0,
        "error": None,
        "coord_system": None,
    }
    fields |= {"params": [], "citations": [], "origin": "author", "received": 1_700_000_000_000}
    return records.VOEVENT.encode(fields | {"raw": f"<voe:VOEvent>{HOSTILE}</voe:VOEvent>".encode()} | more)


def fill(bootstrap: str, count: int = 20) -> None:
    """Write the sample night."""
    with_partition: dict[str, Any] = {"partition": 0, "headers": [("survey", b"sim")]}
    writer = Writer(producer(bootstrap))
    for number in range(1, count + 1):
        writer.write(SIM, message(sim_alert(number, history=3)), **with_partition)
    same = sim_alert(count + 1, history=5, diaObjectId=1001, midpointMjdTai=MJD + 1)
    writer.write(SIM, message(same), **with_partition)
    writer.write(SIM, message(sim_alert(99, band=HOSTILE)), **with_partition)
    header = [("survey", b"sim"), ("topic", SIM.encode()), ("partition", b"0"), ("offset", b"0")]
    writer.write(FILTER, message(sim_alert(1, history=3)), partition=0, headers=header)
    for ivorn in ("ivo://nasa.gsfc.gcn/SWIFT#1-2", f"ivo://evil/{HOSTILE}"):
        writer.write("voevents", voevent(ivorn), partition=0)
    for more in ({}, {"classifierName": HOSTILE}, {"brokerName": "another"}):
        writer.write("returns.fink", body(21, **more), partition=0)
    writer.flush()


WRITTEN = 25
"""Records that `fill` writes, by default."""


@dataclass(frozen=True)
class Served:
    """A portal that runs: what it knows, and where it is."""

    portal: Portal
    url: str
    follower: Follower

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Wait until something *holds*."""
        until(holds, what, 60, tick=0.02)


@contextmanager
def serving(
    bootstrap: str,
    *,
    access: KafkaAccess | None = None,
    public: bool = False,
    registry: str | None = None,
    limit: RateLimiter | None = None,
    port: int = 0,
    archive: str = "",
    directory: str = "",
    catalogues: CatalogueStore | None = None,
    skymaps: SkymapCache | None = None,
) -> Iterator[Served]:
    """Serve a Kafka within the block, to whom *access* lets in."""
    where, stamps = Endpoints(bootstrap, registry, directory=directory or None), StampCache()
    recent, kept = RecentAlerts(1000), Records(where, stamps, Archive(archive) if archive else None)
    follower = Follower(where, recent, stamps, 500)
    authorizer = Authorizer(access or KafkaAccess({}), public)
    actions = FilterActions(where, authorizer.access, "secret")
    portal = Portal(
        recent, kept, authorizer, lambda: follower.topics, lambda: follower.trouble, "test", actions,
        limit or RateLimiter(), pipeline=PipelineStatus(where), catalogues=catalogues,
        skymaps=skymaps or SkymapCache(),
    )  # fmt: skip
    answered, streams = (
        Counter("answered", "", ["path", "status"], registry=CollectorRegistry()),
        LiveStreams(),
    )
    server = plain_server(application(portal, answered, streams), "127.0.0.1", port or free_port())
    streams.ending = lambda: server.should_exit
    follower.start()
    try:
        with running(server) as at:
            served = Served(portal, f"http://{at}", follower)
            served.until(lambda: follower.ready, "the portal is ready")
            yield served
    finally:
        follower.stop()
        kept.close()


def route_url(route: str) -> str:
    """Return an address of a route of Starlette's."""
    values = {"survey": "sim", "topic": SIM, "name": "bright", "action": "disable", "link": "x"}
    return re.sub(r"{(\w+)(:\w+)?}", lambda found: values.get(found[1], "0"), route)


def names(rows: Sequence[Any]) -> list[str]:
    """Return the ids of rows."""
    return [row.id for row in rows]
