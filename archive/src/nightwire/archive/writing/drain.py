"""The loop of an archive: a member of its group takes records, and writes them with their offsets.

Where reading goes on is said by the tables, not by the group: what the group commits shows people
how far the archive is.
"""

import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset
from confluent_kafka.admin import AdminClient

from nightwire.archive.storage import ArchiveError, FencedError, StorageError, WholeRecord, record_of
from nightwire.archive.writing.ledger import Ledger
from nightwire.archive.writing.schedules import LiveStream, Schedule
from nightwire.archive.writing.survey_writer import SurveyWriter
from nightwire.core.kafka import (
    END,
    TRANSIENT_ERRORS,
    DeliveryError,
    TopicPartition,
    list_offsets,
    watermarks,
)
from nightwire.core.runtime import Stop
from nightwire.schemas import MendableError, RegistryAwayError, surveys

log = logging.getLogger("nightwire.archive")

GROUP = "nightwire-archive"
TICK = 0.1
"""Longest wait for a record. [s]"""
SHORT = 0.02
"""Time until a rate may allow more. [s]"""
FOLLOW = 10.0
"""Time between two looks for surveys that are new. [s]"""
LOOK = 0.2
"""Time between two looks at where partitions end. [s]"""
AT_ONCE = 500
"""Most records that are taken from Kafka at once."""
OVERHEAD = 100
"""What a record takes beside its value. [byte]"""
PATIENCE = 5.0
"""Time until a full disk, or who is away, is tried again. [s]"""
TRANSIENT = TRANSIENT_ERRORS | {KafkaError._MAX_POLL_EXCEEDED}


@dataclass(frozen=True)
class Batching:
    """When what was taken is written.

    Attributes:
        every: At the latest after so long. [s]
        size: Or when so much was taken. [byte]
    """

    every: float = 60.0
    size: int = 64 << 20


