"""Questions to the archive of a site: records that Kafka has forgotten."""

import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from nightwire.core.kafka import TopicPartition
from nightwire.core.presence.site_http import whom_to_trust

if TYPE_CHECKING:
    import httpx

TIMEOUT = 60.0
"""Longest wait for an answer. [s]"""
NOTHING = 400
"""HTTP status of an archive that has no alerts of a survey; it says so in JSON."""
JSON, ROWS = "application/json", "application/vnd.apache.arrow.stream"
"""Media types of a word, and of whole records."""

Found = TypeVar("Found")


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
            HTTPError: The archive does not answer, or is none.
        """
        path, asked = f"{_path(partition)}/first", {"since": max(0, time_ms)}
        return self._asked(path, asked, JSON, _offset_in)

    def records(self, partition: TopicPartition, wanted: range) -> tuple[list[Message], int]:
        """Return records of *wanted*, and where to go on: its start, if the archive has no more.

        Raises:
            HTTPError: The archive does not answer, or is none.
        """
        asked = {"from": wanted.start, "until": wanted.stop}
        found = self._asked(_path(partition), asked, ROWS, partial(_records_in, partition))
        return ([], wanted.start) if found is None else found

    def close(self) -> None:
        """Hang up."""
        self._http.close()

    def _asked(
        self, path: str, said: dict[str, int], kind: str, read: "Callable[[httpx.Response], Found]"
    ) -> "Found | None":
        """Return what is *read* of an answer of that *kind*; None where there is no such survey."""
        answer = self._http.get(path, params=said)
        given = answer.headers.get("Content-Type", "nothing")
        if answer.status_code != NOTHING:
            answer.raise_for_status()
        elif JSON in given:
            return None
        if kind not in given:
            raise _stranger(answer, f"{given[:99]} came, and not {kind}")
        try:
            return read(answer)
        except (ValueError, LookupError, TypeError, AttributeError, OSError) as error:  # pyarrow's, too
            raise _stranger(answer, str(error)[:300]) from error


def _stranger(answer: "httpx.Response", why: str) -> "httpx.DecodingError":
    import httpx

    return httpx.DecodingError(f"no archive answers at {answer.url.copy_with(query=None)}: {why}")


def _offset_in(answer: "httpx.Response") -> int | None:
    found = answer.json()["offset"]
    return None if found is None else int(found)


def _records_in(partition: TopicPartition, answer: "httpx.Response") -> tuple[list[Message], int]:
    import pyarrow as pa

    rows = pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()
    return list(_messages(partition, rows)), int(answer.headers["Next-Offset"])


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
