"""Threads: events that hang together because one cites the other.  Pure."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

SKYMAP = "skymap_fits"
"""Param of a VOEvent that names its map of probability:
https://emfollow.docs.ligo.org/userguide/content.html"""


@dataclass(frozen=True)
class Post:
    """An event of a thread.

    Attributes:
        ivorn: What it is called.
        version: Of VOEvent: the same IVORN in two versions is two events.
        role: Its role.
        received: When it came into the log. [UTC]
        citations: The events that it cites: how (followup, supersedes, retraction), and which.
        position: Right ascension, declination and radius of error, where it has them. [deg]
        skymap: URL of its map of probability (FITS); empty without one.
    """

    ivorn: str
    version: str
    role: str
    received: datetime
    citations: tuple[tuple[str, str], ...]
    position: tuple[float, float, float] | None = None
    skymap: str = ""


def post(record: Mapping[str, Any]) -> Post:
    """Return what a thread shows of a record of `voevents`."""
    cited = tuple((one["cite"], one["ivorn"]) for one in record["citations"])
    return Post(
        record["ivorn"], record["version"], record["role"], record["received"], cited,
        _position(record), skymap_url(record),
    )  # fmt: skip


def skymap_url(record: Mapping[str, Any]) -> str:
    """Return the URL of the map that a record names as LIGO, Virgo and KAGRA do; else nothing."""
    named = (one["value"] for one in record["params"] if one["name"] == SKYMAP)
    return next(filter(None, named), "")


def _position(record: Mapping[str, Any]) -> tuple[float, float, float] | None:
    ra, dec = record["ra"], record["dec"]
    if ra is None or dec is None or not abs(dec) <= 90 or not math.isfinite(ra):
        return None
    return ra, dec, record["error"] or 0.0


def thread(posts: Iterable[Post], ivorn: str) -> list[Post]:
    """Return the events that citations connect with *ivorn*, oldest first.

    An event that is cited and not among *posts* holds its thread together as well.
    """
    named: dict[str, list[Post]] = defaultdict(list)
    citing: dict[str, list[str]] = defaultdict(list)
    for one in posts:
        named[one.ivorn].append(one)
        for _, cited in one.citations:
            citing[cited].append(one.ivorn)
    found, todo = {ivorn}, [ivorn]
    while todo:
        name = todo.pop()
        beside = {*citing[name], *(cited for one in named[name] for _, cited in one.citations)} - found
        found |= beside
        todo += beside
    return sorted((one for name in found for one in named[name]), key=lambda one: (one.received, one.ivorn))


def missing(posts: Iterable[Post]) -> list[str]:
    """Return what *posts* cite and is not among them, by name."""
    there, cited = set(), set()
    for one in posts:
        there.add(one.ivorn)
        cited |= {ivorn for _, ivorn in one.citations}
    return sorted(cited - there)
