"""Questions to the archive of a site: records that Kafka has forgotten."""

import io
from collections.abc import Iterator
from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from nightwire.core.kafka import TopicPartition
from nightwire.core.presence.site_http import whom_to_trust

TIMEOUT = 60.0
"""Longest wait for an answer. [s]"""
NOTHING = 400
"""HTTP status of an archive that has no alerts of a survey."""


class ArchiveClient:
    """Asks an archive over HTTP for whole records.

    Args:
        url: Its address.
        login: Name and password at Kafka, which it asks for too, or a token; None where nobody is
            asked.
        timeout: Longest wait for an answer. [s]
    """

    def __init__(
        self, url: str, login: tuple[str, str] | str | None = None, *, timeout: float = TIMEOUT
    ) -> None:
        import httpx

        self._http = httpx.Client(
            base_url=url,
            auth=login if isinstance(login, tuple) else None,
            headers={"Authorization": f"Bearer {login}"} if isinstance(login, str) else {},
            timeout=timeout,
            verify=whom_to_trust(url, login),
        )

    def first_since(self, partition: TopicPartition, time_ms: int) -> int | None:
        """Return the first offset that was written at *time_ms* or later; None for none.

        Raises:
            HTTPError: The archive does not answer.
        """
        answer = self._http.get(f"{_path(partition)}/first", params={"since": max(0, time_ms)})
        if answer.status_code == NOTHING:  # it has nothing of that survey
            return None
        found: int | None = answer.raise_for_status().json()["offset"]
        return found

    def records(self, partition: TopicPartition, wanted: range) -> tuple[list[Message], int]:
        """Return records of *wanted*, and where to go on: its start, if the archive has no more.

        Raises:
            HTTPError: The archive does not answer.
        """
        import pyarrow as pa

        asked = {"from": wanted.start, "until": wanted.stop}
        answer = self._http.get(_path(partition), params=asked)
        if answer.status_code == NOTHING:
            return [], wanted.start
        rows = pa.ipc.open_stream(io.BytesIO(answer.raise_for_status().content)).read_all()
        return list(_messages(partition, rows)), int(answer.headers["Next-Offset"])

    def close(self) -> None:
        """Hang up."""
        self._http.close()


def _path(partition: TopicPartition) -> str:
    topic, number = partition
    return f"/{topic.removeprefix('alerts.')}/records/{number}"


def _messages(partition: TopicPartition, rows: Any) -> Iterator[Message]:
    for row in rows.to_pylist():
        time_ms = round(row["timestamp"].timestamp() * 1000)
        yield Message(
            topic=partition[0],
            partition=partition[1],
            offset=row["offset"],
            key=row["key"],
            value=row["value"],
            headers=[(one["name"], one["value"]) for one in row["headers"] or ()],
            timestamp=(TIMESTAMP_CREATE_TIME, time_ms),
        )
