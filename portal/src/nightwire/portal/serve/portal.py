"""What is served, and the queries that pages and API share."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from nightwire.consumers import ReceivedAlert
from nightwire.core.catalogues import CatalogueStore
from nightwire.portal.account import RateLimiter
from nightwire.portal.archive_client import ArchiveUnavailableError
from nightwire.portal.authorization import Authorizer
from nightwire.portal.crossmatch import crossmatch
from nightwire.portal.filters import FilterActions, Owner
from nightwire.portal.model import VOEVENT, CurvePoint, RecentAlerts, RecordId, Row, curve_of, parse_query
from nightwire.portal.model.recent import positions, separation
from nightwire.portal.model.rows import is_unfiltered
from nightwire.portal.model.search import Position
from nightwire.portal.pipeline_status import PipelineStatus
from nightwire.portal.records import MissingError, Records
from nightwire.portal.serve.single_flight import ResponseCache, SingleFlight
from nightwire.portal.skymaps import SkymapCache
from nightwire.schemas import SchemaError
from nightwire.schemas.serving import RefusedError
from nightwire.schemas.topics import VOEVENTS

Answer = TypeVar("Answer")
OWNER_THREADS = 16
"""Queries and actions of owners that run at once."""
MAX_DRAWING, DRAWING_THREADS = 256, 2
"""Most alerts whose strips are awaited, and that are drawn or fetched at once."""
PAGE_SIZE = 100
"""Alerts on a page."""
MAX_ROWS = 1000
"""Most alerts in one answer."""
EPOCHS = 12
"""Newest alerts of an object that make its light curve."""
DEFAULT_RADIUS = 10 / 3600
"""Default radius of a search. [deg]"""
MAX_RADIUS = 10.0
"""Largest radius of a search. [deg]"""


@dataclass(frozen=True)
class Portal:
    """What is served: the parts of a portal.

    Attributes:
        recent: The newest alerts.
        records: Fetches records from Kafka and the archive.
        authorizer: Tells which topics a user may read.
        topics: Returns the names of the topics that are read.
        trouble: Returns why nothing comes in; empty where all is well.
        site: This site's name.
        actions: Carries out owners' actions on their filters.
        rate_limiter: Limits the requests of each client.
        pipeline: Answers about the pipeline's status.
        catalogues: Catalogues for crossmatches; None: there are none.
        responses: Cache of responses.
        skymaps: Cache of the skymaps that VOEvents name.
    """

    recent: RecentAlerts
    records: Records
    authorizer: Authorizer
    topics: Callable[[], Sequence[str]]
    trouble: Callable[[], str]
    site: str
    actions: FilterActions
    rate_limiter: RateLimiter = field(default_factory=RateLimiter)
    pipeline: PipelineStatus = field(kw_only=True)
    catalogues: CatalogueStore | None = None
    responses: ResponseCache = field(default_factory=ResponseCache)
    skymaps: SkymapCache = field(default_factory=SkymapCache)
    _drawing: SingleFlight[bytes] = field(default_factory=lambda: SingleFlight(MAX_DRAWING))
    _drawing_limiter: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(DRAWING_THREADS))
    _owner_limiter: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(OWNER_THREADS))

    async def visible(self, http: Request) -> frozenset[str]:
        """Return the topics that the user may read.

        Raises:
            RefusedError: The user is not known.
        """
        return await self.authorizer.visible(http, self.topics())

    async def cached_response(
        self, http: Request, visible: frozenset[str], make: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Return the response of *make* to all who may read *visible*, until an alert comes in."""
        newest = self.recent.newest_number(chosen_topics(http, visible))
        return await self.responses.respond(http, (visible, newest, self.trouble()), make)

    async def owner(self, http: Request) -> Owner:
        """Return the owner who sent a request.

        Raises:
            RefusedError: The user is no owner, or not known.
        """
        return self.actions.owner(await self.authorizer.authenticated(http))

    async def run_slow(self, function: Callable[..., Answer], *arguments: Any) -> Answer:
        """Run an owner's query or action in a thread pool of their own: no other page waits."""
        return await to_thread.run_sync(function, *arguments, limiter=self._owner_limiter)

    async def query(self, owner: Owner, function: Callable[..., Answer], *arguments: Any) -> Answer:
        """Run a query of *owner*'s filters, with his rights."""
        return await self.run_slow(owner.ask, function, owner.bootstrap, owner.name, *arguments)

    async def require_visible(self, http: Request, topic: str) -> None:
        """Refuse users who may not read *topic*.

        Raises:
            RefusedError: 404: the user may not read it, or there is no such topic.
        """
        if topic not in await self.visible(http):
            raise RefusedError(404, f"{topic}: there is no such stream, or it is not yours to read")

    async def alert(self, record_id: RecordId) -> ReceivedAlert:
        """Return the alert in a record.

        Raises:
            MissingError: Neither Kafka nor the archive has it.
            SchemaError: The record holds no alert.
        """
        return await run_in_threadpool(self.records.alert, record_id)

    async def strip(self, record_id: RecordId) -> bytes:
        """Return an alert's stamps beside each other, as JPEG.

        Raises:
            MissingError: As of `alert`.
            SchemaError: Likewise.
        """
        if (drawn := self.records.cached_strip(record_id)) is not None:
            return drawn
        draw = partial(to_thread.run_sync, self.records.strip, record_id, limiter=self._drawing_limiter)
        try:
            return await self._drawing.get(record_id, draw)
        finally:
            self._drawing.forget(record_id)  # `Records` keeps it, until the offset has other stamps

    async def crossmatched(self, row: Row) -> list[dict[str, Any]]:
        """Return the crossmatch of a row's position with the site's catalogues, as JSON."""
        if self.catalogues is None or row.ra is None or row.dec is None:
            return []
        return [asdict(one) for one in await run_in_threadpool(crossmatch, self.catalogues, row.ra, row.dec)]

    async def curve(self, rows: list[Row]) -> tuple[list[CurvePoint], str]:
        """Return the light curve in the newest of *rows*, and why a part is missing or empty."""
        return await run_in_threadpool(_curve, self.records, rows[:EPOCHS])


