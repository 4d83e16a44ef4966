"""Alerts of the last night, as the archive has them: asked over HTTP."""

import io

import httpx

from nightwire.filters.reading.recent import Sample
from nightwire.schemas import MendableError

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
    import pyarrow as pa

    if url is None:
        raise NoArchiveError(
            "no archive: `nightwire up --archive` starts one, or name it by NIGHTWIRE_ARCHIVE_HTTP"
        )
    found: list[Sample] = []
    try:
        with httpx.Client(base_url=url, auth=login, timeout=TIMEOUT) as http:
            sql = LAST_NIGHT.format(survey, most)
            places = http.post(f"/query?limit={most}", json={"sql": sql})
            for row in _checked(places).json():
                number, offset = row["partition"], row["offset"]
                asked = {"from": offset, "until": offset + 1}
                answer = _checked(http.get(f"/{survey}/records/{number}", params=asked))
                rows = pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()
                found += [(survey, value) for value in rows.column("value").to_pylist()]
    except httpx.HTTPError as error:
        raise NoArchiveError(f"the archive at {url} does not answer: {error}") from error
    return found


def _checked(answer: httpx.Response) -> httpx.Response:
    if answer.status_code != httpx.codes.OK:
        raise NoArchiveError(f"the archive refuses: {answer.json().get('message', answer.text[:200])}")
    return answer
