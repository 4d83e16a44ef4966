"""The consumer of the archive's group: it reads records, and writes them with their offsets.

The tables hold the offsets from which reading resumes, not the group: its commits only show how far
the archive is.
"""

import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset
from confluent_kafka.admin import AdminClient

from nightwire.archive.storage import ArchiveError, FencedError, Packet, StorageError, packet_of
from nightwire.archive.writing.accounts import ArchiveAccounts
from nightwire.archive.writing.schedules import Schedule, StreamState
from nightwire.archive.writing.survey_writer import SurveyWriter
from nightwire.core.kafka import (
    END,
    TRANSIENT_ERRORS,
    DeliveryError,
    TopicPartition,
    error_text,
    list_offsets,
    watermarks,
)
from nightwire.core.runtime import Stop
from nightwire.schemas import MendableError, RegistryAwayError, surveys

log = logging.getLogger("nightwire.archive")

GROUP = "nightwire-archive"
POLL_TIMEOUT = 0.1
"""Longest wait for a record. [s]"""
RATE_WAIT = 0.02
"""Time between two looks at an allowance that is used up. [s]"""
SURVEYS_INTERVAL = 10.0
"""Time between two looks for new surveys. [s]"""
LAG_INTERVAL = 0.2
"""Time between two requests for the partitions' end offsets. [s]"""
MAX_POLL_RECORDS = 500
"""Most records of one poll."""
RECORD_OVERHEAD = 100
"""Memory that a record takes beside its value. [byte]"""
RETRY_DELAY = 5.0
"""Time until a full disk, the store, the registry or Kafka is tried again. [s]"""
TRANSIENT = TRANSIENT_ERRORS | {KafkaError._MAX_POLL_EXCEEDED}


@dataclass(frozen=True)
class Batching:
    """The limits of a batch, which is written when it reaches one.

    Attributes:
        every: Longest time since its first record. [s]
        size: Size of its records. [byte]
    """

    every: float = 60.0
    size: int = 64 << 20