def chosen_topics(http: Request, visible: frozenset[str]) -> frozenset[str]:
    """Return the *visible* topics of ``?topic=`` or ``?survey=``; by default all unfiltered ones.

    Raises:
        RefusedError: There is no such topic.
    """
    topic, survey = http.query_params.get("topic"), http.query_params.get("survey")
    if topic:
        if topic not in visible:
            raise RefusedError(404, f"{topic}: there is no such stream, or it is not yours to read")
        return frozenset({topic})
    own = {VOEVENTS if survey == VOEVENT else f"alerts.{survey}"} if survey else None
    return frozenset(topic for topic in visible if is_unfiltered(topic) and (own is None or topic in own))


def number_param(http: Request, name: str, default: float, least: float, most: float) -> float:
    """Return a number of the query string.

    Raises:
        RefusedError: 400: it is no number from *least* to *most*.
    """
    text = http.query_params.get(name) or str(default)
    try:
        found = float(text)
    except ValueError as error:
        raise RefusedError(400, f"{name}={text[:40]!r} is no number") from error
    if not least <= found <= most:
        raise RefusedError(400, f"{name} is from {least:g} to {most:g}")
    return found


def list_rows(portal: Portal, http: Request, visible: frozenset[str]) -> list[Row]:
    """Return the rows that a list's query asks for, newest first."""
    most = int(number_param(http, "most", PAGE_SIZE, 1, MAX_ROWS))
    before = int(number_param(http, "before", 0, 0, 1e15)) or None
    return portal.recent.newest(chosen_topics(http, visible), most, before=before)


async def alerts_of_object(portal: Portal, http: Request, visible: frozenset[str]) -> tuple[list[Row], str]:
    """Return the alerts of the object, or the alert, in the path, newest first.

    And why some may be missing; empty where the archive answered, or there is none.

    Raises:
        RefusedError: 404: there is none; 503: the archive, which may have some, is unavailable.
    """
    survey, name = http.path_params["survey"], http.path_params["name"]
    archived, missing = await run_in_threadpool(_from_archive, portal.records, survey, name, visible)
    recent = portal.recent.named(survey, name, visible)
    rows = sorted({row.id: row for row in (*archived, *recent)}.values(), key=lambda row: -(row.mjd or 0.0))
    if not rows and missing:
        raise RefusedError(503, f"{survey} {name[:100]} is not among the recent alerts, and {missing}")
    if not rows:
        raise RefusedError(404, f"{survey} {name[:100]}: neither among the recent alerts nor in an archive")
    return rows, missing


