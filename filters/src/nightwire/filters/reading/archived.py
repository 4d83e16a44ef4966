"""Alerts of the last night, as the archive has them: asked over HTTP."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from typing import Any

import httpx

from nightwire.core.presence import ArchiveClient, SiteHttpError, request
from nightwire.filters.reading.fetch import offset_runs
from nightwire.filters.reading.recent import Sample
from nightwire.schemas import MendableError
from nightwire.schemas.topics import alerts

LAST_NIGHT = (
    'SELECT partition, "offset" FROM "{0}" WHERE night = (SELECT max(night) FROM "{0}") '
    'ORDER BY md5(id), partition, "offset" LIMIT {1}'
)
"""A random choice, the same each time."""
TIMEOUT = 60.0
"""Longest wait for an answer. [s]"""


class NoArchiveError(MendableError):
    """There is no archive to ask, or it does not answer; the message says what to do."""


def last_night(url: str | None, survey: str, most: int, login: tuple[str, str] | None = None) -> list[Sample]:
    """Return alerts of the newest night that an archive has of *survey*.

    Args:
        url: The archive's address; None where none is known.
        survey: Whose alerts.
        most: How many.
        login: Name and password at Kafka, which the archive asks for too.

    Raises:
        NoArchiveError: There is none, it refuses, or does not answer.
    """
    if url is None:
        raise NoArchiveError(
            "no archive: `nightwire up --archive` starts one, or name it by NIGHTWIRE_ARCHIVE_HTTP"
        )
    asked: dict[str, Any] = {"params": {"limit": most}, "json": {"sql": LAST_NIGHT.format(survey, most)}}
    try:
        answer = request("POST", f"{url}/query", login=login, timeout=TIMEOUT, **asked)
        places = [(row["partition"], row["offset"]) for row in answer.json()]
        with closing(ArchiveClient(url, login)) as archive:
            values = dict(_values(archive, alerts(survey), places))
    except SiteHttpError as error:
        raise NoArchiveError(str(error)) from error
    except httpx.HTTPError as error:
        raise NoArchiveError(f"the archive at {url} does not answer: {error}") from error
    return [(survey, values[one]) for one in places if one in values]


def _values(
    archive: ArchiveClient, topic: str, places: Iterable[tuple[int, int]]
) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Yield what lies at partitions and offsets; neighbours are asked for together."""
    for number, some in groupby(sorted(places), key=itemgetter(0)):
        for run in offset_runs(offset for _, offset in some):
            at, after = -1, run[0]
            while at < after <= run[-1]:
                at = after
                messages, after = archive.records((topic, number), range(at, run[-1] + 1))
                yield from (((number, one.offset() or 0), one.value() or b"") for one in messages)
