"""What a flow reads from before Kafka: the archive gives it, up to the first record that Kafka has.

The seam is an offset, and offsets are committed as all others, so nothing is lost or doubled there.
"""

import logging

import httpx
from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.kafka import TopicPartition
from nightwire.core.presence import ArchiveClient
from nightwire.core.runtime import LogLimiter
from nightwire.schemas import MendableError

log = logging.getLogger("nightwire.flows")

ALERTS = "alerts."
EXPIRED = "expired"
"""Why a record was not read that neither Kafka nor the archive has any more."""
TIMEOUT = 10.0
"""Longest wait for Kafka. [s]"""


class ArchiveAwayError(MendableError):
    """Nobody says what is archived; asking again may help."""


class Past:
    """Asks the archive.

    Args:
        archive: Whom to ask; None: nobody.

    Attributes:
        ends: Where Kafka's part begins, of partitions that the archive gives for now.
    """

    def __init__(self, archive: ArchiveClient | None) -> None:
        self._archive, self._limiter = archive, LogLimiter()
        self.ends: dict[TopicPartition, int] = {}

    @property
    def known(self) -> bool:
        """Whether there is an archive."""
        return self._archive is not None

    def first(self, source: Consumer, one: TopicPartitionOffset, time: int) -> int | None:
        """Return the first offset written at *time* [ms since 1970] or later; None for none.

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
        [at] = source.offsets_for_times([TopicPartitionOffset(one.topic, one.partition, time)], TIMEOUT)
        return at.offset if at.offset >= 0 else None

    def until(self, source: Consumer, one: TopicPartitionOffset) -> int:
        """Return where Kafka's part begins of a partition that goes on at *one*."""
        low, _ = source.get_watermark_offsets(one, timeout=TIMEOUT)
        if one.offset < low:
            self.ends[one.topic, one.partition] = low
        return int(max(low, one.offset))

    def records(self, here: TopicPartition, wanted: range) -> tuple[list[Message], int]:
        """Return records of *wanted*, and where to go on: its end, if the archive has no more."""
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
        """Hang up."""
        if self._archive is not None:
            self._archive.close()
