"""Alerts by topic, partition and offset, from Kafka or the archive; a cache of stamps."""

import time
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from queue import Empty, LifoQueue
from threading import Lock

from confluent_kafka import KafkaException, Message

from nightwire.consumers import ReceivedAlert
from nightwire.consumers.alert import RecordDecoder
from nightwire.core.kafka import MissingError, RecordFetcher, TopicPartition, cluster_id, error_text
from nightwire.core.runtime import Endpoints
from nightwire.portal.archive_client import Archive, ArchiveUnavailableError
from nightwire.portal.model import RecordId
from nightwire.portal.pictures import strip
from nightwire.schemas import AlertDecoder, SchemaRegistry

STAMP_BYTES, STRIP_BYTES = 96 << 20, 16 << 20
"""Sizes of the caches of stamps, and of strips drawn of them. [byte]"""
ENTRY_BYTES = 512
"""Size of a cache's entry beside its stamps, of which there may be none. [byte]"""
CONNECTIONS = 4
"""Connections to Kafka, each for one request at a time."""
TIMEOUT = 4.0
"""Longest wait for a connection and Kafka's answer together. [s]"""
RETRY_AFTER = 2.0
"""Time after no answer in which a partition is not asked again. [s]"""


class StampCache:
    """Cache of the newest alerts' stamps, as their surveys packed them.

    Args:
        size: Most bytes of all entries. [byte]

    Attributes:
        strips: Cache of strips that are drawn of these stamps, if any.
    """

    def __init__(self, size: int = STAMP_BYTES) -> None:
        self.strips: StampCache | None = None
        self._size, self._used, self._lock = size, 0, Lock()
        self._entries: OrderedDict[RecordId, Mapping[str, bytes]] = OrderedDict()

    def add(self, record_id: RecordId, stamps: Mapping[str, bytes]) -> None:
        """Add the *stamps* of an alert; evict the oldest, and a strip drawn of other stamps."""
        if self.strips is not None and self.get(record_id) != stamps:
            self.strips.drop(record_id)
        with self._lock:
            self._drop(record_id)
            self._entries[record_id] = stamps
            self._used += _size(stamps)
            while self._used > self._size and len(self._entries) > 1:
                self._used -= _size(self._entries.popitem(last=False)[1])

    def get(self, record_id: RecordId) -> Mapping[str, bytes] | None:
        """Return an alert's stamps; None where they are not cached."""
        with self._lock:
            return self._entries.get(record_id)

    def drop(self, record_id: RecordId) -> None:
        """Drop an entry, if there is one."""
        with self._lock:
            self._drop(record_id)

    def _drop(self, record_id: RecordId) -> None:
        if (held := self._entries.pop(record_id, None)) is not None:
            self._used -= _size(held)


def _size(stamps: Mapping[str, bytes]) -> int:
    return ENTRY_BYTES + sum(map(len, stamps.values()))


class Records:
    """Fetches alerts and their stamps.  Safe to use from several threads.

    Args:
        where: The site's addresses.
        stamps: Cache of stamps.
        archive: Has the records that Kafka has deleted; None: there is none.
    """

    def __init__(self, where: Endpoints, stamps: StampCache, archive: Archive | None = None) -> None:
        self._registry = SchemaRegistry(where.schema_registry, cluster_id=partial(cluster_id, where.kafka))
        self._decoder, self._stamps = RecordDecoder(AlertDecoder(self._registry)), stamps
        self._strips, self.archive = StampCache(STRIP_BYTES), archive
        stamps.strips = self._strips
        self._fetchers: LifoQueue[RecordFetcher] = LifoQueue()
        for _ in range(CONNECTIONS):
            self._fetchers.put(RecordFetcher(where.kafka))
        self._unresponsive: dict[TopicPartition, float] = {}
        self._partitions = set[TopicPartition]()

    def alert(self, record_id: RecordId) -> ReceivedAlert:
        """Return the alert in a record, from the archive where Kafka does not have it.

        Raises:
            MissingError: Neither has it, or answers.
            SchemaError: The record holds no alert.
        """
        try:
            message = self._from_kafka(record_id)
        except MissingError as error:
            message = self._from_archive(record_id, error)
        return self._decoder.decode(message)

    def _from_kafka(self, record_id: RecordId) -> Message:
        """Return a record from Kafka.

        Raises:
            MissingError: Kafka does not have it, or does not answer.
        """
        partition, offset, now = record_id[:2], record_id[2], time.monotonic()
        if now < self._unresponsive.get(partition, now):
            raise MissingError("Kafka did not answer a moment ago")
        try:
            fetcher = self._fetchers.get(timeout=TIMEOUT)
        except Empty as error:
            raise MissingError("Kafka is slow, and others ask too") from error
        try:
            self._require_partition(fetcher, partition)
            wanted, left = range(offset, offset + 1), TIMEOUT + now - time.monotonic()
            found = fetcher.fetch(partition, wanted, left, announced=False)  # by strangers
        except MissingError:
            if (ended := time.monotonic()) > now + 0.9 * TIMEOUT:  # else Kafka did answer
                self._unresponsive[partition] = ended + RETRY_AFTER
            raise
        finally:
            self._fetchers.put(fetcher)
        if not found:
            raise MissingError("Kafka does not have it")
        return found[0]

    def _require_partition(self, fetcher: RecordFetcher, partition: TopicPartition) -> None:
        """Refuse partitions that Kafka does not have: a fetch would wait for one in vain.

        Raises:
            MissingError: There is no such partition, or Kafka does not answer.
        """
        if partition in self._partitions:
            return
        try:
            topic = fetcher.list_topics(partition[0], TIMEOUT).topics[partition[0]]
        except KafkaException as error:
            raise MissingError(f"no answer: {error_text(error)}") from error
        if partition[1] not in topic.partitions:
            raise MissingError("there is no such partition")
        self._partitions.add(partition)

    def _from_archive(self, record_id: RecordId, why: MissingError) -> Message:
        named = f"{record_id[0]}[{record_id[1]}]@{record_id[2]} cannot be had (any more): {why}"
        try:
            found = None if self.archive is None else self.archive.message(record_id)
        except ArchiveUnavailableError as error:
            raise MissingError(f"{named}; {error}") from error
        if found is None:
            raise MissingError(named) from why
        return found

    def stamps(self, record_id: RecordId) -> Mapping[str, bytes]:
        """Return an alert's stamps by name, as its survey packed them.

        Raises:
            MissingError: As of `alert`.
            SchemaError: Likewise.
        """
        if (held := self._stamps.get(record_id)) is None:
            held = {name: stamp.raw for name, stamp in self.alert(record_id).stamps.items()}
            self._stamps.add(record_id, held)
        return held

    def strip(self, record_id: RecordId) -> bytes:
        """Return an alert's stamps beside each other, as JPEG; drawn once.

        Raises:
            MissingError: As of `alert`.
            SchemaError: Likewise.
        """
        if (drawn := self.cached_strip(record_id)) is None:
            self._strips.add(record_id, {"strip": (drawn := strip(self.stamps(record_id)))})
        return drawn

    def cached_strip(self, record_id: RecordId) -> bytes | None:
        """Return what `strip` returns, where that is cached; else None."""
        held = self._strips.get(record_id)
        return held["strip"] if held else None

    def close(self) -> None:
        """Close the connections to Kafka, the registry and the archive."""
        while not self._fetchers.empty():
            self._fetchers.get().close()
        if self.archive is not None:
            self.archive.close()
        self._registry.close()


__all__ = ["STAMP_BYTES", "MissingError", "Records", "StampCache"]
