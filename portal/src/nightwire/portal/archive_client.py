"""Client of the archive, which has the alerts that Kafka has deleted."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

import httpx
from confluent_kafka import Message

from nightwire.core.presence import ArchiveClient, whom_to_trust
from nightwire.portal.model import RecordId, Row
from nightwire.portal.model.rows import to_utc
from nightwire.schemas import survey as survey_of
from nightwire.schemas.topics import alerts

TIMEOUT = 5.0
"""Longest wait for an answer. [s]"""
LIMIT = 500
"""Most alerts in an answer."""
COLUMNS = "id,object_id,solar_system_id,mjd_tai,ra,dec,band,magnitude,snr,partition,offset,timestamp"
NOT_FOUND = (httpx.codes.BAD_REQUEST, httpx.codes.NOT_FOUND)
"""HTTP statuses of an archive without such alerts, or without that survey."""

UNAVAILABLE = "the archive does not answer"


class ArchiveUnavailableError(Exception):
    """The archive does not answer, or answers with an error."""


class Archive:
    """Client of an archive.  Safe to use from several threads.

    Args:
        url: Of the archive.
        login: The portal's own name and password at Kafka; None where Kafka demands none.
    """

    def __init__(self, url: str, login: tuple[str, str] | None = None) -> None:
        trust = whom_to_trust(url, login)
        self._http = httpx.Client(base_url=url, auth=login, timeout=TIMEOUT, verify=trust)
        self._records = ArchiveClient(url, login)

    def named(self, survey: str, name: str) -> list[Row]:
        """Return the alerts of the object, or the alert, with that id, newest first.

        Raises:
            ArchiveUnavailableError: It does not answer.
        """
        for kind in ("objects", "alerts"):
            if rows := self._rows(survey, f"{kind}/{quote(name, safe='')}", {}):
                return sorted(rows, key=lambda row: -(row.mjd or 0.0))
        return []

    def near(self, survey: str, ra: float, dec: float, radius: float) -> list[Row]:
        """Return the alerts within *radius* of a position, nearest first. [deg]

        Raises:
            ArchiveUnavailableError: It does not answer.
        """
        return self._rows(survey, "cone", {"ra": ra, "dec": dec, "radius": radius})

    def message(self, record_id: RecordId) -> Message | None:
        """Return a record as Kafka had it; None where the archive does not have it.

        Raises:
            ArchiveUnavailableError: It does not answer.
        """
        topic, partition, offset = record_id
        if not topic.startswith("alerts."):
            return None
        try:
            found, _ = self._records.records((topic, partition), range(offset, offset + 1))
        except httpx.HTTPError as error:
            raise ArchiveUnavailableError(f"{UNAVAILABLE}: {error}") from error
        return found[0] if found else None

    def close(self) -> None:
        """Close the connections."""
        self._http.close()
        self._records.close()

    def _rows(self, survey: str, path: str, query: Mapping[str, Any]) -> list[Row]:
        answer = self._get(f"/{quote(survey, safe='')}/{path}", {**query, "columns": COLUMNS, "limit": LIMIT})
        rows: list[dict[str, Any]] = [] if answer is None else answer.json()
        utc = to_utc([row["mjd_tai"] if row["mjd_tai"] is not None else float("nan") for row in rows])
        return [_row(survey, row, mjd) for row, mjd in zip(rows, utc.tolist(), strict=True)]

    def _get(self, path: str, query: Mapping[str, Any]) -> httpx.Response | None:
        try:
            answer = self._http.get(path, params=dict(query))
            return None if answer.status_code in NOT_FOUND else answer.raise_for_status()
        except httpx.HTTPError as error:
            raise ArchiveUnavailableError(f"{UNAVAILABLE}: {error}") from error


def _row(survey: str, found: Mapping[str, Any], mjd: float) -> Row:
    """Return a row of the archive as the portal's, with all stamps that its survey may have."""
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
