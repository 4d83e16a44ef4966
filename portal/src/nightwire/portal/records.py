"""Alerts by topic, partition and offset, as Kafka still has them; stamps of the newest."""

from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from threading import Lock

from confluent_kafka import Message

from nightwire.consumers import ReceivedAlert
from nightwire.consumers.alert import RecordDecoder
from nightwire.core.kafka import MissingError, RecordFetcher, cluster_id
from nightwire.core.runtime import Endpoints
from nightwire.portal.archive import Archive, ArchiveAwayError, Place
from nightwire.schemas import AlertDecoder, SchemaRegistry

STAMP_BYTES = 96 << 20
"""Room for the stamps of the newest alerts. [byte]"""


class StampCache:
    """Stamps, as their surveys packed them, of the alerts that were added or used last.

    Args:
        size: Room for them. [byte]
    """

    def __init__(self, size: int = STAMP_BYTES) -> None:
        self._size, self._used, self._lock = size, 0, Lock()
        self._held: OrderedDict[Place, Mapping[str, bytes]] = OrderedDict()

    def add(self, place: Place, stamps: Mapping[str, bytes]) -> None:
        """Keep the *stamps* of an alert, and forget the oldest."""
        with self._lock:
            if place in self._held:
                return
            self._held[place] = stamps
            self._used += sum(map(len, stamps.values()))
            while self._used > self._size and len(self._held) > 1:
                self._used -= sum(map(len, self._held.popitem(last=False)[1].values()))

    def get(self, place: Place) -> Mapping[str, bytes] | None:
        """Return an alert's stamps; None where they are not held."""
        with self._lock:
            return self._held.get(place)


class Records:
    """Fetches alerts.  Safe to use from several threads, one of which is served at a time.

    Args:
        where: The site's addresses.
        stamps: Those that are held.
        archive: Has what Kafka has forgotten; None: nobody has.
    """

    def __init__(self, where: Endpoints, stamps: StampCache, archive: Archive | None = None) -> None:
        self._registry = SchemaRegistry(where.schema_registry, cluster_id=partial(cluster_id, where.kafka))
        self._decoder, self._stamps = RecordDecoder(AlertDecoder(self._registry)), stamps
        self._fetcher, self._lock, self.archive = RecordFetcher(where.kafka), Lock(), archive

    def alert(self, place: Place) -> ReceivedAlert:
        """Return the alert at *place*, from the archive where Kafka does not have it.

        Raises:
            MissingError: Neither has it, or answers.
            SchemaError: The record there holds no alert.
        """
        topic, partition, offset = place
        try:
            with self._lock:
                message = self._fetcher.one((topic, partition), offset)
        except MissingError as error:
            message = self._archived(place, error)
        return self._decoder.decode(message)

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

    def close(self) -> None:
        """Leave Kafka, the registry and the archive."""
        self._fetcher.close()
        if self.archive is not None:
            self.archive.close()
        self._registry.close()


__all__ = ["STAMP_BYTES", "MissingError", "Place", "Records", "StampCache"]
