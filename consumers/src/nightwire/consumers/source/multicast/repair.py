"""Records by offset: what a LAN lost is fetched from Kafka, in a millisecond or two."""

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.kafka import TRANSIENT_ERRORS, TopicPartition, consumer

PATIENCE = 5.0
"""Longest wait for a record. [s]"""
SHORT = 1.0
"""Longest wait for what a stream lacks: then it is read from Kafka. [s]"""
NEAR = 4
"""Gaps with no more offsets between them are fetched as one."""
AHEAD = 1_000
"""A batch that was fetched is looked through for what lies so far behind what was wanted of it."""
SMALL: Mapping[str, Any] = {
    "fetch_message_max_bytes": 4096,
    "queued_min_messages": 1,
    "fetch_queue_backoff_ms": 1,
    "fetch_wait_max_ms": 20,
}
"""A fetch brings the batch that is asked for, and nothing is fetched ahead."""


class MissingError(Exception):
    """Records that were announced cannot be had from Kafka."""


class Repair:
    """Fetches records.

    It reads one partition at a time, and is never paused: librdkafka's seek after a pause takes a
    second, and others that it were assigned would send what nobody wants.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
    """

    def __init__(self, bootstrap: str) -> None:
        self._consumer: Consumer = consumer(bootstrap, enable_partition_eof=True, **SMALL)
        self._assigned: TopicPartition | None = None
        self._at = 0  # the offset after the record that was seen last

    def prepare(self, partition: TopicPartition) -> None:
        """Connect to where *partition* lies, before something is wanted: that takes 0.3 s."""
        if self._assigned is None:
            self._consumer.assign([TopicPartitionOffset(*partition, OFFSET_END)])
            self._assigned = partition

    def fetch(self, partition: TopicPartition, wanted: range, patience: float = PATIENCE) -> list[Message]:
        """Return the records of *partition* in *wanted*; offsets without a record are no error.

        Raises:
            MissingError: Kafka does not have them, or does not answer.
        """
        first = self._go_to(partition, wanted.start)
        found: list[Message] = []
        deadline = time.monotonic() + patience
        while (left := deadline - time.monotonic()) > 0:
            message, first = first or self._consumer.poll(min(0.5, left)), None
            if message is None or message.partition() != partition[1] or message.topic() != partition[0]:
                continue
            offset = message.offset() or 0
            if (error := message.error()) is not None:
                if self._is_over(error, offset, wanted):
                    return found
                continue
            self._at = offset + 1
            if offset >= wanted.start:
                found += [message] if offset in wanted else []
                if offset >= wanted.stop - 1:
                    return found
        raise MissingError(
            f"{partition[0]}[{partition[1]}]: no answer about {wanted.start} to {wanted.stop - 1}"
        )

    def one(self, partition: TopicPartition, offset: int) -> Message:
        """Return the record at *offset*.

        Raises:
            MissingError: Kafka does not have it, or does not answer.
        """
        if not (found := self.fetch(partition, range(offset, offset + 1))):
            raise MissingError(f"{partition[0]}[{partition[1]}]@{offset} is not in Kafka any more")
        return found[0]

    def close(self) -> None:
        """Leave Kafka."""
        self._consumer.close()

    def _go_to(self, partition: TopicPartition, offset: int) -> Message | None:
        """Seek *offset*; return the record there or behind, where it came with the last batch."""
        while self._assigned == partition and self._at <= offset < self._at + AHEAD:
            message = self._consumer.poll(0)
            if message is None or message.error() is not None:
                break
            self._at = (message.offset() or 0) + 1
            if self._at > offset:
                return message
        self._at, place = offset, TopicPartitionOffset(*partition, offset)
        try:
            if self._assigned == partition:
                self._consumer.seek(place)
                return None
        except KafkaException:  # just assigned, or without a leader: assigning does it
            pass
        self._consumer.assign([place])
        self._assigned = partition
        return None

    @staticmethod
    def _is_over(error: KafkaError, offset: int, wanted: range) -> bool:
        if error.code() == KafkaError._PARTITION_EOF:
            return offset >= wanted.stop
        if error.code() in TRANSIENT_ERRORS:
            return False
        raise MissingError(error.str())


class Answer(NamedTuple):
    """What Kafka has of a partition's gaps; *why* it could not be had, else None."""

    partition: TopicPartition
    gaps: Sequence[range]
    messages: Sequence[Message] = ()
    why: str | None = None


class Repairs:
    """Repairs in a thread of their own: who asks goes on meanwhile.

    Args:
        repair: Fetches; it is the thread's alone, and closed by it.
    """

    def __init__(self, repair: Repair) -> None:
        self._repair = repair
        self._asked = SimpleQueue[tuple[TopicPartition, Sequence[range]] | None]()
        self._answers = SimpleQueue[Answer]()
        self._hears, self._tells = os.pipe()
        self._thread = threading.Thread(target=self._forever, name="repairs", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Return what can be read when there are answers."""
        return self._hears

    def ask(self, partition: TopicPartition, gaps: Sequence[range]) -> None:
        """Ask for what lies in *gaps*, ascending; without any, connect to where *partition* is."""
        self._asked.put((partition, gaps))

    def answers(self) -> Iterator[Answer]:
        """Yield the answers that are there."""
        with suppress(Empty):
            while True:
                yield self._answers.get_nowait()
                os.read(self._hears, 1)

    def close(self) -> None:
        """End the thread; it leaves Kafka."""
        self._asked.put(None)
        self._thread.join(2 * SHORT)

    def _forever(self) -> None:
        while (asked := self._asked.get()) is not None:
            partition, gaps = asked
            if gaps:
                self._answers.put(self._answered(partition, gaps))
                os.write(self._tells, b"!")
            else:
                self._repair.prepare(partition)
        self._repair.close()
        os.close(self._tells)
        os.close(self._hears)

    def _answered(self, partition: TopicPartition, gaps: Sequence[range]) -> Answer:
        found, deadline = list[Message](), time.monotonic() + SHORT
        try:
            for span in spans(gaps):
                found += self._repair.fetch(partition, span, deadline - time.monotonic())
        except (MissingError, KafkaException) as error:
            return Answer(partition, gaps, why=str(error))
        return Answer(partition, gaps, found)


def spans(gaps: Sequence[range]) -> list[range]:
    """Return ascending *gaps*, those together that lie near each other."""
    found = [gaps[0]]
    for gap in gaps[1:]:
        near = gap.start - found[-1].stop <= NEAR
        found[-1:] = [range(found[-1].start, gap.stop)] if near else [found[-1], gap]
    return found
