"""Records of topics from a time on that Kafka has forgotten: first from the archive, then Kafka.

The seam is an offset: the archive gives what lies before the oldest record that Kafka has.  Should
Kafka forget more meanwhile, that comes from the archive too.
"""

import logging
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime

import httpx
from confluent_kafka import Consumer, Message

from nightwire.consumers.alert import ALERTS
from nightwire.consumers.source.plan import Plan
from nightwire.consumers.source.record_source import RecordSource
from nightwire.consumers.source.start_offsets import StartOffset
from nightwire.consumers.source.timespec import milliseconds
from nightwire.core.kafka import TopicPartition, Watermarks
from nightwire.core.presence import ArchiveClient
from nightwire.core.runtime import LogLimiter

log = logging.getLogger("nightwire.consumers")


class ArchivedSource(RecordSource):
    """Records since a time, of whatever age.

    Args:
        consumer: Has ``enable.partition.eof`` set.
        plan: What to read, and since when.
        archive: Has what Kafka has forgotten.
    """

    def __init__(self, consumer: Consumer, plan: Plan, archive: ArchiveClient) -> None:
        super().__init__(consumer, plan)
        self._archive, self._limiter = archive, LogLimiter()
        self._past: deque[tuple[TopicPartition, range]] = deque()  # what the archive is asked for
        self._begins: dict[TopicPartition, int] = {}

    def initial_offsets(self, held: Mapping[TopicPartition, Watermarks]) -> dict[TopicPartition, int]:
        """Return where Kafka's part begins, and find where the archive's does."""
        found = super().initial_offsets(held)
        since = milliseconds(self._plan.since or datetime.now(UTC), datetime.now(UTC))
        for one, marks in held.items():
            if one[0].startswith(ALERTS) and found[one] == marks.low > 0:
                try:
                    first = self._archive.first_since(one, since)
                except httpx.HTTPError as error:
                    log.warning("the archive does not answer (%s): reading what Kafka has", error)
                    return found
                if first is not None and first < marks.low:
                    self._begins[one] = first
        return found

    def assign(
        self, starts: Mapping[TopicPartition, StartOffset], ends: Mapping[TopicPartition, int]
    ) -> None:
        """Read from *starts*: at once, or after what the archive has of before."""
        self._limits |= ends
        for one, first in self._begins.items():
            self._past.append((one, range(first, starts[one].offset)))
        at_once = {one: start for one, start in starts.items() if one not in self._begins}
        self._begins = {}
        super().assign(at_once, {one: ends[one] for one in at_once})

    def take(self, most: int, timeout: float) -> list[Message]:
        """Return the next records: the archive's first.

        Raises:
            KafkaException: Reading cannot go on.
        """
        if self._past and not self._backlog:
            self._ask(timeout)
            return [self._backlog.popleft() for _ in range(min(most, len(self._backlog)))]
        return super().take(most, timeout)

    @property
    def way(self) -> str:
        """Where records come from now."""
        return "archive" if self._past else super().way

    @property
    def at_end(self) -> bool:
        """Whether all has been read that was there at the beginning."""
        return not self._past and super().at_end

    def close(self) -> None:
        """Leave Kafka, and the archive."""
        self._archive.close()
        super().close()

    def _ask(self, timeout: float) -> None:
        """Move the archive's next records to the backlog; after the last, go on with Kafka."""
        partition, wanted = self._past[0]
        try:
            messages, after = self._archive.records(partition, wanted)
        except httpx.HTTPError as error:
            if self._limiter.allows():
                log.warning("waiting for the archive: %s", error)
            time.sleep(timeout)
            return
        self._backlog.extend(messages)
        if after > wanted.start and after < wanted.stop:
            self._past[0] = partition, range(after, wanted.stop)
            return
        self._past.popleft()
        start = StartOffset(wanted.stop, expired=wanted.stop - after)
        super().assign({partition: start}, {partition: max(wanted.stop, self._limits.get(partition, 0))})

    def _resume_at_oldest(self, partition: TopicPartition) -> None:
        """Let the archive give what Kafka has deleted meanwhile, of what surveys send."""
        if not partition[0].startswith(ALERTS):
            super()._resume_at_oldest(partition)
            return
        low = self.watermarks([partition])[partition].low
        self.unassign(partition)
        self._past.append((partition, range(self._next.pop(partition), low)))
