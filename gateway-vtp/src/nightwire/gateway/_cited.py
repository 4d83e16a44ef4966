"""The events that others cite: found again in the log, so that a retraction goes where they went."""

import hashlib
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from confluent_kafka import Consumer, KafkaException, TopicPartition

from nightwire.gateway._index import EventIndex
from nightwire.gateway._ring import Event
from nightwire.schemas import DecodeError
from nightwire.schemas.records import VOEVENT
from nightwire.schemas.topics import VOEVENTS

log = logging.getLogger(__name__)

RETRACTION = "retraction"
MOST = 8
"""Most retracted events of one event that are looked for."""
PATIENCE = 5.0
"""Longest wait for Kafka. [s]"""

_ALERT = re.compile(r"ivo://nightwire/((?:filter|alerts|broker)\.[^#]+)#.+")


def name_hash(ivorn: bytes) -> bytes:
    """Return what an IVORN is known by in the index of names."""
    return hashlib.sha256(ivorn).digest()


class CitedEvents:
    """Find events by IVORN.  Used by one thread.

    Args:
        names: Where the first event of each IVORN lies in `voevents`.
        make_reader: Returns a consumer, used by this alone.
    """

    def __init__(self, names: EventIndex, make_reader: Callable[[], Consumer]) -> None:
        self._names, self._make_reader = names, make_reader
        self._reader: Consumer | None = None
        self._read_again = lru_cache(maxsize=64)(self._read)

    def retracted(self, citations: Iterable[Mapping[str, str]]) -> tuple[Event, ...]:
        """Return the events that *citations* retract, of those that are known, at most `MOST`."""
        ivorns = [one["ivorn"] for one in citations if one["cite"] == RETRACTION]
        return tuple(found for ivorn in ivorns[:MOST] if (found := self._find(ivorn)) is not None)

    def _find(self, ivorn: str) -> Event | None:
        """Return the event; one without a document is there, and cannot be looked at."""
        if alert := _ALERT.fullmatch(ivorn):
            return Event(alert[1], 0, -1, ivorn, "observation", b"")
        place = self._names.first(name_hash(ivorn.encode()))
        return None if place is None else self._read_again(ivorn, *place)

    def _read(self, ivorn: str, partition: int, offset: int) -> Event:
        lost = Event(VOEVENTS, partition, offset, ivorn, "observation", b"")
        try:
            value = self._value(partition, offset)
            record = VOEVENT.decode(value or b"")
        except (KafkaException, DecodeError) as error:
            log.warning("%s, which is retracted, cannot be read again: %s", ivorn, error)
            return lost
        return replace(lost, role=record["role"], document=record["raw"])

    def _value(self, partition: int, offset: int) -> bytes | None:
        self._reader = self._reader or self._make_reader()
        self._reader.assign([TopicPartition(VOEVENTS, partition, offset)])
        deadline = time.monotonic() + PATIENCE
        try:
            while time.monotonic() < deadline:
                message = self._reader.poll(0.2)
                if message is not None and message.error() is None:
                    return message.value()
        finally:
            self._reader.unassign()
        return None
