"""What pages and API answer from, and the questions that both ask."""

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
from nightwire.portal.archive import ArchiveUnavailableError
from nightwire.portal.authorization import Authorizer, RateLimiter
from nightwire.portal.crossmatch import crossmatch
from nightwire.portal.filters import FilterActions, Owner
from nightwire.portal.model import VOEVENT, CurvePoint, RecentAlerts, RecordId, Row, curve_of, parse_query
from nightwire.portal.model.recent import positions, separation
from nightwire.portal.model.search import Position
from nightwire.portal.pipeline_status import PipelineStatus
from nightwire.portal.records import MissingError, Records
from nightwire.portal.serve.once import KeptAnswers, Once
from nightwire.portal.skymaps import SkymapCache
from nightwire.schemas import SchemaError
from nightwire.schemas.serving import RefusedError
from nightwire.schemas.topics import VOEVENTS

Answer = TypeVar("Answer")
OWNERS_AT_ONCE = 16
"""Questions and wishes of owners that are worked on at once."""
DRAWN, DRAWN_AT_ONCE = 256, 2
"""Most alerts whose stamps are awaited, and that are drawn, or fetched, at once."""
PAGE = 100
"""Alerts on a page."""
MOST = 1000
"""Most alerts in one answer."""
EPOCHS = 12
"""Newest alerts of an object of which the light curve is made."""
RADIUS = 10 / 3600
"""Of a search, where none is named. [deg]"""
WIDEST = 10.0
"""Of a search. [deg]"""


@dataclass(frozen=True)
class Portal:
    """What is served.

    Attributes:
        recent: The newest alerts.
        records: Fetches them from Kafka.
        authorizer: Who may see what.
        topics: Names those that are read.
        trouble: Says why nothing comes in; empty where all is well.
        site: This site's name.
        rate_limiter: How much a client may ask.
        pipeline: Answers about the state of the pipeline.
        actions: Carries out owners' wishes about their filters.
        catalogues: Those that objects are matched with; None: there are none.
        kept: Answers that others had.
        skymaps: Those that VOEvents name, fetched and drawn.
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
    kept: KeptAnswers = field(default_factory=KeptAnswers)
    skymaps: SkymapCache = field(default_factory=SkymapCache)
    _drawing: Once[bytes] = field(default_factory=lambda: Once(DRAWN))
    _artists: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(DRAWN_AT_ONCE))
    _owners: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(OWNERS_AT_ONCE))

    async def visible(self, http: Request) -> frozenset[str]:
        """Return the topics that who asks may read.

        Raises:
            RefusedError: He is not let in, or asks too much.
        """
        self.rate_limiter.check(http)
        return await self.authorizer.visible(http, self.topics())

    async def shared(
        self, http: Request, visible: frozenset[str], make: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Return what *make* answers to all who may read *visible*, until something comes in."""
        return await self.kept.answer(http, (visible, self.recent.newest_number, self.trouble()), make)

    async def owner(self, http: Request) -> Owner:
        """Return the owner of filters who asks.

        Raises:
            RefusedError: Nobody is signed in, or nobody who has filters; or he asks too much.
        """
        self.rate_limiter.check(http)
        return self.actions.owner(await self.authorizer.authenticated(http))

    async def wait_for(self, wish: Callable[..., Answer], *asked: Any) -> Answer:
        """Return what comes of an owner's *wish*, for whose slowness nobody else's page waits."""
        return await to_thread.run_sync(wish, *asked, limiter=self._owners)

    async def ask(self, owner: Owner, question: Callable[..., Answer], *asked: Any) -> Answer:
        """Return the answer to a question about the filters of *owner*."""
        return await self.wait_for(owner.ask, question, owner.bootstrap, owner.name, *asked)

    async def may_see(self, http: Request, topic: str) -> None:
        """Do nothing where who asks may read *topic*.

        Raises:
            RefusedError: He may not, or nothing is known of it.
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
        draw = partial(to_thread.run_sync, self.records.strip, record_id, limiter=self._artists)
        try:
            return await self._drawing.get(record_id, draw)
        finally:
            self._drawing.forget(record_id)  # `Records` keeps it, until the offset has other stamps

    async def crossmatched(self, row: Row) -> list[dict[str, Any]]:
        """Return what the site's catalogues have where *row* is, as JSON has it."""
        if self.catalogues is None or row.ra is None or row.dec is None:
            return []
        return [asdict(one) for one in await run_in_threadpool(crossmatch, self.catalogues, row.ra, row.dec)]

    async def curve(self, rows: list[Row]) -> tuple[list[CurvePoint], str]:
        """Return the light curve in the newest of *rows*, and why some of it is missing."""
        return await run_in_threadpool(_curve, self.records, rows[:EPOCHS])


def chosen(http: Request, visible: frozenset[str]) -> frozenset[str]:
    """Return which of the *visible* topics ``?topic=`` or ``?survey=`` ask for: else all surveys'.

    Raises:
        RefusedError: There is no such topic.
    """
    topic, survey = http.query_params.get("topic"), http.query_params.get("survey")
    if topic:
        if topic not in visible:
            raise RefusedError(404, f"{topic}: there is no such stream, or it is not yours to read")
        return frozenset({topic})
    own = {VOEVENTS if survey == VOEVENT else f"alerts.{survey}"} if survey else None
    return frozenset(topic for topic in visible if is_whole(topic) and (own is None or topic in own))


