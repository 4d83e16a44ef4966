"""A member of a group behind a slow link: it gets less of each alert, not old ones.

Kafka has no slow link to us, so all is read at once; what cannot go out in time is owed.  What is
owed lies in the topic `owed` before the answer goes out.
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
from nightwire.core.kafka import (
    MissingError,
    RecordFetcher,
    ensure_topics,
    watermarks,
)
from nightwire.core.presence import ArchiveClient
from nightwire.directory.mediator.kafka_access import TIMEOUT, refusal
from nightwire.directory.mediator.owed_log import Keeper
from nightwire.directory.mediator.session import NOTHING, Cursor, Paid, Session
from nightwire.schemas.serving import RefusedError
from nightwire.schemas.topics import OWED, settings

log = logging.getLogger("nightwire.directory")

QUIET = 0.02
"""Longest wait for more, once something is there. [s]"""
DRAIN = 0.5
"""Longest time that is read before something goes out. [s]"""
HELD, SAMPLED, SAMPLED_OF_ALL = 8 << 20, 48 << 20, 512 << 20
"""Most that waits; of which a sample is chosen, at once; and such of all sessions, which have no
less than the first. [byte]"""
PIECE = 16
"""So many alerts that follow are fetched before their size is looked at."""
NAMED = 100
"""Most runs of offsets that an answer names as expired; others are named by the next."""
AT_ONCE = 1_000
"""Most records of one read."""
END = 1 << 63
"""Behind every offset."""
LONGER = 60.0
"""A session that has answered is kept for so much longer than others: its link is slow. [s]"""
ARCHIVED = 10_000_000
"""So many alerts before the oldest in Kafka may follow from the archive."""
AGAIN = 30.0
"""Time until an archive that did not answer is asked again; Kafka is read till then. [s]"""
EXPIRE = 10.0
"""Time between two looks for what Kafka has forgotten of what is owed. [s]"""

Partition = tuple[str, int]
NONE = Batch(())


class SlowLinkSession(Session):
    """Reads *topic* for a group behind a slow link.

    Args:
        bootstrap: Kafka's address.
        client: librdkafka's properties of who reads.
        topic: What it reads.
        group: Where its offsets are.
        limit: Age above which less is sent. [s]
        handler: Makes less of a batch.
        count: Is called with what records became, and how many.
        share: Returns its share of so many bytes for all sessions.
        archive: Has what Kafka has forgotten; None where nothing has.
    """

    MORE: Mapping[str, Any] = {"enable.partition.eof": True, "auto.offset.reset": "error"}

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
        self._forgotten: dict[Partition, int] = {}  # is not asked for, till then
        self._until = 0.0
        self._oldest: dict[Partition, int] = {}  # what the archive has of them begins there
        self._link = Link(Ladder(limit), handler)
        self._keeper = Keeper(bootstrap, group, topic)
        self._fetcher = RecordFetcher(bootstrap, client)
        self._answered: dict[int, int] = {}
        self._batch: Batch | None = None
        self._went = self._current = time.monotonic()
        self._looked = 0.0
        self._claimed_paid = NOTHING
        self._expired: list[str] = []
        self._unknown = ""
        self._ours: set[int] = set()
        self._behind: set[int] = set()  # partitions of ours that were not read to their ends
        self._astray: set[int] = set()  # of which Kafka does not have what comes next
        super().__init__(client, topic, group)
        with ExitStack() as failed:
            failed.callback(self.close)
            try:
                ensure_topics(bootstrap, [settings(OWED)])
            except KafkaException as error:
                raise refusal(error.args[0], OWED) from error
            failed.pop_all()

    @property
    def delivered(self) -> Cursor:
        """What went out, or is owed."""
        return dict(self._answered)

    def next_question(self, after: Cursor) -> dict[str, str]:
        """Return what acknowledges the last answer, beside what was acknowledged by *after*."""
        going = (
            {(partition, offset) for (_, partition), offset in self._batch.paid} if self._batch else NOTHING
        )
        paid = going if self._ours else self._claimed_paid  # before that nobody has noted it
        partitions = sorted({partition for partition, _ in paid})
        spans = [
            spans_of(one, ranges(sorted(offset for where, offset in paid if where == one)))
            for one in partitions
        ]
        return {**super().next_question(after), "paid": ",".join(spans)}

    def state(self) -> dict[str, str]:
        """Return what HTTP's headers say of it; what has expired is said once."""
        expired, self._expired = self._expired[:NAMED], self._expired[NAMED:]
        said = {
            "Nightwire-Level": self._link.ladder.level.name.lower(),
            "Nightwire-Owed": str(len(self._link.owed)) if self._ours else "",
            "Nightwire-At-End": "true" if self._at_end and not self._link.held else "",
            "Nightwire-Expired": ",".join(expired),
        }
        return {name: text for name, text in said.items() if text}

    def go_on(self, after: Cursor, paid: Paid = NOTHING) -> None:
        """Acknowledge what lies before *after* and what was *paid*; all else goes out again."""
        with self._open():
            self._settle(after, paid)
            self._batch = None
            self._acknowledge(self._bounded(after), wait=False)
            for partition, offset in self._acknowledged.items():
                if self._answered.get(partition, offset) > offset:
                    self._rewind(partition, offset)

    def commit(self, after: Cursor, paid: Paid = NOTHING) -> None:
        """Acknowledge, and wait until Kafka has it."""
        with self._open():
            self._settle(after, paid)
        super().commit(self._bounded(after))

    def take(self, most: int, size: int, timeout: float) -> list[Message]:
        """Return what goes out next; it is settled with the next `go_on`."""
        with self._open():
            owes = bool(self._wanted(1, size, NONE))
            self._drain(QUIET if owes or self._link.held else timeout)
            for partition in [one for one in self._astray if not self._link.waits((self.topic, one))]:
                self._pass_over(partition)
            self._expire()
            live = self._link.choose(most, size, time.monotonic()) or NONE
            batch = self._follow(most, size, live)
            if not batch.messages:
                return []
            self._keep()
            self._answered |= {partition: offset for (_, partition), offset in batch.upto.items()}
            self._batch, self._went = batch, time.monotonic()
            self.used = self._went + LONGER
            return [*batch.messages]

    def close(self) -> None:
        """Leave Kafka."""
        super().close()
        self._fetcher.close()
        if self._archive is not None:
            self._archive.close()

    def _settle(self, after: Cursor, paid: Paid) -> None:
        """Note that the last answer was delivered, if *after* and *paid* say so."""
        now, batch, self._claimed_paid = time.monotonic(), self._batch, paid
        upto = {partition: offset for (_, partition), offset in batch.upto.items()} if batch else {}
        gone = {(partition, offset) for (_, partition), offset in batch.paid} if batch else set()
        for partition, offset in paid:
            self._link.owed.pay((self.topic, partition), offset)
        if batch and gone <= paid and all(after.get(one, 0) >= offset for one, offset in upto.items()):
            self._batch = None
            self._link.delivered(batch, now - self._went, now)
            for became, count in batch.became.items():
                self._count(became, count)
        self._keep()

    def _bounded(self, after: Cursor) -> Cursor:
        """Return *after* without what did not go out yet."""
        return {one: min(offset, self._answered.get(one, offset)) for one, offset in after.items()}

    def _rewind(self, partition: int, offset: int) -> None:
        """Decide anew on what lies behind *offset*: its answer was lost."""
        if partition not in self._astray:
            self._consumer.seek(TopicPartition(self.topic, partition, offset))
        self._delivered[partition] = self._answered[partition] = offset
        self._behind.add(partition)
        here = (self.topic, partition)
        self._link.leave(here)
        self._link.owed.drop(here, range(offset, END))

    def _drain(self, timeout: float) -> None:
        """Read what Kafka has: for some time, and for as much as may wait; something each time, for
        who does not ask Kafka for minutes loses the partitions."""
        until, most = time.monotonic() + timeout + DRAIN, 1
        sampled = max(HELD, min(SAMPLED, self._share(SAMPLED_OF_ALL)))
        room = sampled if self._link.ladder.level is Level.SAMPLE else HELD
        while True:
            messages = self._read(most, timeout)
            if self._unknown:
                raise RefusedError(503, f"what group {self.group} is owed is not known: {self._unknown}")
            self._link.arrive(messages, self._current)
            if self._at_end:
                self._current = time.monotonic()
            if not messages or time.monotonic() >= until or self._link.held >= room:
                return
            most, timeout = AT_ONCE, QUIET

    @property
    def _at_end(self) -> bool:
        return bool(self._ours) and not self._behind

    def _note(self, messages: list[Message]) -> None:
        for one in messages:
            if (error := one.error()) is None:
                self._behind.add(one.partition() or 0)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._behind.discard(one.partition() or 0)
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._behind.add(one.partition() or 0)
                self._astray.add(one.partition() or 0)

    def _pass_over(self, partition: int) -> None:
        """Go on at the oldest that Kafka has; what it forgot unread is owed, or has expired.

        All before that is acknowledged, for nothing of it waits: so the group's position follows.
        """
        here, low = (self.topic, partition), watermarks(self._consumer, self.topic, partition).low
        at = self._delivered.get(partition, low)
        if at < low:
            first = max(at, self._first_of(here, low))
            self._note_expired(here, [range(at, first)])
            self._link.owed.skip(here, range(first, low))
            self._keep()
            self._count("skipped", low - at)
        if at != low:
            self._acknowledged[partition] = self._delivered[partition] = self._answered[partition] = low
            self._commit({partition: low}, wait=True)
        self._astray.discard(partition)
        place = TopicPartition(self.topic, partition, low)
        self._consumer.incremental_unassign([place])  # it cannot seek in this state
        self._consumer.incremental_assign([place])

    def _follow(self, most: int, size: int, live: Batch) -> Batch:
        """Return *live* with whole alerts that are owed, where the link has room for them."""
        wanted, found = self._wanted(most, size, live), list[Message]()
        for here, piece in _pieces(wanted):
            if live.size + sum(map(memory_of, found)) >= size:
                break
            try:
                found += self._fetched(here, piece)
            except MissingError as error:
                log.warning("group %s: %s", self.group, error)
                self._looked = 0.0  # whether it has expired is seen at once
                break
        return self._link.following(wanted, found, live) if found else live

    def _wanted(self, most: int, size: int, live: Batch) -> Mapping[Place, Sent]:
        if time.monotonic() >= self._until:
            self._forgotten.clear()
        return self._link.wanted(most, size, live, self._forgotten)

    def _fetched(self, here: Partition, wanted: range) -> list[Message]:
        low = wanted.start if self._archive is None else watermarks(self._consumer, *here).low
        found, upto = self._archived(here, range(wanted.start, min(low, wanted.stop)), low)
        if low < wanted.stop:
            found += self._fetcher.fetch(here, range(max(low, wanted.start), wanted.stop))
        there = {place_of(one)[1] for one in found}
        for offset in (gone := [one for one in wanted if one not in there]):
            self._link.owed.pay(here, offset)
        never = range(self._oldest.get(here, upto), upto)  # as markers of transactions
        self._count("empty", sum(one in never for one in gone))
        self._note_expired(here, ranges(one for one in gone if one not in never))
        return found

    def _archived(self, here: Partition, wanted: range, low: int) -> tuple[list[Message], int]:
        """Return what the archive has of what Kafka has forgotten, which lies below *low*, and
        the offset up to which it has all.

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
            self._forgotten[here], self._until = low, time.monotonic() + AGAIN
            raise MissingError(f"the archive gives nothing of {here[0]}: {error}") from error
        return found, after

    def _first_of(self, here: Partition, low: int) -> int:
        """Return the first offset that can be had, where Kafka begins at *low*."""
        if self._archive is None:
            return low
        if time.monotonic() >= self._until:
            try:
                found = self._archive.first_since(here, 0)
            except HTTPError as error:
                self._forgotten[here], self._until = low, time.monotonic() + AGAIN
                log.warning("group %s: the archive gives nothing of %s: %s", self.group, here[0], error)
            else:
                self._oldest[here] = low if found is None else min(low, found)
        return max(low - ARCHIVED, self._oldest.get(here, 0), 0)

    def _expire(self) -> None:
        """Owe no more what Kafka has forgotten: so a link that never recovers owes no more."""
        if time.monotonic() - self._looked < EXPIRE or not self._link.owed:
            return
        self._looked = time.monotonic()
        for partition in self._answered:
            here = (self.topic, partition)
            low = watermarks(self._consumer, *here).low
            if self._link.owed.begins(here) < low:
                gone = self._link.owed.drop(here, range(self._first_of(here, low)))
                self._note_expired(here, ranges(gone))

    def _note_expired(self, here: Partition, runs: Sequence[range]) -> None:
        if count := sum(map(len, runs)):
            spans = spans_of(here[1], runs)
            log.error("%s: what group %s did not get whole has expired: %s", self.topic, self.group, spans)
            self._expired += spans.split(",")
            self._count("expired", count)

    def _keep(self) -> None:
        """Write what is owed, where that has changed.

        Raises:
            RefusedError: Kafka does not take it; nothing goes out that it does not know of.
        """
        self._keeper.keep(dict(self._link.owed.changes()))

    def _given(self, consumer: Consumer, given: list[TopicPartition]) -> None:
        """Begin where the group was, with what it is owed of before."""
        super()._given(consumer, given)
        try:
            known = self._keeper.take(one.partition for one in given)
            held = consumer.committed(given, timeout=TIMEOUT)
        except KafkaException as error:  # what escapes from a callback would be no exception
            self._unknown = error.args[0].str()
            return
        self._unknown = next((str(one.error) for one in held if one.error), "")
        for one in held:
            self._begin(one.partition, max(one.offset, self._acknowledged.get(one.partition, 0), 0), known)
        for partition, offset in self._claimed_paid:
            self._link.owed.pay((self.topic, partition), offset)

    def _begin(self, partition: int, offset: int, known: Mapping[Block, bytes]) -> None:
        """Begin with *partition* at *offset*: what was decided beyond it did not go out."""
        here = (self.topic, partition)
        self._ours.add(partition)
        self._behind.add(partition)
        self._link.owed.restore({block: sent for block, sent in known.items() if block[0] == here})
        self._link.owed.drop(here, range(offset, END))
        if offset:
            self._answered[partition] = offset
            self._acknowledged.setdefault(partition, offset)
            self._delivered.setdefault(partition, offset)

    def _taken(self, consumer: Consumer, taken: list[TopicPartition]) -> None:
        super()._taken(consumer, taken)
        self._keeper.leave(one.partition for one in taken)
        for partition in (one.partition for one in taken):
            self._answered.pop(partition, None)
            for ours in (self._ours, self._behind, self._astray):
                ours.discard(partition)
            self._link.leave((self.topic, partition))
            self._link.owed.forget((self.topic, partition))


def _pieces(wanted: Mapping[Place, Sent]) -> Iterator[tuple[Partition, range]]:
    """Yield what is *wanted* in runs of at most `PIECE` offsets."""
    for here in dict.fromkeys(partition for partition, _ in wanted):
        for run in ranges(offset for partition, offset in wanted if partition == here):
            for first in run[::PIECE]:
                yield here, range(first, min(first + PIECE, run.stop))


def spans_of(partition: int, runs: Iterable[range]) -> str:
    """Return *runs* of offsets of *partition*, some not empty, as ``PARTITION:FIRST-LAST,…``."""
    return ",".join(f"{partition}:{one.start}-{one.stop - 1}" for one in runs)
