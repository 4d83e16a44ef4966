"""Whole alerts in place of those that came without stamps: fetched when they are asked for.

Kafka is asked first; what it has forgotten the archive may have.
"""

import threading
from collections.abc import Callable, Mapping

import httpx
from confluent_kafka import KafkaException, Message

from nightwire.consumers.alert import ALERTS, ReceivedAlert, RecordDecoder
from nightwire.core.datagrams import LITE_HEADER
from nightwire.core.kafka import MissingError, RecordFetcher, TopicPartition
from nightwire.core.presence import ArchiveClient
from nightwire.schemas import SchemaError, Stamp, StampError


class FullAlerts:
    """Fetches alerts from Kafka, with a client that is kept.  Safe to use from several threads.

    Args:
        bootstrap: Kafka's address.
        decoder: Decodes them.
        archive: Opens what has what Kafka has forgotten; None where there is nothing such.
    """

    def __init__(
        self, bootstrap: str, decoder: RecordDecoder, archive: Callable[[], ArchiveClient] | None = None
    ) -> None:
        self._bootstrap, self._decoder, self._open_archive = bootstrap, decoder, archive
        self._lock = threading.Lock()
        self._fetcher: RecordFetcher | None = None
        self._archive: ArchiveClient | None = None

    def of(self, alert: ReceivedAlert) -> ReceivedAlert:
        """Return *alert* as it lies whole in Kafka, or in the archive.

        A datagram's lite form has the place of the whole; what a filter has made lighter names
        where the whole lay first.

        Raises:
            MissingError: Nobody has it, or Kafka does not let us read it.
            KafkaException: Kafka cannot be reached.
        """
        topic, partition, offset = whole_position(alert)
        with self._lock:
            self._fetcher = self._fetcher or RecordFetcher(self._bootstrap)
            try:
                message = self._fetcher.one((topic, partition), offset)
            except MissingError:
                if (archived := self._archived((topic, partition), offset)) is None:
                    raise
                message = archived
        return self._decoder.decode(message)

    def _archived(self, place: TopicPartition, offset: int) -> Message | None:
        """Return a record that the archive has; None where it has not, or does not answer."""
        if self._open_archive is None or not place[0].startswith(ALERTS):
            return None
        self._archive = self._archive or self._open_archive()
        try:
            found, _ = self._archive.records(place, range(offset, offset + 1))
        except httpx.HTTPError:
            return None
        return found[0] if found else None

    def stamps(self, alert: ReceivedAlert) -> Mapping[str, Stamp]:
        """Return the stamps of the whole of *alert*.

        Raises:
            StampError: It cannot be had; says why.
        """
        try:
            return self.of(alert).stamps
        except (MissingError, KafkaException, SchemaError) as error:
            topic, partition, offset = whole_position(alert)
            where = f"{topic}[{partition}]@{offset}"
            raise StampError(
                f"the stamps of {alert.place} cannot be fetched from {where}: {error}"
            ) from error

    def close(self) -> None:
        """Leave Kafka; who asks later enters it anew."""
        with self._lock:
            for one in (self._fetcher, self._archive):
                if one is not None:
                    one.close()
            self._fetcher = self._archive = None


def whole_position(alert: ReceivedAlert) -> tuple[str, int, int]:
    """Return topic, partition and offset of the whole of an alert."""
    return alert.position if LITE_HEADER in alert.headers else alert.origin
