"""Cache of skymaps by URL: fetched one at a time, from allowed hosts, and drawn."""

import ipaddress
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Collection
from contextlib import closing, suppress
from dataclasses import dataclass
from threading import Lock, Thread

import httpx

from nightwire.core.outside import OutboundClient, Refused, Unavailable, pin_url
from nightwire.portal.skymaps.drawing import DrawnSkymap, draw
from nightwire.portal.skymaps.regions import SkymapError
from nightwire.schemas.serving import RefusedError

log = logging.getLogger("nightwire.portal")

MAX_FILE = 20 << 20
"""Largest file that is fetched. [byte]"""
MAX_CACHED, MAX_QUEUED = 256, 64
"""Most skymaps in the cache, and most URLs in the queue."""
RETRY_AFTER = 300.0
"""Time after a failure before a URL is fetched again. [s]"""
MAX_URL = 2000
"""Longest URL. [character]"""
FETCHING = "its skymap is being fetched"
HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([0-9a-z_.-]+))(?::(\d{1,5}))?")
PORTS = {"http": 80, "https": 443}


class HostError(ValueError):
    """A text is no HOST or HOST:PORT."""


@dataclass(frozen=True)
class _Failure:
    status: int
    why: str
    until: float = float("inf")


class SkymapCache:
    """The newest skymaps, fetched and drawn by a worker thread.  Safe to use from several threads.

    Args:
        hosts: Allowed hosts, each HOST or HOST:PORT; an IP address may be of the inner network.

    Raises:
        HostError: One of *hosts* is none.
    """

    def __init__(self, hosts: Collection[str] = ()) -> None:
        self._allowed = frozenset(map(_host, hosts))
        self._lock, self._running = Lock(), False
        self._queue: OrderedDict[str, None] = OrderedDict()
        self._cached: OrderedDict[str, DrawnSkymap | _Failure] = OrderedDict()

    def _refusal(self, url: str) -> str:
        """Return why *url* may not be fetched; empty where it may."""
        try:
            where = httpx.URL(url[: MAX_URL + 1])
        except httpx.InvalidURL:
            return "its skymap has no URL"
        if len(url) > MAX_URL or where.scheme not in PORTS or not where.host:
            return "its skymap has no http or https URL"
        port = where.port or PORTS[where.scheme]
        if {(where.host, where.port), (where.host, port)} & self._allowed:
            return ""
        name = f"[{where.host}]" if ":" in where.host else where.host
        named = f"{name}:{where.port}" if where.port else name
        return (
            f"its skymap is not drawn: nightwire portal serve --skymaps-from {named[:200]} "
            "lets it be fetched; that is for the operator to say"
        )

    def get(self, url: str) -> DrawnSkymap:
        """Return the skymap at *url*; one that is not cached is queued.

        Raises:
            RefusedError: 404: its host is not allowed; 503: it is queued, or its host is
                unavailable; 422: it cannot be drawn.
        """
        if why := self._refusal(url):
            raise RefusedError(404, why)
        with self._lock:
            found = self._cached.get(url)
            if isinstance(found, DrawnSkymap):
                self._cached.move_to_end(url)
                return found
            if found is not None and time.monotonic() < found.until:
                raise RefusedError(found.status, found.why)
            self._enqueue(url)
        raise RefusedError(503, FETCHING)

    def _enqueue(self, url: str) -> None:
        """Put *url* at the end of the queue.

        Raises:
            RefusedError: 503: the queue is full.
        """
        if url not in self._queue and len(self._queue) >= MAX_QUEUED:
            raise RefusedError(503, "its skymap waits: many others are being fetched")
        self._queue.setdefault(url)
        if not self._running:
            self._running = True
            Thread(target=self._run, name="skymaps", daemon=True).start()

    def _run(self) -> None:
        """Fetch and draw until the queue is empty."""
        while (url := self._next()) is not None:
            found = _fetch_and_draw(url)
            with self._lock:
                self._cached[url] = found
                self._cached.move_to_end(url)
                del self._queue[url]
                if len(self._cached) > MAX_CACHED:
                    self._cached.popitem(last=False)

    def _next(self) -> str | None:
        with self._lock:
            url = next(iter(self._queue), None)
            self._running = url is not None
            return url


def _fetch_and_draw(url: str) -> DrawnSkymap | _Failure:
    """Return the skymap at *url*, or why it could not be fetched or drawn."""
    named = f"its skymap of {httpx.URL(url).host}"
    try:
        return draw(fetch(url))
    except Unavailable as error:
        return _Failure(503, f"{named} cannot be had now: {error}", time.monotonic() + RETRY_AFTER)
    except Refused as error:  # its file may come after its event
        return _Failure(422, f"{named} is not drawn: {error}", time.monotonic() + RETRY_AFTER)
    except SkymapError as error:
        return _Failure(422, f"{named} is not drawn: {error}")
    except Exception:
        log.exception("%s is not drawn", named)
        return _Failure(503, f"{named} is not drawn: the portal failed", time.monotonic() + RETRY_AFTER)


def fetch(url: str) -> bytes:
    """Return the file at *url*, whose host is allowed.

    Raises:
        Unavailable: The host does not answer; asking again may help.
        Refused: The host refuses, or the file is too large.
    """
    target = pin_url(url, allow_private=_is_ip_address(httpx.URL(url).host))
    with closing(OutboundClient()) as outside:
        return outside.send(target.request(b"", {"accept": "*/*"}, "GET"), MAX_FILE)


def _host(text: str) -> tuple[str, int | None]:
    """Return name and port of HOST or HOST:PORT."""
    found = HOST.fullmatch(text.lower())
    if found is None or int(found[3] or 0) > 65_535:
        raise HostError(f"{text[:80]!r} is no HOST or HOST:PORT, such as gracedb.ligo.org")
    return found[1] or found[2], int(found[3]) if found[3] else None


def _is_ip_address(host: str) -> bool:
    with suppress(ValueError):
        return bool(ipaddress.ip_address(host))
    return False
