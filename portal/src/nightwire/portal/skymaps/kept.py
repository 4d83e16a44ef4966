"""Skymaps by URLs that strangers wrote: fetched one at a time, from hosts that are allowed."""

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

from nightwire.core.outside import Outside, Refused, Unavailable, pinned
from nightwire.portal.skymaps.drawing import DrawnSkymap, drawn
from nightwire.portal.skymaps.regions import SkymapError
from nightwire.schemas.serving import RefusedError

log = logging.getLogger("nightwire.portal")

LARGEST = 20 << 20
"""Largest file that is fetched. [byte]"""
KEPT, WAITING = 256, 64
"""Most skymaps that are kept drawn, and that wait."""
AGAIN = 300.0
"""After no file, time in which nobody is asked again. [s]"""
LONGEST = 2000
"""Longest URL. [character]"""
FETCHING = "its skymap is being fetched"
HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([0-9a-z_.-]+))(?::(\d{1,5}))?")
PORTS = {"http": 80, "https": 443}


class HostError(ValueError):
    """It is no HOST or HOST:PORT."""


@dataclass(frozen=True)
class _Failure:
    status: int
    why: str
    until: float = float("inf")


class Skymaps:
    """Fetches and draws skymaps.  Safe to use from several threads.

    Args:
        hosts: From which, each HOST or HOST:PORT; others are never asked.  One that is a number
            may be an address inside.

    Raises:
        HostError: One of them is none.
    """

    def __init__(self, hosts: Collection[str] = ()) -> None:
        self._allowed = frozenset(map(_host, hosts))
        self._lock, self._at_work = Lock(), False
        self._waiting: OrderedDict[str, None] = OrderedDict()
        self._known: OrderedDict[str, DrawnSkymap | _Failure] = OrderedDict()

    def _refusal(self, url: str) -> str:
        """Return why *url* is not fetched; empty where it is."""
        try:
            where = httpx.URL(url[: LONGEST + 1])
        except httpx.InvalidURL:
            return "its skymap has no URL"
        if len(url) > LONGEST or where.scheme not in PORTS or not where.host:
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
        """Return the skymap of *url*; where it is not there, it will be fetched.

        Raises:
            RefusedError: 404: it is not fetched; 503: it is not there yet, or its host is away;
                422: it is no skymap that can be drawn.
        """
        if why := self._refusal(url):
            raise RefusedError(404, why)
        with self._lock:
            found = self._known.get(url)
            if isinstance(found, DrawnSkymap):
                self._known.move_to_end(url)
                return found
            if found is not None and time.monotonic() < found.until:
                raise RefusedError(found.status, found.why)
            self._order(url)
        raise RefusedError(503, FETCHING)

    def _order(self, url: str) -> None:
        """Let *url* be fetched behind those that wait.

        Raises:
            RefusedError: Too many do.
        """
        if url not in self._waiting and len(self._waiting) >= WAITING:
            raise RefusedError(503, "its skymap waits: many others are being fetched")
        self._waiting.setdefault(url)
        if not self._at_work:
            self._at_work = True
            Thread(target=self._work, name="skymaps", daemon=True).start()

    def _work(self) -> None:
        """Fetch and draw until nothing waits."""
        while (url := self._next()) is not None:
            found = _outcome(url)
            with self._lock:
                self._known[url] = found
                self._known.move_to_end(url)
                del self._waiting[url]
                if len(self._known) > KEPT:
                    self._known.popitem(last=False)

    def _next(self) -> str | None:
        with self._lock:
            url = next(iter(self._waiting), None)
            self._at_work = url is not None
            return url


def _outcome(url: str) -> DrawnSkymap | _Failure:
    """Return the skymap of *url*, or why there is none."""
    named = f"its skymap of {httpx.URL(url).host}"
    try:
        return drawn(fetched(url))
    except Unavailable as error:
        return _Failure(503, f"{named} cannot be had now: {error}", time.monotonic() + AGAIN)
    except Refused as error:  # its file may come after its event
        return _Failure(422, f"{named} is not drawn: {error}", time.monotonic() + AGAIN)
    except SkymapError as error:
        return _Failure(422, f"{named} is not drawn: {error}")
    except Exception:
        log.exception("%s is not drawn", named)
        return _Failure(503, f"{named} is not drawn: the portal failed", time.monotonic() + AGAIN)


def fetched(url: str) -> bytes:
    """Return the file at *url*, whose host is allowed.

    Raises:
        Unavailable: There is no answer; asking again may help.
        Refused: There will never be one, or it is too large.
    """
    target = pinned(url, inside=_is_number(httpx.URL(url).host))
    with closing(Outside(inside=False)) as outside:
        return outside.send(target.request(b"", {"accept": "*/*"}, "GET"), LARGEST)


def _host(text: str) -> tuple[str, int | None]:
    """Return name and port of HOST or HOST:PORT."""
    found = HOST.fullmatch(text.lower())
    if found is None or int(found[3] or 0) > 65_535:
        raise HostError(f"{text[:80]!r} is no HOST or HOST:PORT, such as gracedb.ligo.org")
    return found[1] or found[2], int(found[3]) if found[3] else None


def _is_number(host: str) -> bool:
    with suppress(ValueError):
        return bool(ipaddress.ip_address(host))
    return False