def number(http: Request, name: str, otherwise: float, least: float, most: float) -> float:
    """Return a number of the query.

    Raises:
        RefusedError: It is none, or not from *least* to *most*.
    """
    text = http.query_params.get(name) or str(otherwise)
    try:
        found = float(text)
    except ValueError as error:
        raise RefusedError(400, f"{name}={text[:40]!r} is no number") from error
    if not least <= found <= most:
        raise RefusedError(400, f"{name} is from {least:g} to {most:g}")
    return found


def listed(portal: Portal, http: Request, visible: frozenset[str]) -> list[Row]:
    """Return the rows that a list's query asks for, newest first."""
    most = int(number(http, "most", PAGE, 1, MOST))
    before = int(number(http, "before", 0, 0, 1e15)) or None
    return portal.recent.newest(chosen(http, visible), most, before=before)


async def of_object(portal: Portal, http: Request, visible: frozenset[str]) -> tuple[list[Row], str]:
    """Return the alerts of an object, or the alert, that the path names, newest first.

    And why some may be missing; empty where the archive answered, or there is none.

    Raises:
        RefusedError: None is known.
    """
    survey, name = http.path_params["survey"], http.path_params["name"]
    kept, missing = await run_in_threadpool(_archived, portal.records, survey, name, visible)
    recent = portal.recent.named(survey, name, visible)
    rows = sorted({row.id: row for row in (*kept, *recent)}.values(), key=lambda row: -(row.mjd or 0.0))
    if not rows and missing:
        raise RefusedError(503, f"{survey} {name[:100]} is not among the recent alerts, and {missing}")
    if not rows:
        raise RefusedError(404, f"{survey} {name[:100]}: neither among the recent alerts nor in an archive")
    return rows, missing


def classified(portal: Portal, rows: Sequence[Row], visible: frozenset[str]) -> list[dict[str, Any]]:
    """Return what community brokers sent back about the alerts of *rows*, as JSON has it."""
    return [asdict(one) for one in portal.recent.classifications({row.id for row in rows}, visible)]


@dataclass(frozen=True)
class Found:
    """What the box found.

    Attributes:
        named: The newest alert of each object, or the alert, of that name.
        topics: Streams of that name.
        position: The position that was written,
        radius: the radius around it, [deg]
        near: and what lies there, each with its distance. [deg]
        missing: Why some may be missing; empty where the archive answered, or there is none.
    """

    named: list[Row]
    topics: list[str]
    position: Position | None
    radius: float
    near: list[tuple[float, Row]]
    missing: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        position = None if self.position is None else {"ra": self.position.ra, "dec": self.position.dec}
        near = [{"distance": distance, **row.as_json()} for distance, row in self.near]
        named = [row.as_json() for row in self.named]
        return {
            "named": named,
            "topics": self.topics,
            "position": position,
            "radius": self.radius,
            "near": near,
            "missing": self.missing,
        }


def find(portal: Portal, http: Request, visible: frozenset[str]) -> Found:
    """Return what ``?q=`` finds; ``?radius=`` is in arcsec."""
    asked = parse_query(http.query_params.get("q", "")[:500])
    radius = min(asked.radius or number(http, "radius", RADIUS * 3600, 0, WIDEST * 3600) / 3600, WIDEST)
    named = portal.recent.any_named(asked.text, visible) if asked.text else []
    word, position, missing = asked.text.casefold(), asked.position, ""
    topics = sorted(topic for topic in visible if word and word in topic)
    near: list[tuple[float, Row]] = []
    own = frozenset(topic for topic in visible if is_whole(topic))
    if position is not None:
        near, missing = _near(portal, position, radius, own)
    elif word and not named:
        kept = [
            _archived(portal.records, topic.removeprefix("alerts."), asked.text, visible) for topic in own
        ]
        named = [rows[0] for rows, _ in kept if rows]
        missing = next((why for _, why in kept if why), "")
    return Found(named, topics, position, radius, near, missing)


def is_whole(topic: str) -> bool:
    """Whether *topic* holds all of a survey's alerts, or the VOEvents."""
    return topic == VOEVENTS or topic.startswith("alerts.")


def _near(
    portal: Portal, position: Position, radius: float, topics: frozenset[str]
) -> tuple[list[tuple[float, Row]], str]:
    """Return what lies around *position*, in the archive too, and why some may be missing."""
    recent = portal.recent.near(position.ra, position.dec, radius, topics, MOST)
    archive, kept = portal.records.archive, list[Row]()
    surveys = [topic.removeprefix("alerts.") for topic in topics - {VOEVENTS}] if archive else []
    missing = ""
    try:
        kept = [
            row for one in surveys if archive for row in archive.near(one, position.ra, position.dec, radius)
        ]
    except ArchiveUnavailableError as error:
        missing = str(error)
    known = {(row.survey, row.id) for _, row in recent}
    others = [row for row in kept if (row.survey, row.id) not in known]
    distances = separation(position.ra, position.dec, positions(others)).tolist()
    found = sorted([*recent, *zip(distances, others, strict=True)], key=lambda one: one[0])
    return found[:MOST], missing


def _archived(records: Records, survey: str, name: str, visible: frozenset[str]) -> tuple[list[Row], str]:
    """Return the alerts of that name that are archived, and why some may be missing."""
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
