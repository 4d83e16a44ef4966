"""What Kafka has forgotten, asked of the archive over HTTP."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

import httpx
from confluent_kafka import Message

from nightwire.core.presence import ArchiveClient, whom_to_trust
from nightwire.portal.model import Row
from nightwire.portal.model.rows import to_utc
from nightwire.schemas import survey as survey_of
from nightwire.schemas.topics import alerts

TIMEOUT = 5.0
"""Longest wait for an answer. [s]"""
Place = tuple[str, int, int]
"""Topic, partition, offset."""
MOST = 500
"""Most alerts in an answer."""
COLUMNS = "id,object_id,solar_system_id,mjd_tai,ra,dec,band,magnitude,snr,partition,offset,timestamp"
MISSING = (httpx.codes.BAD_REQUEST, httpx.codes.NOT_FOUND)
"""Answers that mean: it has none of that, or nothing of that survey."""

AWAY = "the archive does not answer"


class ArchiveAwayError(Exception):
    """The archive does not answer, or not as it should."""


class Archive:
    """Asks an archive.  Safe to use from several threads.

    Args:
        url: Its address.
        login: Our name and password at Kafka, for which it asks; None where nobody is asked.
    """

    def __init__(self, url: str, login: tuple[str, str] | None = None) -> None:
        trust = whom_to_trust(url, login)
        self._http = httpx.Client(base_url=url, auth=login, timeout=TIMEOUT, verify=trust)
        self._whole = ArchiveClient(url, login)

    def named(self, survey: str, name: str) -> list[Row]:
        """Return the alerts of an object, or the alert, of that name, newest first.

        Raises:
            ArchiveAwayError: It does not answer.
        """
        for kind in ("objects", "alerts"):
            if rows := self._rows(survey, f"{kind}/{quote(name, safe='')}", {}):
                return sorted(rows, key=lambda row: -(row.mjd or 0.0))
        return []

    def near(self, survey: str, ra: float, dec: float, radius: float) -> list[Row]:
        """Return the alerts within *radius* of a position, nearest first. [deg]

        Raises:
            ArchiveAwayError: It does not answer.
        """
        return self._rows(survey, "cone", {"ra": ra, "dec": dec, "radius": radius})

    def message(self, place: Place) -> Message | None:
        """Return the record at *place*; None where the archive does not have it.

        Raises:
            ArchiveAwayError: It does not answer.
        """
        topic, partition, offset = place
        if not topic.startswith("alerts."):
            return None
        try:
            found, _ = self._whole.records((topic, partition), range(offset, offset + 1))
        except httpx.HTTPStatusError as error:
            if error.response.status_code in MISSING:
                return None
            raise ArchiveAwayError(f"{AWAY}: {error}") from error
        except httpx.HTTPError as error:
            raise ArchiveAwayError(f"{AWAY}: {error}") from error
        return found[0] if found else None

    def close(self) -> None:
        """Hang up."""
        self._http.close()
        self._whole.close()

    def _rows(self, survey: str, path: str, asked: Mapping[str, Any]) -> list[Row]:
        answer = self._get(f"/{quote(survey, safe='')}/{path}", {**asked, "columns": COLUMNS, "limit": MOST})
        rows: list[dict[str, Any]] = [] if answer is None else answer.json()
        utc = to_utc([row["mjd_tai"] if row["mjd_tai"] is not None else float("nan") for row in rows])
        return [_row(survey, row, mjd) for row, mjd in zip(rows, utc.tolist(), strict=True)]

    def _get(self, path: str, asked: Mapping[str, Any]) -> httpx.Response | None:
        try:
            answer = self._http.get(path, params=dict(asked))
            return None if answer.status_code in MISSING else answer.raise_for_status()
        except httpx.HTTPError as error:
            raise ArchiveAwayError(f"{AWAY}: {error}") from error


def _row(survey: str, found: Mapping[str, Any], mjd: float) -> Row:
    """Return a row of the archive as one of the portal; which stamps it has, the record tells."""
    numbers = {name: found[name] for name in ("ra", "dec", "band", "magnitude", "snr")}
    return Row(
        alerts(survey),
        found["partition"],
        found["offset"],
        written=datetime.fromisoformat(found["timestamp"]).timestamp(),
        survey=survey,
        id=found["id"],
        object=found["object_id"] or found["solar_system_id"],
        mjd=mjd if mjd == mjd else None,
        stamps=tuple(survey_of(survey).stamp_names),
        source=alerts(survey),
        **numbers,
    )