class ArchiveConsumer:
    """Archives the alerts of all surveys that are described.

    Args:
        consumer: A member of the archive's group.
        admin: Asked for end offsets.
        writer_of: Returns the writer of a survey.
        accounts: Those of the archive.
        schedule: Decides when to read.
        batching: The limits of a batch.
    """

    def __init__(
        self,
        consumer: Consumer,
        admin: AdminClient,
        writer_of: Callable[[str], SurveyWriter],
        accounts: ArchiveAccounts,
        schedule: Schedule,
        batching: Batching,
    ) -> None:
        self._consumer, self._admin, self.accounts = consumer, admin, accounts
        self._writer_of, self._schedule, self._batching = writer_of, schedule, batching
        self._positions: dict[TopicPartition, int | None] = {}  # of each assigned partition
        self._next_offsets: dict[TopicPartition, int] = {}  # to poll
        self._end_offsets: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._fenced: set[TopicPartition] = set()  # archived by another member meanwhile
        self._batch: list[Packet] = []
        self._batch_bytes, self._mean_bytes = 0, 100_000  # of the batch; of a record
        self._stream, self._lag_measured_at, self._batch_began_at = StreamState(), 0.0, 0.0
        self._surveys, self._subscribe_at = list[str](), 0.0
        self._failure: Exception | None = None
        self._retry_at = 0.0  # when a failed write is tried again; 0 for none [s, monotonic]
        self.expired, self.newest = 0, 0.0  # newest: time of the newest archived record [s since 1970]

    def run(self, stop: Stop) -> None:
        """Archive until *stop*; then write the last batch, and leave the group.

        Raises:
            KafkaException: Kafka refuses.
            DeliveryError: Kafka does not take the accounts.
            ArchiveError: The store does not answer in a rebalance, a topic was made anew, or
                another process archives the same.
        """
        try:
            while not stop.is_set():
                self._subscribe()
                self._reread_fenced()
                self._poll()
                if self._is_write_due():
                    self._write()
            self._write()
        finally:
            self._consumer.close()

    def _subscribe(self) -> None:
        """Subscribe to the topics of all surveys that are described now."""
        if (now := time.monotonic()) < self._subscribe_at:
            return
        self._subscribe_at = now + SURVEYS_INTERVAL
        if (named := surveys()) != self._surveys:
            self._surveys = named
            topics = "^alerts\\.(" + "|".join(map(re.escape, named)) + ")$"
            self._consumer.subscribe(
                [topics], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
            )

    @property
    def unwritten(self) -> int:
        """The number of records that are read and not yet written."""
        return len(self._batch)

    def _poll(self) -> None:
        now = time.monotonic()
        if self._schedule.needs_lag and now - self._lag_measured_at >= LAG_INTERVAL:
            self._measure_lag(now)
        allowed = 0 if self._retry_at else self._schedule.allowance(now, self._stream)
        if self._schedule.needs_lag or self._retry_at or self._paused:
            self._pause_and_resume(allowed)
        elif allowed <= 0:  # soon again: a pause would discard fetched records
            time.sleep(RATE_WAIT)
            return
        first = self._consumer.poll(POLL_TIMEOUT)
        if self._failure is not None:
            raise self._failure
        most = min(MAX_POLL_RECORDS, allowed // self._mean_bytes) - 1
        more = self._consumer.consume(most, 0) if first is not None and most > 0 else ()
        for message in (*([first] if first is not None else ()), *more):
            self._accept(message)

    def _accept(self, message: Message) -> None:
        if (error := message.error()) is not None:
            self._accept_error(error, (str(message.topic()), message.partition() or 0), message.offset() or 0)
            return
        packet = packet_of(message)
        source = (packet.topic, packet.partition)
        if source in self._fenced or packet.offset < self._next_offsets.get(source, 1 << 62):  # another's
            return
        if not self._batch:
            self._batch_began_at = time.monotonic()
        self._batch.append(packet)
        self._next_offsets[source] = packet.offset + 1
        self._batch_bytes += _packet_bytes(packet)
        self._mean_bytes += (_packet_bytes(packet) - self._mean_bytes) // 16
        self._schedule.consume(_packet_bytes(packet))

    def _accept_error(self, error: KafkaError, source: TopicPartition, offset: int) -> None:
        if error.code() == KafkaError._PARTITION_EOF:  # behind the marker of a transaction, too
            if source in self._next_offsets:
                self._next_offsets[source] = max(self._next_offsets[source], offset)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._skip_expired(source)
        elif not is_transient(error):
            raise KafkaException(error)

    def _measure_lag(self, now: float) -> None:
        """Update the state of the stream, from the partitions' end offsets."""
        self._lag_measured_at = now
        try:
            found = list_offsets(self._admin, self._next_offsets, END, committed=True)
        except KafkaException as error:
            log.warning("Kafka does not say where partitions end: %s", error_text(error))
            return
        ends = {one: end.offset for one, end in found.items()}
        last_write = now if self._end_offsets and ends != self._end_offsets else self._stream.last_write
        self._end_offsets = ends
        lags = any(ends[one] > self._next_offsets[one] for one in ends)
        self._stream = StreamState(last_write, (self._stream.lag_since or now) if lags else None)

    def _pause_and_resume(self, allowed: int) -> None:
        """Pause the partitions that are not to be read now: nothing is fetched ahead of them."""
        ends = self._end_offsets
        lags = {one: max(0, ends.get(one, 1 << 62) - offset) for one, offset in self._next_offsets.items()}
        flowing = set(self._schedule.partitions(lags)) if allowed > 0 else set()
        stopped = set(self._next_offsets) - flowing
        if more := stopped - self._paused:
            self._consumer.pause([TopicPartitionOffset(*one) for one in more])
        if fewer := (self._paused & set(self._next_offsets)) - stopped:
            self._consumer.resume([TopicPartitionOffset(*one) for one in fewer])
        self._paused = stopped

    def _is_write_due(self) -> bool:
        now, full = time.monotonic(), self._batch_bytes >= self._batching.size
        if self._retry_at:
            return now >= self._retry_at
        return bool(self._batch) and (full or now - self._batch_began_at >= self._batching.every)

    def _write(self) -> None:
        """Write the batch, topic by topic.

        Records that cannot be written, since the disk is full or the registry away, stay in the
        batch, and no others are read until they are.
        """
        left: list[Packet] = []
        for topic in dict.fromkeys(one.topic for one in self._batch):
            packets = [one for one in self._batch if one.topic == topic]
            left += [] if self._write_packets(packets) else packets
        self._batch, self._batch_bytes = left, sum(map(_packet_bytes, left))
        self._retry_at = time.monotonic() + RETRY_DELAY if left else 0.0

    def _write_packets(self, packets: Sequence[Packet]) -> bool:
        """Write packets of one topic; return False where they are to be tried again."""
        writer = self._writer_of(packets[0].topic.partition(".")[2])
        sources = {one.source for one in packets}
        try:
            for one in sources:
                self._resume_accounts(writer, one)
            left = [one for one in packets if one.offset >= (self._positions[one.source] or 0)]
            if left:
                written = writer.write(left, self._positions)
                self._positions |= {one: end for one, (_, end) in written.ranges.items()}
                self.accounts.count(written)
                self.newest = max(self.newest, *(one.timestamp / 1000 for one in left))
        except FencedError as error:
            log.warning("what another member has archived is left to it: %s", error)
            self._fenced |= sources
            return True
        except (StorageError, RegistryAwayError) as error:
            log.error("not archived yet: %s", error)  # noqa: TRY400  (a line says it all)
            return False
        self._commit(sources)
        return True

    def _resume_accounts(self, writer: SurveyWriter, source: TopicPartition) -> None:
        """Bring tables and accounts to one position, after an attempt that broke off half-way."""
        found = writer.position(source[1])
        if found != self._positions[source]:
            self.accounts.resume(source, writer, found, found or 0)
            self._positions[source] = found

    def _commit(self, sources: set[TopicPartition]) -> None:
        offsets = [TopicPartitionOffset(*one, end) for one in sources if (end := self._positions.get(one))]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            log.warning("the group does not show how far the archive is: %s", error_text(error))

    def _skip_expired(self, source: TopicPartition) -> None:
        """Go on at the oldest record that Kafka has, after it has deleted the next one."""
        if source not in self._next_offsets:  # revoked meanwhile
            return
        self._write()
        writer, low = self._writer_of(source[0].partition(".")[2]), watermarks(self._consumer, *source).low
        self._count_expired(source, low - self._next_offsets[source])
        self._next_offsets[source] = low
        self.accounts.resume(source, writer, self._positions[source], low)
        self._seek(source, low)

    def _count_expired(self, source: TopicPartition, count: int) -> None:
        log.error("%s[%d]: %d records expired before they were archived", *source, count)
        self.expired += count

    def _reread_fenced(self) -> None:
        """Reread partitions that another member archived meanwhile, from their positions."""
        for one in self._fenced & set(self._next_offsets):
            self._seek(one, self._start_offset(one))
        self._fenced.clear()

    def _seek(self, source: TopicPartition, offset: int) -> None:
        self._consumer.incremental_unassign([TopicPartitionOffset(*source)])
        self._consumer.incremental_assign([TopicPartitionOffset(*source, offset)])
        self._consumer.resume([TopicPartitionOffset(*source)])
        self._paused.discard(source)

    def _on_assign(self, consumer: Consumer, assigned: list[TopicPartitionOffset]) -> None:
        try:
            starts = [TopicPartitionOffset(*one, self._start_offset(one)) for one in _partitions_of(assigned)]
            consumer.incremental_assign(starts)
        except (KafkaException, DeliveryError, MendableError) as error:  # raised by the next poll
            self._failure = error

    def _start_offset(self, source: TopicPartition) -> int:
        """Return the offset from which an assigned partition is read, and note its position."""
        writer = self._writer_of(source[0].partition(".")[2])
        position, held = writer.position(source[1]), watermarks(self._consumer, *source)
        if position is not None and position > held.high:
            raise ArchiveError(
                f"{source[0]}[{source[1]}] ends at offset {held.high}, the archive has it up to {position}:"
                " the topic was made anew; archive it in another place (--archive URL)"
            )
        start = max(position or 0, held.low)
        if position is not None and start > position:
            self._count_expired(source, start - position)
        self._positions[source], self._next_offsets[source] = position, start
        self.accounts.resume(source, writer, position, start)
        log.info("%s[%d]: from offset %d", *source, start)
        return start

    def _on_revoke(self, _consumer: Consumer, revoked: list[TopicPartitionOffset]) -> None:
        try:
            self._write()
        except (KafkaException, DeliveryError, MendableError) as error:
            self._failure = error
        self._drop(revoked)

    def _on_lost(self, _consumer: Consumer, lost: list[TopicPartitionOffset]) -> None:
        log.warning("the group has given up this member for a while: others go on where its rows end")
        self._drop(lost)

    def _drop(self, partitions: list[TopicPartitionOffset]) -> None:
        for one in _partitions_of(partitions):
            for known in (self._positions, self._next_offsets, self._end_offsets):
                known.pop(one, None)
            self._paused.discard(one)
            self._batch = [packet for packet in self._batch if packet.source != one]


def is_transient(error: KafkaError) -> bool:
    """Return whether Kafka is only away, or has expelled this member for a while."""
    return error.code() in TRANSIENT and not error.fatal()


def _packet_bytes(packet: Packet) -> int:
    return len(packet.value or b"") + RECORD_OVERHEAD


def _partitions_of(offsets: list[TopicPartitionOffset]) -> list[TopicPartition]:
    return [(one.topic, one.partition) for one in offsets]
