"""The thread that follows the log: it keeps indexes and accounts, and hands on what is new."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.accounting import Account, OffsetAccounts
from nightwire.core.kafka import TRANSIENT_ERRORS, TopicPartition
from nightwire.gateway.eventlog.accounts import STAGE
from nightwire.gateway.eventlog.decoder import EventDecoder, element_hash, name_hash
from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.eventlog.event_index import EventIndex, IndexEntry
from nightwire.gateway.eventlog.start_offsets import StartOffsets
from nightwire.schemas import DecodeError, RegistryAwayError, UnknownSchemaError
from nightwire.schemas.topics import VOEVENTS

log = logging.getLogger(__name__)

BATCH = 500
"""Most records handled at once."""
PACE = 0.005
"""Least time between two batches [s]: each costs a transaction of the index and a turn of the loop,
so under load there are fewer and larger ones.  An event that comes alone does not wait."""
ACCOUNT_INTERVAL = 0.5
"""Time between accounts of one partition. [s]"""


class EventSink(Protocol):
    """Takes what the follower reads.  Called from the follower's thread."""

    def publish(self, events: Sequence[Event], hashes: Sequence[bytes]) -> None:
        """Take new events, and the hashes that are in the index now."""

    def send_to_dead_letters(self, message: Message, reason: str) -> None:
        """Take a record that cannot be read, and why."""

    def account(self, account: Account) -> None:
        """Write *account*, some time soon."""


class Follower:
    """Read `voevents` and the feeds' topics as they grow.

    The hashes of a batch are in the index before its events are handed on.

    Args:
        reader: A consumer of its own, with ``enable.partition.eof``.
        begin: Where to read from; events before its *live* are indexed and accounted for, no more.
        index: Of hashes, opened in the thread that runs this.
        names: Of IVORNs, opened there too.
        decoder: Makes events of records.
        sink: Takes events and accounts.
    """

    def __init__(
        self,
        reader: Consumer,
        begin: StartOffsets,
        *,
        index: EventIndex,
        names: EventIndex,
        decoder: EventDecoder,
        sink: EventSink,
    ) -> None:
        self._reader, self._index, self._names = reader, index, names
        self._decoder, self._sink = decoder, sink
        positions = {(VOEVENTS, partition): offset for partition, offset in begin.accounted.items()}
        self._accounts = OffsetAccounts(STAGE, positions=positions)
        self._live = dict(begin.live)
        self._positions = dict(begin.start)
        self._accounted_at = self._batch_at = 0.0
        reader.assign(
            [
                TopicPartitionOffset(*topic_partition, offset)
                for topic_partition, offset in begin.start.items()
            ]
        )

    @property
    def behind(self) -> int:
        """How many records are left of those that were there when this began."""
        return sum(
            max(0, end - self._positions.get(topic_partition, 0))
            for topic_partition, end in self._live.items()
        )

    def run(self, stop: threading.Event) -> None:
        """Follow until *stop*."""
        while not stop.is_set():
            batch = self._next_batch()
            if batch:
                self._handle(batch, stop)
            if time.monotonic() - self._accounted_at > ACCOUNT_INTERVAL:
                self._account()
        self._account()

    def _next_batch(self) -> list[Message]:
        first = self._reader.poll(0.1)
        if first is None:
            return []
        if (early := self._batch_at + PACE - time.monotonic()) > 0:
            time.sleep(early)
        self._batch_at = time.monotonic()
        batch = [first, *self._reader.consume(BATCH - 1, 0)]
        return [message for message in batch if not self._is_notice(message)]

    def _is_notice(self, message: Message) -> bool:
        """Say whether *message* is none of the log's records, but one of librdkafka's to us."""
        error = message.error()
        if error is None:
            return False
        if error.code() == KafkaError._PARTITION_EOF:  # which passes transactions' markers too
            self._positions[_topic_partition(message)] = _offset(message)
        elif error.code() not in TRANSIENT_ERRORS:
            raise KafkaException(error)
        return True

    def _handle(self, batch: list[Message], stop: threading.Event) -> None:
        hashes = self._note_events(message for message in batch if message.topic() == VOEVENTS)
        self._decoder.prepare(batch)
        events = []
        for message in batch:
            topic_partition, offset = _topic_partition(message), _offset(message)
            if offset >= self._live.get(topic_partition, 0):
                event = self._decode(message, stop)
                if event is not None:
                    events.append(event)
            self._positions[topic_partition] = offset + 1
        self._sink.publish(events, hashes)

    def _note_events(self, messages: Iterable[Message]) -> list[bytes]:
        entries, named = list[IndexEntry](), list[IndexEntry]()
        positions, counts = dict[int, int](), Counter[tuple[int, bool]]()
        for message in messages:
            partition, offset, digest = message.partition() or 0, _offset(message), _hash(message)
            positions[partition] = offset + 1
            if offset >= (self._accounts.position((VOEVENTS, partition)) or 0):
                counts[partition, digest is not None] += 1
            if digest is not None:
                entries.append(IndexEntry(digest, partition, offset))
                named.append(IndexEntry(name_hash(message.key() or b""), partition, offset))
        if positions:
            self._count(positions, counts)
            self._names.add(named, positions)
            self._index.add(entries, positions)
        return [one.hash for one in entries]

    def _count(self, positions: Mapping[int, int], counts: Counter[tuple[int, bool]]) -> None:
        """Count the events (True) and the other records (False) up to *positions*."""
        for partition, end in positions.items():
            events, dead = counts[partition, True], counts[partition, False]
            self._accounts.count(
                (VOEVENTS, partition), end - 1, events + dead, delivered=events, dead_lettered=dead
            )

    def _decode(self, message: Message, stop: threading.Event) -> Event | None:
        while True:
            try:
                return self._decoder.event(message)
            except RegistryAwayError as error:
                log.warning("waiting for the schema registry: %s", error)
                if stop.wait(1.0):
                    return None
            except (DecodeError, UnknownSchemaError) as error:
                self._sink.send_to_dead_letters(message, str(error))
                return None

    def _account(self) -> None:
        self._accounted_at = time.monotonic()
        for account in self._accounts.changed():
            self._sink.account(account)


def _hash(message: Message) -> bytes | None:
    try:
        return element_hash(message)
    except DecodeError:  # it becomes a dead letter where it would be delivered
        return None


def _topic_partition(message: Message) -> TopicPartition:
    return (str(message.topic()), message.partition() or 0)


def _offset(message: Message) -> int:
    return message.offset() or 0
