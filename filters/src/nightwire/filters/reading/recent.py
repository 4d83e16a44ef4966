"""Samples of alerts: the newest in Kafka, of surveys or derived topics; some of the last night."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from typing import Any

import httpx
from confluent_kafka import Consumer, Message

from nightwire.core.kafka import TopicPartition, check_rights, watermarks
from nightwire.core.presence import ArchiveClient, SiteHttpError, request
from nightwire.filters.model.offsets import OffsetRange
from nightwire.filters.reading.derived import survey_of
from nightwire.filters.reading.fetch import fetch, offset_runs, range_consumer
from nightwire.schemas import MendableError
from nightwire.schemas.topics import alerts

Sample = tuple[str, bytes]
"""Survey and record."""


def newest_alerts(
    bootstrap: str, surveys: Sequence[str], most: int, sources: Sequence[str] = ()
) -> list[Sample]:
    """Return the newest alerts of each of *surveys*, at most so many of each topic.

    Args:
        bootstrap: Kafka's address.
        surveys: Whose alerts are wanted.
        most: How many of each topic.
        sources: Topics in which to look; none for the surveys' own.

    Raises:
        KafkaException: Kafka does not answer, or we may not read one of the topics.
    """
    consumer = range_consumer(bootstrap)
    try:
        known = consumer.list_topics(timeout=10).topics
        topics = [*(sources or map(alerts, surveys))]
        check_rights(consumer, (topic for topic in topics if topic not in known))
        return [
            (name, message.value() or b"")
            for topic in topics
            if topic in known
            for message in _newest(consumer, topic, len(known[topic].partitions), most)
            if (name := survey_of(message)) in surveys
        ]
    finally:
        consumer.close()


def share_evenly(there: Mapping[TopicPartition, int], wanted: int) -> dict[TopicPartition, int]:
    """Return how many records to take of each partition, as evenly as *there* allows.  Pure."""
    taken = dict.fromkeys(there, 0)
    left = wanted
    for at, partition in enumerate(sorted(there, key=lambda partition: there[partition])):
        taken[partition] = min(there[partition], -(-left // (len(there) - at)))
        left -= taken[partition]
    return taken


def _newest(consumer: Consumer, topic: str, partitions: int, most: int) -> Iterator[Message]:
    bounds = {(topic, part): watermarks(consumer, topic, part) for part in range(partitions)}
    taken = share_evenly({partition: end - first for partition, (first, end) in bounds.items()}, most)
    for partition, count in taken.items():
        end = bounds[partition][1]
        for messages in (
            fetch(consumer, OffsetRange(*partition, end - count, end), patience=10.0) if count else ()
        ):
            yield from messages


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
