"""What a reader receives in the process that writes it."""

import time
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import Any

from confluent_kafka import Message

from nightwire.consumers.source.multicast.reorder_buffer import ReorderBuffer
from nightwire.core.channels import LOCAL_DELIVERY, RecordQueue
from nightwire.core.kafka import TopicPartition

AT_ONCE = 2048
"""Most records that are taken at once."""
PATIENCE = 0.05
"""How long a record that lacks is waited for: another thread may have written it. [s]"""
ANSWERS = 0.005
"""Longest wait while a repair is under way. [s]"""
TICK = 0.002
"""Longest wait for Kafka, while there may be something in memory. [s]"""


class InProcessListener:
    """Receives what this process writes to *topics* of the Kafka at *bootstrap*.

    Attributes:
        partitions: What was received, by partition; whoever reads them keeps it.
        dropped: Nothing: all that this process writes is believed.
    """

    name, patience, tick = "memory", PATIENCE, TICK
    dropped: Mapping[str, int] = MappingProxyType({})

    def __init__(self, bootstrap: str, topics: Sequence[str]) -> None:
        self._bootstrap, self._topics = bootstrap, topics
        self.partitions: dict[TopicPartition, ReorderBuffer] = {}
        self._queue = RecordQueue()

    def look(self, *, wait: bool = False) -> None:
        """Begin to listen; there is nothing to *wait* for."""
        LOCAL_DELIVERY.attach(self._bootstrap, self._topics, self._queue)

    def listen(self, timeout: float, answers: Sequence[Any] = ()) -> None:
        """Take what was written, or what is first within *timeout* [s]; *answers* are awaited."""
        taken = self._queue.take(AT_ONCE, min(timeout, ANSWERS) if answers else timeout)
        for place, messages in groupby(taken, _place):
            if (buffer := self.partitions.get(place)) is not None:
                _add_known(buffer, [*messages])

    def end_of(self, _partition: TopicPartition, _known: int) -> None:
        """Say that silence tells enough: Kafka has what is written later by others."""

    def close(self) -> None:
        """Listen no more."""
        LOCAL_DELIVERY.detach(self._queue)


def _place(message: Message) -> TopicPartition:
    return str(message.topic()), message.partition() or 0


def _add_known(buffer: ReorderBuffer, messages: Sequence[Message]) -> None:
    """Note records of one partition, each run of offsets at once."""
    now, first = time.monotonic(), 0
    offsets = [one.offset() or 0 for one in messages]
    ends = [at for at, (one, two) in enumerate(pairwise(offsets), 1) if two != one + 1]
    for end in (*ends, len(offsets)):
        buffer.add_known(range(offsets[first], offsets[end - 1] + 1), messages[first:end], now)
        first = end
