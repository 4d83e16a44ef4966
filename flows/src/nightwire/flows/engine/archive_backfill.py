"""Records that Kafka has deleted, read from the archive up to the first one that Kafka has.

The seam is an offset, committed as all others, so nothing is lost or doubled there.
"""

import logging

import httpx
from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.kafka import TopicPartition
from nightwire.core.presence import ArchiveClient
from nightwire.core.runtime import LogLimiter
from nightwire.flows.engine.queue_reading import first_retained
from nightwire.schemas import MendableError

log = logging.getLogger("nightwire.flows")

ALERTS = "alerts."
EXPIRED = "expired"
"""Reason for which records are rejected that neither Kafka nor the archive has."""
TIMEOUT = 10.0
"""Longest wait for Kafka. [s]"""


class ArchiveAwayError(MendableError):
    """The archive does not answer; asking again may help."""


class ArchivedRecords:
    """Reads deleted records from the archive.

    Args:
        archive: The archive; None for none.

    Attributes:
        ends: Where to go on with Kafka, by partition, while it is read from the archive.
    """

    def __init__(self, archive: ArchiveClient | None) -> None:
        self._archive, self._limiter = archive, LogLimiter()
        self.ends: dict[TopicPartition, int] = {}

    def first_offset_since(self, source: Consumer, one: TopicPartitionOffset, time: int) -> int | None:
        """Return the first offset of a record of *time* [ms since 1970] or later; None for none.

        Raises:
            ArchiveAwayError: The archive does not answer.
            KafkaException: Kafka does not.
        """
        if self._archive is not None and one.topic.startswith(ALERTS):
            low, _ = source.get_watermark_offsets(one, timeout=TIMEOUT)
            try:
                found = self._archive.first_since((one.topic, one.partition), time)
            except httpx.HTTPError as error:
                raise ArchiveAwayError(f"the archive does not answer: {error}") from error
            if found is not None and found < low:
                return found
        [first] = source.offsets_for_times([TopicPartitionOffset(one.topic, one.partition, time)], TIMEOUT)
        return first.offset if first.offset >= 0 else None

    def next_offset(self, source: Consumer, one: TopicPartitionOffset) -> int:
        """Return the next offset to read in Kafka; note it in `ends` where the archive is first."""
        low, _ = source.get_watermark_offsets(one, timeout=TIMEOUT)
        if one.offset < low and self._archive is not None and one.topic.startswith(ALERTS):
            self.ends[one.topic, one.partition] = low
            return int(low)
        return first_retained(one, low)

    def records(self, here: TopicPartition, wanted: range) -> tuple[list[Message], int]:
        """Return records of *wanted* and the next offset: its end, if the archive has no more."""
        if self._archive is None:
            return [], wanted.stop
        try:
            found, after = self._archive.records(here, wanted)
        except httpx.HTTPError as error:
            if self._limiter.allows():
                log.warning("waiting for the archive: %s", error)
            return [], wanted.start
        return found, wanted.stop if after == wanted.start else after

    def close(self) -> None:
        """Close the connection."""
        if self._archive is not None:
            self._archive.close()
