"""The ear of a reader in the process that writes what it reads."""

import time
from collections import Counter
from collections.abc import Callable, Sequence

from nightwire.consumers.source.multicast.in_order import InOrder
from nightwire.core.channels import WRITTEN_HERE, Mailbox
from nightwire.core.datagrams import Channel
from nightwire.core.kafka import TopicPartition

AT_ONCE = 2048
"""Most records that are taken at once."""
PATIENCE = 0.05
"""How long a record that lacks is waited for: another thread may have written it. [s]"""
TICK = 0.002
"""Longest wait for Kafka, while there may be something in memory. [s]"""
PAUSE = 5.0
"""A partition that others write to, too, is read from Kafka for so long. [s]"""


class InProcessListener:
    """Hears what this process writes to *topics* of the Kafka at *bootstrap*.

    Attributes:
        partitions: What was heard, by partition; whoever reads them keeps it.
        dropped: Records that were not needed.
    """

    name, patience, tick = "memory", PATIENCE, TICK

    def __init__(self, bootstrap: str, topics: Sequence[str]) -> None:
        self._bootstrap, self._topics = bootstrap, topics
        self.partitions: dict[TopicPartition, InOrder] = {}
        self.dropped: Counter[str] = Counter()
        self.on_channel: Callable[[Channel], None] = lambda _channel: None  # of multicast alone
        self._mailbox = Mailbox()
        self._again: dict[TopicPartition, float] = {}  # when others' partitions are heard again

    def look(self) -> None:
        """Begin to listen."""
        WRITTEN_HERE.listen(self._bootstrap, self._topics, self._mailbox)

    def listen(self, timeout: float) -> None:
        """Take what was written, or what is first within *timeout* [s]."""
        now = 0.0
        for message in self._mailbox.take(AT_ONCE, timeout):
            now = now or time.monotonic()
            place, offset = (str(message.topic()), message.partition() or 0), message.offset() or 0
            heard = self.partitions.get(place)
            if heard is not None and now >= self._again.get(place, 0.0):
                reason = heard.vouch(range(offset, offset + 1), message, now)
                if reason is not None:
                    self.dropped[reason] += 1
        self._leave_to_kafka()

    def end_of(self, _partition: TopicPartition) -> None:
        """Say that silence tells enough: Kafka has what is written later by others."""

    def close(self) -> None:
        """Listen no more."""
        WRITTEN_HERE.leave(self._mailbox)

    def _leave_to_kafka(self) -> None:
        """Leave partitions to Kafka for a while in which others' records lie between ours."""
        now = time.monotonic()
        for place, heard in self.partitions.items():
            if heard.overdue(now):
                heard.reset()
                self._again[place] = now + PAUSE