class Drain:
    """Archives the alerts of all surveys that are described.

    Args:
        consumer: A member of the archive's group.
        admin: Asked where partitions end.
        writer_of: Returns what writes a survey.
        ledger: Keeps the accounts.
        schedule: Says when something is taken.
        batching: Says when it is written.
    """

    def __init__(
        self,
        consumer: Consumer,
        admin: AdminClient,
        writer_of: Callable[[str], SurveyWriter],
        ledger: Ledger,
        schedule: Schedule,
        batching: Batching,
    ) -> None:
        self._consumer, self._admin, self.ledger = consumer, admin, ledger
        self._writer_of, self._schedule, self._batching = writer_of, schedule, batching
        self._begins: dict[TopicPartition, int | None] = {}  # position of each partition that is ours
        self._next: dict[TopicPartition, int] = {}  # next offset to take
        self._ends: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._overtaken: set[TopicPartition] = set()  # read again from where their rows end
        self._taken: list[WholeRecord] = []
        self._size, self._mean = 0, 100_000  # of all that is taken, and of one record
        self._stream, self._looked, self._began = LiveStream(), 0.0, 0.0
        self._surveys, self._follow_at = list[str](), 0.0
        self._failure: Exception | None = None
        self._retry_at = 0.0  # when what could not be written is tried again; 0: all was [s]
        self.expired, self.newest = 0, 0.0  # newest: time of the newest row [s since 1970]

    def run(self, stop: Stop) -> None:
        """Archive until *stop*; then write what was taken, and leave the group.

        Raises:
            KafkaException: Kafka refuses.
            DeliveryError: Kafka does not take the accounts.
            ArchiveError: The store does not answer while partitions are given, a topic was made
                anew, or another process archives the same.
        """
        try:
            while not stop.is_set():
                self._follow_surveys()
                self._go_behind()
                self._take()
                if self._due():
                    self._write()
            self._write()
        finally:
            self._consumer.close()

    def _follow_surveys(self) -> None:
        """Read the topics of the surveys that are described now."""
        if (now := time.monotonic()) < self._follow_at:
            return
        self._follow_at = now + FOLLOW
        if (named := surveys()) != self._surveys:
            self._surveys = named
            topics = "^alerts\\.(" + "|".join(map(re.escape, named)) + ")$"
            self._consumer.subscribe(
                [topics], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
            )

    @property
    def waiting(self) -> int:
        """Records that are taken and not yet written."""
        return len(self._taken)

    def _take(self) -> None:
        now = time.monotonic()
        if self._schedule.watches and now - self._looked >= LOOK:
            self._look(now)
        granted = 0 if self._retry_at else self._schedule.grant(now, self._stream)
        if self._schedule.watches or self._retry_at or self._paused:
            self._let_flow(granted)
        elif granted <= 0:  # soon again: to pause would throw away what was fetched
            time.sleep(SHORT)
            return
        first = self._consumer.poll(TICK)
        if self._failure is not None:
            raise self._failure
        most = min(AT_ONCE, granted // self._mean) - 1
        more = self._consumer.consume(most, 0) if first is not None and most > 0 else ()
        for message in (*([first] if first is not None else ()), *more):
            self._accept(message)

    def _accept(self, message: Message) -> None:
        if (error := message.error()) is not None:
            self._accept_error(error, (str(message.topic()), message.partition() or 0), message.offset() or 0)
            return
        record = record_of(message)
        source = (record.topic, record.partition)
        if source in self._overtaken or record.offset < self._next.get(source, 1 << 62):  # another's
            return
        if not self._taken:
            self._began = time.monotonic()
        self._taken.append(record)
        self._next[source] = record.offset + 1
        self._size += _size(record)
        self._mean += (_size(record) - self._mean) // 16
        self._schedule.took(_size(record))

    def _accept_error(self, error: KafkaError, source: TopicPartition, offset: int) -> None:
        if error.code() == KafkaError._PARTITION_EOF:  # behind the marker of a transaction, too
            if source in self._next:
                self._next[source] = max(self._next[source], offset)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._resume_at_oldest(source)
        elif not is_transient(error):
            raise KafkaException(error)

    def _look(self, now: float) -> None:
        """See whether somebody writes, and what waits."""
        self._looked = now
        try:
            found = list_offsets(self._admin, self._next, END, committed=True)
        except KafkaException as error:
            log.warning("Kafka does not say where partitions end: %s", error.args[0].str())
            return
        ends = {one: at.offset for one, at in found.items()}
        moved = now if self._ends and ends != self._ends else self._stream.moved
        self._ends = ends
        behind = any(ends[one] > self._next[one] for one in ends)
        since = (self._stream.waiting or now) if behind else None
        self._stream = LiveStream(moved, since)

    def _let_flow(self, granted: int) -> None:
        """Pause what is not to be taken now, so that nothing of it is fetched ahead."""
        behind = {one: max(0, self._ends.get(one, 1 << 62) - at) for one, at in self._next.items()}
        flows = set(self._schedule.turn(behind)) if granted > 0 else set()
        stopped = set(self._next) - flows
        if more := stopped - self._paused:
            self._consumer.pause([TopicPartitionOffset(*one) for one in more])
        if fewer := (self._paused & set(self._next)) - stopped:
            self._consumer.resume([TopicPartitionOffset(*one) for one in fewer])
        self._paused = stopped

    def _due(self) -> bool:
        now, full = time.monotonic(), self._size >= self._batching.size
        if self._retry_at:
            return now >= self._retry_at
        return bool(self._taken) and (full or now - self._began >= self._batching.every)

    def _write(self) -> None:
        """Write what was taken, topic by topic.

        What cannot be written now, for want of room or of the registry, is kept, and nothing more
        is taken until it is.
        """
        left: list[WholeRecord] = []
        for topic in dict.fromkeys(one.topic for one in self._taken):
            records = [one for one in self._taken if one.topic == topic]
            left += [] if self._written(records) else records
        self._taken, self._size = left, sum(map(_size, left))
        self._retry_at = time.monotonic() + PATIENCE if left else 0.0

    def _written(self, records: Sequence[WholeRecord]) -> bool:
        """Write records of one topic; return whether that was done."""
        writer = self._writer_of(records[0].topic.partition(".")[2])
        sources = {(one.topic, one.partition) for one in records}
        try:
            for one in sources:
                self._level(writer, one)
            left = [one for one in records if one.offset >= (self._begins[one.topic, one.partition] or 0)]
            if left:
                written = writer.write(left, self._begins)
                self._begins |= {one: end for one, (_, end) in written.ranges.items()}
                self.ledger.note(written)
                self.newest = max(self.newest, *(one.timestamp / 1000 for one in left))
        except FencedError as error:
            log.warning("what another member has archived is left to it: %s", error)
            self._overtaken |= sources
            return True
        except (StorageError, RegistryAwayError) as error:
            log.error("not archived yet: %s", error)  # noqa: TRY400  (a line says it all)
            return False
        self._commit(sources)
        return True

    def _level(self, writer: SurveyWriter, source: TopicPartition) -> None:
        """Bring tables and accounts to one position, where the last attempt broke off half-way."""
        found = writer.position(source[1])
        if found != self._begins[source]:
            self.ledger.begin(source, writer, found, found or 0)
            self._begins[source] = found

    def _commit(self, sources: set[TopicPartition]) -> None:
        places = [TopicPartitionOffset(*one, at) for one in sources if (at := self._begins.get(one))]
        try:
            self._consumer.commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            log.warning("the group does not show how far the archive is: %s", error.args[0].str())

    def _resume_at_oldest(self, source: TopicPartition) -> None:
        """Go on with the oldest record there is, after Kafka has deleted the next one."""
        if source not in self._next:  # it went to another member
            return
        self._write()
        writer, low = self._writer_of(source[0].partition(".")[2]), watermarks(self._consumer, *source).low
        log.error("%s[%d]: %d records expired before they were archived", *source, low - self._next[source])
        self.expired += low - self._next[source]
        self._next[source] = low
        self.ledger.begin(source, writer, self._begins[source], low)
        self._read_from(source, low)

    def _go_behind(self) -> None:
        """Read partitions again that another member had meanwhile, from where their rows end."""
        for one in self._overtaken & set(self._next):
            self._read_from(one, self._start(one))
        self._overtaken.clear()

    def _read_from(self, source: TopicPartition, offset: int) -> None:
        self._consumer.incremental_unassign([TopicPartitionOffset(*source)])
        self._consumer.incremental_assign([TopicPartitionOffset(*source, offset)])
        self._consumer.resume([TopicPartitionOffset(*source)])
        self._paused.discard(source)

    def _on_assign(self, consumer: Consumer, given: list[TopicPartitionOffset]) -> None:
        try:
            starts = [TopicPartitionOffset(*one, self._start(one)) for one in _sources(given)]
            consumer.incremental_assign(starts)
        except (KafkaException, DeliveryError, MendableError) as error:  # raised by the next look
            self._failure = error

    def _start(self, source: TopicPartition) -> int:
        """Return where a partition that is given to us is read from."""
        writer = self._writer_of(source[0].partition(".")[2])
        position, held = writer.position(source[1]), watermarks(self._consumer, *source)
        if position is not None and position > held.high:
            raise ArchiveError(
                f"{source[0]}[{source[1]}] ends at offset {held.high}, the archive has it up to {position}:"
                " the topic was made anew; archive it in another place (--archive URL)"
            )
        start = max(position or 0, held.low)
        if position is not None and start > position:
            log.error("%s[%d]: %d records expired before they were archived", *source, start - position)
            self.expired += start - position
        self._begins[source], self._next[source] = position, start
        self.ledger.begin(source, writer, position, start)
        log.info("%s[%d]: from offset %d", *source, start)
        return start

    def _on_revoke(self, _consumer: Consumer, taken: list[TopicPartitionOffset]) -> None:
        try:
            self._write()
        except (KafkaException, DeliveryError, MendableError) as error:
            self._failure = error
        self._forget(taken)

    def _on_lost(self, _consumer: Consumer, taken: list[TopicPartitionOffset]) -> None:
        log.warning("the group has given up this member for a while: others go on where its rows end")
        self._forget(taken)

    def _forget(self, taken: list[TopicPartitionOffset]) -> None:
        for one in _sources(taken):
            for known in (self._begins, self._next, self._ends):
                known.pop(one, None)
            self._paused.discard(one)
            self._taken = [record for record in self._taken if (record.topic, record.partition) != one]


def is_transient(error: KafkaError) -> bool:
    """Return whether Kafka is only away, or has given up this member for a while."""
    return error.code() in TRANSIENT and not error.fatal()


def _size(record: WholeRecord) -> int:
    return len(record.value or b"") + OVERHEAD


def _sources(given: list[TopicPartitionOffset]) -> list[TopicPartition]:
    return [(one.topic, one.partition) for one in given]
