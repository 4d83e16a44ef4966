"""A member of a group behind a slow link: it gets reduced alerts, not late ones.

Kafka is near, so records are read as they come; alerts that cannot be sent whole in time are owed.
They are in the topic `owed` before the response is sent.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from httpx import HTTPError

from nightwire.core.congestion import (
    Batch,
    Block,
    Handler,
    Ladder,
    Level,
    Link,
    Place,
    Sent,
    memory_of,
    place_of,
    ranges,
)
from nightwire.core.kafka import MissingError, RecordFetcher, ensure_topics, error_text, watermarks
from nightwire.core.presence import ArchiveClient
from nightwire.directory.mediator.kafka_access import TIMEOUT, kafka_refusal
from nightwire.directory.mediator.owed_log import OwedLog
from nightwire.directory.mediator.session import NO_PAID, Cursor, Paid, Session
from nightwire.schemas.serving import RefusedError
from nightwire.schemas.topics import OWED, settings

log = logging.getLogger("nightwire.directory")

LINGER = 0.02
"""Longest wait for more records, once some are there. [s]"""
READ_TIME = 0.5
"""Longest time that is read before a response. [s]"""
MAX_HELD, MAX_SAMPLED, MAX_SAMPLED_TOTAL = 8 << 20, 48 << 20, 512 << 20
"""Most bytes that wait for the link; of which a sample is chosen, and such of all sessions, each of
which may have the first. [byte]"""
FETCH_RUN = 16
"""Owed alerts that are fetched between two checks of their size."""
MAX_EXPIRED_RUNS = 100
"""Most runs of expired offsets in a response; the next one names the others."""
MAX_POLL = 1_000
"""Most records of one poll of Kafka."""
END = 1 << 63
"""After every offset."""
EXTRA_IDLE = 60.0
"""Added to the idle time of a session after a response, as its link is slow. [s]"""
MAX_ARCHIVED = 10_000_000
"""Most owed alerts before the oldest in Kafka that are fetched from the archive."""
ARCHIVE_RETRY = 30.0
"""Pause after an archive did not answer. [s]"""
EXPIRY_INTERVAL = 10.0
"""Time between two searches for owed alerts that Kafka has deleted. [s]"""

Partition = tuple[str, int]
EMPTY = Batch(())


class SlowLinkSession(Session):
    """A member of *group* behind a slow link.

    Args:
        bootstrap: Kafka's address.
        client: librdkafka's properties, with the user's credentials.
        topic: Its name.
        group: Keeps the offsets.
        limit: Age above which alerts are reduced. [s]
        handler: Reduces a batch.
        count: Called with an outcome of records (full, reduced, …), and their number.
        share: Returns the session's share of so many bytes.
        archive: Has the alerts that Kafka has deleted; None for no archive.
    """

    EXTRA: Mapping[str, Any] = {"enable.partition.eof": True, "auto.offset.reset": "error"}

    def __init__(
        self,
        bootstrap: str,
        client: Mapping[str, Any],
        topic: str,
        group: str,
        *,
        limit: float,
        handler: Handler,
        count: Callable[[str, int], None],
        share: Callable[[int], int],
        archive: ArchiveClient | None = None,
    ) -> None:
        self._count, self._share, self._archive = count, share, archive
        self._archive_gaps: dict[Partition, int] = {}  # owed below are not fetched until `_archive_retry`
        self._archive_retry = 0.0
        self._archive_begins: dict[Partition, int] = {}  # the archive's first offsets
        self._link = Link(Ladder(limit), handler)
        self._owed_log = OwedLog(bootstrap, group, topic)
        self._fetcher = RecordFetcher(bootstrap, client)
        self._sent_upto: dict[int, int] = {}
        self._batch: Batch | None = None
        self._sent_at = self._caught_up_at = time.monotonic()
        self._expiry_checked = 0.0
        self._acked_paid = NO_PAID
        self._expired: list[str] = []
        self._owed_error = ""
        self._assigned: set[int] = set()
        self._behind: set[int] = set()  # assigned partitions not read to their ends
        self._out_of_range: set[int] = set()  # partitions whose next offset Kafka does not have
        super().__init__(client, topic, group)
        with ExitStack() as failed:
            failed.callback(self.close)
            try:
                ensure_topics(bootstrap, [settings(OWED)])
            except KafkaException as error:
                raise kafka_refusal(error.args[0], OWED) from error
            failed.pop_all()

    @property
    def delivered(self) -> Cursor:
        """Offsets after the records that were sent or are owed."""
        return dict(self._sent_upto)

    def next_parameters(self, after: Cursor) -> dict[str, str]:
        """Return the parameters that acknowledge the last response, beside *after*."""
        going = (
            {(partition, offset) for (_, partition), offset in self._batch.paid} if self._batch else NO_PAID
        )
        paid = going if self._assigned else self._acked_paid  # before an assignment nobody has counted it
        partitions = sorted({partition for partition, _ in paid})
        spans = [
            spans_of(one, ranges(sorted(offset for where, offset in paid if where == one)))
            for one in partitions
        ]
        return {**super().next_parameters(after), "paid": ",".join(spans)}

    def headers(self) -> dict[str, str]:
        """Return further headers of a response; expired offsets are named once."""
        expired, self._expired = self._expired[:MAX_EXPIRED_RUNS], self._expired[MAX_EXPIRED_RUNS:]
        headers = {
            "Nightwire-Level": self._link.ladder.level.name.lower(),
            "Nightwire-Owed": str(len(self._link.owed)) if self._assigned else "",
            "Nightwire-At-End": "true" if self._at_end and not self._link.held else "",
            "Nightwire-Expired": ",".join(expired),
        }
        return {name: text for name, text in headers.items() if text}

    def resume(self, after: Cursor, paid: Paid = NO_PAID) -> None:
        """Acknowledge the records before *after*, and *paid* ones; all others are sent again."""
        with self._open():
            self._confirm(after, paid)
            self._batch = None
            self._acknowledge(self._bounded(after), wait=False)
            for partition, offset in self._acknowledged.items():
                if self._sent_upto.get(partition, offset) > offset:
                    self._rewind(partition, offset)

    def commit(self, after: Cursor, paid: Paid = NO_PAID) -> None:
        """Acknowledge, and wait for Kafka's commit."""
        with self._open():
            self._confirm(after, paid)
        super().commit(self._bounded(after))

    def poll(self, most: int, size: int, timeout: float) -> list[Message]:
        """Return the next records to send; the next `resume` confirms them."""
        with self._open():
            owes = bool(self._wanted(1, size, EMPTY))
            self._read_ahead(LINGER if owes or self._link.held else timeout)
            for partition in [one for one in self._out_of_range if not self._link.waits((self.topic, one))]:
                self._reset_offset(partition)
            self._expire()
            live = self._link.choose(most, size, time.monotonic()) or EMPTY
            batch = self._add_owed(most, size, live)
            if not batch.messages:
                return []
            self._write_owed()
            self._sent_upto |= {partition: offset for (_, partition), offset in batch.upto.items()}
            self._batch, self._sent_at = batch, time.monotonic()
            self.last_used = self._sent_at + EXTRA_IDLE
            return [*batch.messages]

    def close(self) -> None:
        """Leave the group; close the other clients."""
        super().close()
        self._fetcher.close()
        if self._archive is not None:
            self._archive.close()

    def _confirm(self, after: Cursor, paid: Paid) -> None:
        """Count the last response as delivered, if *after* and *paid* confirm it."""
        now, batch, self._acked_paid = time.monotonic(), self._batch, paid
        upto = {partition: offset for (_, partition), offset in batch.upto.items()} if batch else {}
        gone = {(partition, offset) for (_, partition), offset in batch.paid} if batch else set()
        for partition, offset in paid:
            self._link.owed.pay((self.topic, partition), offset)
        if batch and gone <= paid and all(after.get(one, 0) >= offset for one, offset in upto.items()):
            self._batch = None
            self._link.delivered(batch, now - self._sent_at, now)
            for became, count in batch.became.items():
                self._count(became, count)
        self._write_owed()

    def _bounded(self, after: Cursor) -> Cursor:
        """Return *after*, but no further than what was sent."""
        return {one: min(offset, self._sent_upto.get(one, offset)) for one, offset in after.items()}

    def _rewind(self, partition: int, offset: int) -> None:
        """Read again from *offset* on: the response was lost."""
        if partition not in self._out_of_range:
            self._consumer.seek(TopicPartition(self.topic, partition, offset))
        self._delivered[partition] = self._sent_upto[partition] = offset
        self._behind.add(partition)
        here = (self.topic, partition)
        self._link.leave(here)
        self._link.owed.drop(here, range(offset, END))

    def _read_ahead(self, timeout: float) -> None:
        """Read for `READ_TIME`, up to the bytes that may wait; but poll once at least, or the
        consumer loses its partitions."""
        until, most = time.monotonic() + timeout + READ_TIME, 1
        sampled = max(MAX_HELD, min(MAX_SAMPLED, self._share(MAX_SAMPLED_TOTAL)))
        room = sampled if self._link.ladder.level is Level.SAMPLE else MAX_HELD
        while True:
            messages = self._read(most, timeout)
            if self._owed_error:
                raise RefusedError(503, f"what group {self.group} is owed is not known: {self._owed_error}")
            self._link.arrive(messages, self._caught_up_at)
            if self._at_end:
                self._caught_up_at = time.monotonic()
            if not messages or time.monotonic() >= until or self._link.held >= room:
                return
            most, timeout = MAX_POLL, LINGER

    @property
    def _at_end(self) -> bool:
        return bool(self._assigned) and not self._behind

    def _on_messages(self, messages: list[Message]) -> None:
        for one in messages:
            if (error := one.error()) is None:
                self._behind.add(one.partition() or 0)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._behind.discard(one.partition() or 0)
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._behind.add(one.partition() or 0)
                self._out_of_range.add(one.partition() or 0)

    def _reset_offset(self, partition: int) -> None:
        """Go on at Kafka's oldest record; deleted ones are owed, or expired, and acknowledged."""
        here, low = (self.topic, partition), watermarks(self._consumer, self.topic, partition).low
        at = self._delivered.get(partition, low)
        if at < low:
            first = max(at, self._first_available(here, low))
            self._note_expired(here, [range(at, first)])
            self._link.owed.skip(here, range(first, low))
            self._write_owed()
            self._count("skipped", low - at)
        if at != low:
            self._acknowledged[partition] = self._delivered[partition] = self._sent_upto[partition] = low
            self._commit({partition: low}, wait=True)
        self._out_of_range.discard(partition)
        oldest = TopicPartition(self.topic, partition, low)
        self._consumer.incremental_unassign([oldest])  # seek fails in this state
        self._consumer.incremental_assign([oldest])

    def _add_owed(self, most: int, size: int, live: Batch) -> Batch:
        """Return *live* with whole alerts that are owed, where the link has room for them."""
        wanted, found = self._wanted(most, size, live), list[Message]()
        for here, piece in _runs(wanted):
            if live.size + sum(map(memory_of, found)) >= size:
                break
            try:
                found += self._fetch(here, piece)
            except MissingError as error:
                log.warning("group %s: %s", self.group, error)
                self._expiry_checked = 0.0  # checked at once
                break
        return self._link.following(wanted, found, live) if found else live

    def _wanted(self, most: int, size: int, live: Batch) -> Mapping[Place, Sent]:
        if time.monotonic() >= self._archive_retry:
            self._archive_gaps.clear()
        return self._link.wanted(most, size, live, self._archive_gaps)

    def _fetch(self, here: Partition, wanted: range) -> list[Message]:
        low = wanted.start if self._archive is None else watermarks(self._consumer, *here).low
        found, upto = self._fetch_archived(here, range(wanted.start, min(low, wanted.stop)), low)
        if low < wanted.stop:
            found += self._fetcher.fetch(here, range(max(low, wanted.start), wanted.stop))
        there = {place_of(one)[1] for one in found}
        for offset in (gone := [one for one in wanted if one not in there]):
            self._link.owed.pay(here, offset)
        never = range(self._archive_begins.get(here, upto), upto)  # never records
        self._count("empty", sum(one in never for one in gone))
        self._note_expired(here, ranges(one for one in gone if one not in never))
        return found

    def _fetch_archived(self, here: Partition, wanted: range, low: int) -> tuple[list[Message], int]:
        """Return the archive's records of *wanted*, which lie below Kafka's *low*, and the offset
        up to which they are complete.

        Raises:
            MissingError: The archive does not answer: it is asked again.
        """
        if self._archive is None or not wanted:
            return [], wanted.start
        found, at, after = list[Message](), -1, wanted.start
        try:
            while at < after < wanted.stop:  # page by page
                messages, after = self._archive.records(here, range(at := after, wanted.stop))
                found += messages
        except HTTPError as error:
            self._archive_gaps[here], self._archive_retry = low, time.monotonic() + ARCHIVE_RETRY
            raise MissingError(f"the archive gives nothing of {here[0]}: {error}") from error
        return found, after

    def _first_available(self, here: Partition, low: int) -> int:
        """Return the first offset in the archive or Kafka, where Kafka begins at *low*."""
        if self._archive is None:
            return low
        if time.monotonic() >= self._archive_retry:
            try:
                found = self._archive.first_since(here, 0)
            except HTTPError as error:
                self._archive_gaps[here], self._archive_retry = low, time.monotonic() + ARCHIVE_RETRY
                log.warning("group %s: the archive gives nothing of %s: %s", self.group, here[0], error)
            else:
                self._archive_begins[here] = low if found is None else min(low, found)
        return max(low - MAX_ARCHIVED, self._archive_begins.get(here, 0), 0)

    def _expire(self) -> None:
        """Drop owed alerts that are deleted everywhere: a link that never recovers owes no more."""
        if time.monotonic() - self._expiry_checked < EXPIRY_INTERVAL or not self._link.owed:
            return
        self._expiry_checked = time.monotonic()
        for partition in self._sent_upto:
            here = (self.topic, partition)
            low = watermarks(self._consumer, *here).low
            if self._link.owed.begins(here) < low:
                gone = self._link.owed.drop(here, range(self._first_available(here, low)))
                self._note_expired(here, ranges(gone))

    def _note_expired(self, here: Partition, runs: Sequence[range]) -> None:
        if count := sum(map(len, runs)):
            spans = spans_of(here[1], runs)
            log.error("%s: what group %s did not get whole has expired: %s", self.topic, self.group, spans)
            self._expired += spans.split(",")
            self._count("expired", count)

    def _write_owed(self) -> None:
        """Write changed blocks of owed alerts.

        Raises:
            RefusedError: Kafka refuses them; then nothing is sent.
        """
        self._owed_log.write(dict(self._link.owed.changes()))

    def _on_assign(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        """Begin at the group's offsets, with the alerts that it is owed."""
        super()._on_assign(consumer, assigned)
        try:
            known = self._owed_log.acquire(one.partition for one in assigned)
            held = consumer.committed(assigned, timeout=TIMEOUT)
        except KafkaException as error:  # a callback must not raise
            self._owed_error = error_text(error)
            return
        self._owed_error = next((str(one.error) for one in held if one.error), "")
        for one in held:
            self._start_partition(
                one.partition, max(one.offset, self._acknowledged.get(one.partition, 0), 0), known
            )
        for partition, offset in self._acked_paid:
            self._link.owed.pay((self.topic, partition), offset)

    def _start_partition(self, partition: int, offset: int, known: Mapping[Block, bytes]) -> None:
        """Begin with *partition* at *offset*: later decisions were not sent."""
        here = (self.topic, partition)
        self._assigned.add(partition)
        self._behind.add(partition)
        self._link.owed.restore({block: sent for block, sent in known.items() if block[0] == here})
        self._link.owed.drop(here, range(offset, END))
        if offset:
            self._sent_upto[partition] = offset
            self._acknowledged.setdefault(partition, offset)
            self._delivered.setdefault(partition, offset)

    def _on_revoke(self, consumer: Consumer, revoked: list[TopicPartition]) -> None:
        super()._on_revoke(consumer, revoked)
        self._owed_log.release(one.partition for one in revoked)
        for partition in (one.partition for one in revoked):
            self._sent_upto.pop(partition, None)
            for ours in (self._assigned, self._behind, self._out_of_range):
                ours.discard(partition)
            self._link.leave((self.topic, partition))
            self._link.owed.forget((self.topic, partition))


def _runs(wanted: Mapping[Place, Sent]) -> Iterator[tuple[Partition, range]]:
    """Yield *wanted* in runs of at most `FETCH_RUN` offsets."""
    for here in dict.fromkeys(partition for partition, _ in wanted):
        for run in ranges(offset for partition, offset in wanted if partition == here):
            for first in run[::FETCH_RUN]:
                yield here, range(first, min(first + FETCH_RUN, run.stop))


def spans_of(partition: int, runs: Iterable[range]) -> str:
    """Return *runs* of offsets of *partition*, some not empty, as ``PARTITION:FIRST-LAST,…``."""
    return ",".join(f"{partition}:{one.start}-{one.stop - 1}" for one in runs)