def classifications_json(
    portal: Portal, rows: Sequence[Row], visible: frozenset[str]
) -> list[dict[str, Any]]:
    """Return community brokers' classifications of the alerts of *rows*, as JSON."""
    return [asdict(one) for one in portal.recent.classifications({row.id for row in rows}, visible)]


@dataclass(frozen=True)
class SearchResult:
    """The result of a search.

    Attributes:
        named: The newest alert of each object, or the alert, with that id.
        topics: Topics whose names contain the text.
        position: The position searched for; None for a name.
        radius: Around it. [deg]
        near: Alerts in that circle, each with its distance. [deg]
        missing: Why some may be missing; empty where the archive answered, or there is none.
    """

    named: list[Row]
    topics: list[str]
    position: Position | None
    radius: float
    near: list[tuple[float, Row]]
    missing: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON."""
        near = [{"distance": distance, **row.as_json()} for distance, row in self.near]
        named = [row.as_json() for row in self.named]
        return {
            **vars(self),
            "named": named,
            "position": self.position and asdict(self.position),
            "near": near,
        }


def find(portal: Portal, http: Request, visible: frozenset[str]) -> SearchResult:
    """Search for ``?q=``; ``?radius=`` is in arcsec."""
    asked = parse_query(http.query_params.get("q", "")[:500])
    radius = min(
        asked.radius or number_param(http, "radius", DEFAULT_RADIUS * 3600, 0, MAX_RADIUS * 3600) / 3600,
        MAX_RADIUS,
    )
    named = portal.recent.any_named(asked.text, visible) if asked.text else []
    word, position, missing = asked.text.casefold(), asked.position, ""
    topics = sorted(topic for topic in visible if word and word in topic)
    near: list[tuple[float, Row]] = []
    own = frozenset(topic for topic in visible if is_unfiltered(topic))
    if position is not None:
        near, missing = _near(portal, position, radius, own)
    elif word and not named:
        surveys = (topic.removeprefix("alerts.") for topic in own)
        archived = [_from_archive(portal.records, one, asked.text, visible) for one in surveys]
        named = [rows[0] for rows, _ in archived if rows]
        missing = next((why for _, why in archived if why), "")
    return SearchResult(named, topics, position, radius, near, missing)


def _near(
    portal: Portal, position: Position, radius: float, topics: frozenset[str]
) -> tuple[list[tuple[float, Row]], str]:
    """Return recent and archived alerts around *position*, and why some may be missing."""
    recent = portal.recent.near(position.ra, position.dec, radius, topics, MAX_ROWS)
    archive, archived, missing = portal.records.archive, list[Row](), ""
    surveys = [topic.removeprefix("alerts.") for topic in topics - {VOEVENTS}]
    circle = position.ra, position.dec, radius
    try:
        archived = [row for one in surveys if archive for row in archive.near(one, *circle)]
    except ArchiveUnavailableError as error:
        missing = str(error)
    known = {(row.survey, row.id) for _, row in recent}
    others = [row for row in archived if (row.survey, row.id) not in known]
    distances = separation(position.ra, position.dec, positions(others)).tolist()
    found = sorted([*recent, *zip(distances, others, strict=True)], key=lambda one: one[0])
    return found[:MAX_ROWS], missing


def _from_archive(records: Records, survey: str, name: str, visible: frozenset[str]) -> tuple[list[Row], str]:
    """Return the archive's alerts with that id, and why some may be missing."""
    if records.archive is None or f"alerts.{survey}" not in visible:
        return [], ""
    try:
        return records.archive.named(survey, name), ""
    except ArchiveUnavailableError as error:
        return [], str(error)


def _curve(records: Records, rows: list[Row]) -> tuple[list[CurvePoint], str]:
    alerts, missing = [], ""
    for row in rows:
        try:
            alerts.append(records.alert(row.record_id))
        except (MissingError, SchemaError) as error:
            missing = f"of alert {row.id} nothing can be had: {error}"
    return curve_of(alerts), missing
