"""A process that reads alerts, does with them what it was told, and says when.

``python -m nightwire.benchmarks.workers.alerts.reader '{"bootstrap": …}'`` prints a line when it is
in place, and one with its `ReadStats` at the end.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast

import confluent_kafka
from confluent_kafka import KafkaException, Message
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from nightwire.benchmarks import RunError
from nightwire.benchmarks.resources.own_traffic import own_traffic
from nightwire.benchmarks.workers.worker import emit, first_order, input_ended
from nightwire.core.kafka import (
    END,
    FIRST,
    TRANSIENT_ERRORS,
    TopicPartition,
    admin,
    consumer,
    list_offsets,
    retry_while_unavailable,
)
from nightwire.schemas import Codec, DecodeError, sim_alert_schema
from nightwire.schemas.wire import unframe

BATCH = 256
"""Most messages handled at once."""
PATIENCE = 60.0
"""Longest wait for the next message before the run is given up. [s]"""
COLUMNS = (
    *("diaSourceId", "visit", "detector", "diaObjectId", "ssObjectId", "midpointMjdTai", "band"),
    *("ra", "raErr", "dec", "decErr", "x", "y", "snr", "reliability"),
    *("psfFlux", "psfFluxErr", "apFlux", "apFluxErr", "scienceFlux"),
)
TWENTY_COLUMNS = [f"diaSource.{name}" for name in COLUMNS]
"""The columns that a broker typically wants first."""
FEW = 20
MANY: dict[str, Any] = {"fetch_min_bytes": 1 << 20, "fetch_wait_max_ms": 25}
"""How more than a FEW topics are asked for: each request names all of them, and an answer to each
single alert would keep a core of Kafka busy.  Arrivals are noted so much later at most. [ms]"""

Handle = Callable[[Sequence[Message]], None]
"""What is done with a batch of messages."""


@dataclass
class ReadStats:
    """What was read.

    Attributes:
        records: How many.
        left: How many were in the topics, unread, at the end.
        size: Of all that was read. [byte]
        cpu: CPU time of the process from when it was in place. [s]
        began: When reading began; [s, monotonic]
        first: when the first batch was there; and
        last: when the last was handled.
        decoding: Time in the handling of batches. [s]
        laps: When each visit was through [s], and the resident memory at that moment [byte].
        arrivals: Topic, partition, offset and time [s] of each message.
    """

    records: int = 0
    left: int = 0
    size: int = 0
    cpu: float = 0.0
    began: float = 0.0
    first: float = 0.0
    last: float = 0.0
    decoding: float = 0.0
    laps: list[tuple[float, int]] = field(default_factory=list)
    arrivals: list[tuple[str, int, int, float]] = field(default_factory=list)


def is_record(message: Message) -> bool:
    """Return whether *message* is a record, not the report of an error that passes by itself.

    Raises:
        KafkaException: It reports an error that does not.
    """
    error = message.error()
    if error is not None and error.code() not in TRANSIENT_ERRORS:
        raise KafkaException(error)
    return error is None


def bodies(messages: Sequence[Message]) -> list[memoryview]:
    """Return the Avro bodies of *messages*, as views into them."""
    return [unframe(memoryview(message.value() or b""))[1] for message in messages]


def handler(work: str, codec: Codec, columns: Sequence[str] = TWENTY_COLUMNS) -> Handle:
    """Return what is done with messages: ``bytes`` (nothing), ``dicts`` or ``columns``."""

    def to_dicts(messages: Sequence[Message]) -> None:
        for body in bodies(messages):
            codec.decode(body)

    def to_columns(messages: Sequence[Message]) -> None:
        codec.columns(bodies(messages), columns)

    handle: Handle = {"bytes": lambda _: None, "dicts": to_dicts, "columns": to_columns}[work]
    handle([])  # imports what it needs, before the clock starts
    with suppress(DecodeError):
        codec.decode(b"")  # so does what is compiled when it is first used
    return handle


class TopicReader:
    """Reads topics by assignment, from where they end when it starts; a context manager.

    Args:
        bootstrap: Kafka's address.
        topics: Their names.
        handle: Done with each batch.
        note: Whether to note the arrival of each message.
        whole: Read from the beginning.
        lap: Records after which time and memory are noted, again and again; 0 = never.
    """

    def __init__(
        self,
        bootstrap: str,
        topics: Sequence[str],
        handle: Handle,
        *,
        note: bool = False,
        whole: bool = False,
        lap: int = 0,
    ) -> None:
        self._client = consumer(bootstrap, **(MANY if len(topics) > FEW else {}))
        self._admin, self._handle, self._note, self._lap = admin(bootstrap), handle, note, lap
        self.stats = ReadStats()
        known = self._client.list_topics(timeout=10).topics
        self._partitions = [(topic, part) for topic in topics for part in known[topic].partitions]
        self._next = self._offsets(FIRST if whole else END)
        self._client.assign(
            [confluent_kafka.TopicPartition(*part, offset) for part, offset in self._next.items()]
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._client.close()

    def read(self, count: int) -> ReadStats:
        """Read *count* records.

        Raises:
            KafkaException: Kafka reports an error.
            RunError: Nothing came for too long.
        """
        return self.read_until(lambda: self.stats.records >= count)

    def read_until(self, enough: Callable[[], bool], *, patience: float = PATIENCE) -> ReadStats:
        """Read until it is *enough*.

        Raises:
            KafkaException: Kafka reports an error.
            RunError: Nothing came for longer than *patience* [s].
        """
        cpu = time.process_time()
        self.stats.began = last = time.monotonic()
        while not enough():
            if messages := self._batch():
                last = time.monotonic()
                self._take(messages)
            elif time.monotonic() - last > patience:
                raise RunError(f"nothing came for {patience:g} s, after {self.stats.records} records")
        self.stats.cpu = time.process_time() - cpu
        return self.stats

    def ends(self) -> dict[TopicPartition, int]:
        """Return where the topics' partitions end now."""
        return self._offsets(END)

    def left(self, ends: Mapping[TopicPartition, int]) -> int:
        """Return how many records before *ends* are unread."""
        return sum(max(0, end - self._next[spot]) for spot, end in ends.items())

    def _batch(self) -> list[Message]:
        message = self._client.poll(0.1)
        if message is None:
            return []
        # a large `consume` alone would wait for its last message while the fetcher is stalled
        return [one for one in (message, *self._client.consume(BATCH - 1, 0)) if is_record(one)]

    def _take(self, messages: list[Message]) -> None:
        now, stats = time.monotonic(), self.stats
        for message in messages:
            topic, part, offset = str(message.topic()), message.partition() or 0, message.offset() or 0
            self._next[topic, part] = offset + 1
            stats.size += len(message)
            if self._note:
                stats.arrivals.append((topic, *source_of(message, (part, offset)), now))
        self._handle(messages)
        stats.first = stats.first or now
        stats.records += len(messages)
        stats.last = time.monotonic()
        stats.decoding += stats.last - now
        while self._lap and stats.records >= self._lap * (len(stats.laps) + 1):
            stats.laps.append((stats.last, memory()))

    def _offsets(self, which: OffsetSpec) -> dict[TopicPartition, int]:
        """Return where partitions begin or end; a new topic may not be known yet."""
        found = retry_while_unavailable(
            lambda: list_offsets(self._admin, self._partitions, which, timeout=PATIENCE), patience=PATIENCE
        )
        return {partition: info.offset for partition, info in found.items()}


