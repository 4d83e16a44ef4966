"""Alerts by topic, partition and offset, as Kafka still has them; stamps of the newest."""

import time
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from queue import Empty, LifoQueue
from threading import Lock

from confluent_kafka import Message

from nightwire.consumers import ReceivedAlert
from nightwire.consumers.alert import RecordDecoder
from nightwire.core.kafka import MissingError, RecordFetcher, TopicPartition, cluster_id
from nightwire.core.runtime import Endpoints
from nightwire.portal.archive import Archive, ArchiveAwayError, Place
from nightwire.portal.pictures import strip
from nightwire.schemas import AlertDecoder, SchemaRegistry

STAMP_BYTES, STRIP_BYTES = 96 << 20, 16 << 20
"""Room for the stamps of the newest alerts, and for what was drawn of them. [byte]"""
ENTRY = 512
"""Room that an alert takes beside its stamps, which it may not have. [byte]"""
CONNECTIONS = 4
"""Connections to Kafka: so many may ask at once."""
PATIENCE = 4.0
"""Longest wait for Kafka, with that for a connection. [s]"""
REST = 2.0
"""After no answer, time in which a partition is not asked for again. [s]"""


class StampCache:
    """Stamps, as their surveys packed them, of the alerts that were added or used last.

    Args:
        size: Room for them. [byte]

    Attributes:
        drawn: What was drawn of them, by place; None: nothing.
    """

    def __init__(self, size: int = STAMP_BYTES) -> None:
        self.drawn: StampCache | None = None
        self._size, self._used, self._lock = size, 0, Lock()
        self._held: OrderedDict[Place, Mapping[str, bytes]] = OrderedDict()

    def add(self, place: Place, stamps: Mapping[str, bytes]) -> None:
        """Keep the *stamps* of an alert; forget the oldest, and what was drawn of others there."""
        if self.drawn is not None and self.get(place) != stamps:
            self.drawn.drop(place)
        with self._lock:
            self._drop(place)
            self._held[place] = stamps
            self._used += _room(stamps)
            while self._used > self._size and len(self._held) > 1:
                self._used -= _room(self._held.popitem(last=False)[1])

    def get(self, place: Place) -> Mapping[str, bytes] | None:
        """Return an alert's stamps; None where they are not held."""
        with self._lock:
            return self._held.get(place)

    def drop(self, place: Place) -> None:
        """Forget what is held of *place*."""
        with self._lock:
            self._drop(place)

    def _drop(self, place: Place) -> None:
        if (held := self._held.pop(place, None)) is not None:
            self._used -= _room(held)


def _room(stamps: Mapping[str, bytes]) -> int:
    return ENTRY + sum(map(len, stamps.values()))


class Records:
    """Fetches alerts.  Safe to use from several threads.

    Args:
        where: The site's addresses.
        stamps: Those that are held.
        archive: Has what Kafka has forgotten; None: nobody has.
    """

    def __init__(self, where: Endpoints, stamps: StampCache, archive: Archive | None = None) -> None:
        self._registry = SchemaRegistry(where.schema_registry, cluster_id=partial(cluster_id, where.kafka))
        self._decoder, self._stamps = RecordDecoder(AlertDecoder(self._registry)), stamps
        self._strips, self.archive = StampCache(STRIP_BYTES), archive
        stamps.drawn = self._strips
        self._fetchers: LifoQueue[RecordFetcher] = LifoQueue()
        for _ in range(CONNECTIONS):
            self._fetchers.put(RecordFetcher(where.kafka))
        self._silent: dict[TopicPartition, float] = {}

    def alert(self, place: Place) -> ReceivedAlert:
        """Return the alert at *place*, from the archive where Kafka does not have it.

        Raises:
            MissingError: Neither has it, or answers.
            SchemaError: The record there holds no alert.
        """
        try:
            message = self._kept(place)
        except MissingError as error:
            message = self._archived(place, error)
        return self._decoder.decode(message)

    def _kept(self, place: Place) -> Message:
        """Return the record at *place* from Kafka.

        Raises:
            MissingError: It does not have it, or does not answer.
        """
        partition, offset, now = place[:2], place[2], time.monotonic()
        if now < self._silent.get(partition, now):
            raise MissingError("Kafka did not answer a moment ago")
        try:
            fetcher = self._fetchers.get(timeout=PATIENCE)
        except Empty as error:
            raise MissingError("Kafka is slow, and others ask too") from error
        try:
            found = fetcher.fetch(partition, range(offset, offset + 1), PATIENCE + now - time.monotonic())
        except MissingError:
            self._silent[partition] = time.monotonic() + REST
            raise
        finally:
            self._fetchers.put(fetcher)
        if not found:
            raise MissingError("Kafka does not have it any more")
        return found[0]

    def _archived(self, place: Place, why: MissingError) -> Message:
        named = f"{place[0]}[{place[1]}]@{place[2]} cannot be had (any more): {why}"
        try:
            found = None if self.archive is None else self.archive.message(place)
        except ArchiveAwayError as error:
            raise MissingError(f"{named}; {error}") from error
        if found is None:
            raise MissingError(named) from why
        return found

    def stamps(self, place: Place) -> Mapping[str, bytes]:
        """Return the stamps of the alert at *place*, by name, as its survey packed them.

        Raises:
            MissingError: Kafka does not have it any more, or does not answer.
            SchemaError: The record there holds no alert.
        """
        if (held := self._stamps.get(place)) is None:
            held = {name: stamp.raw for name, stamp in self.alert(place).stamps.items()}
            self._stamps.add(place, held)
        return held

    def strip(self, place: Place) -> bytes:
        """Return the stamps of the alert at *place* beside each other, as JPEG; drawn once.

        Raises:
            MissingError: Kafka does not have it any more, or does not answer.
            SchemaError: The record there holds no alert.
        """
        if (drawn := self.drawn(place)) is None:
            self._strips.add(place, {"strip": (drawn := strip(self.stamps(place)))})
        return drawn

    def drawn(self, place: Place) -> bytes | None:
        """Return what `strip` returns, where it was drawn before."""
        held = self._strips.get(place)
        return held["strip"] if held else None

    def close(self) -> None:
        """Leave Kafka, the registry and the archive."""
        while not self._fetchers.empty():
            self._fetchers.get().close()
        if self.archive is not None:
            self.archive.close()
        self._registry.close()


__all__ = ["STAMP_BYTES", "MissingError", "Place", "Records", "StampCache"]
