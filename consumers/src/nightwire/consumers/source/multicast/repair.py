"""What a LAN lost is fetched from Kafka by offset, in a thread of its own."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import NamedTuple

from confluent_kafka import KafkaException, Message

from nightwire.core.kafka import MissingError, RecordFetcher, TopicPartition

SHORT = 2.0
"""Longest wait for what a stream lacks: then it is read from Kafka. [s]"""
NEAR = 4
"""Gaps with no more offsets between them are fetched as one."""


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

    def __init__(self, repair: RecordFetcher) -> None:
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