def source_of(message: Message, place: tuple[int, int]) -> tuple[int, int]:
    """Return a filter's copy's partition and offset among all alerts; else *place*."""
    headers = dict(cast("list[tuple[str, bytes]]", message.headers() or []))
    if "offset" in headers and "partition" in headers:
        return int(headers["partition"]), int(headers["offset"])
    return place


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Do what *order* says; return `ReadStats`, with what was ``sent`` and ``received``. [byte]

    *order* has ``bootstrap``, ``topics``, ``work``; and ``expect`` (read so many records), or
    ``note`` (note each arrival, and read on until standard input is closed and everything is
    read).  With ``whole`` it reads from the beginning; with ``lap`` it notes time and memory after
    each so many records.  The work ``tables`` goes through our own `AlertReader`, as a consumer
    would.
    """
    if order["work"] == "tables":
        return vars(read_tables(order["bootstrap"], order["topics"], order["expect"]))
    options = {name: order[name] for name in ("note", "whole", "lap") if name in order}
    handle = handler(order["work"], Codec(sim_alert_schema()))
    with TopicReader(order["bootstrap"], order["topics"], handle, **options) as reader:
        emit({"ready": True})
        if order.get("note"):  # the engine may take its time
            stats = reader.read_until(_all_read(reader), patience=float("inf"))
        else:
            stats = reader.read(order["expect"])
        stats.left = reader.left(reader.ends())
        return vars(stats) | vars(own_traffic())


def read_tables(bootstrap: str, topics: Sequence[str], expect: int) -> ReadStats:
    """Read the first *expect* alerts of *topics* as tables of twenty columns."""
    from nightwire.consumers import AlertReader

    stats = ReadStats()
    with AlertReader(topics, bootstrap=bootstrap, start="beginning", limit=expect, survey="sim") as reader:
        # imports what it needs, before the clock starts
        Codec(sim_alert_schema()).columns([], TWENTY_COLUMNS)
        emit({"ready": True})
        stats.began = time.monotonic()
        for table in reader.tables(TWENTY_COLUMNS, size=BATCH):
            stats.last = time.monotonic()
            stats.first = stats.first or stats.last
            stats.records += table.num_rows
    return stats


def _all_read(reader: TopicReader) -> Callable[[], bool]:
    """Return what is true when all is read that was there when standard input was closed."""
    asked, ends = input_ended(), dict[TopicPartition, int]()

    def enough() -> bool:
        if asked.is_set() and not ends:
            ends.update(reader.ends())
        return asked.is_set() and not reader.left(ends)

    return enough


def memory() -> int:
    """Return the resident memory of this process. [byte]"""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    emit(run(first_order()))
