"""The second process: reads what was sent, does with it what it was told, and says when.

``python -m nightwire.benchmarks.workers.alerts.reader '{"bootstrap": …}'`` prints one JSON line when it is in place,
and one with its findings at the end.  Its clock is the machine's monotonic one, so its times can be compared
with those of the process that started it.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from confluent_kafka import Consumer, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from nightwire.benchmarks.model.scenario import RunError
from nightwire.benchmarks.resources.own_traffic import own_traffic
from nightwire.benchmarks.workers.worker import emit
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


@dataclass
class ReadStats:
    """What was read: times on the monotonic clock [s], sizes [byte].

    *cpu* is the process's time from when it was in place [s]; *left* counts what was in the topics, unread,
    at the end; *laps* has when each visit was through, and the memory (RSS) that was in use then.
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


Handle = Callable[[Sequence[Message]], None]


def is_record(message: Message) -> bool:
    """Whether *message* is one, and not word of an error that passes by itself.

    Raises:
        KafkaException: It is word of an error that does not.
    """
    error = message.error()
    if error is not None and error.code() not in TRANSIENT_ERRORS:
        raise KafkaException(error)
    return error is None


def bodies(messages: Sequence[Message]) -> list[memoryview]:
    """Return the Avro bodies of *messages*, as views into them."""
    return [unframe(memoryview(message.value() or b""))[1] for message in messages]


def work_of(name: str) -> Handle:
    """Return what is done with messages: ``bytes`` (nothing), ``dicts`` or ``columns``."""
    codec = Codec(sim_alert_schema())

    def to_dicts(messages: Sequence[Message]) -> None:
        for body in bodies(messages):
            codec.decode(body)

    def to_columns(messages: Sequence[Message]) -> None:
        codec.columns(bodies(messages), TWENTY_COLUMNS)

    chosen: Handle = {"bytes": lambda _messages: None, "dicts": to_dicts, "columns": to_columns}[name]
    chosen([])  # imports what it needs, before the clock starts
    with suppress(DecodeError):
        codec.decode(b"")  # so does what is compiled when it is first used
    return chosen


FEW = 20
MANY: dict[str, Any] = {"fetch_min_bytes": 1 << 20, "fetch_wait_max_ms": 25}
"""How more than a FEW topics are asked for: each request names all of them, and an answer to each single
alert would keep a core of Kafka busy.  Arrivals are noted so much later at most. [ms]"""


class TopicReader:
    """Reads topics by assignment, from where they end when it starts.

    Args:
        client: A consumer.
        asker: Asked where topics begin and end.
        topics: Their names.
        work: Done with each batch.
        note: Whether to note the arrival of each message.
        whole: Read from the beginning.
        lap: Records after which time and memory are noted, again and again; 0 = never.
    """

    def __init__(
        self,
        client: Consumer,
        asker: AdminClient,
        topics: Sequence[str],
        work: Handle,
        *,
        note: bool = False,
        whole: bool = False,
        lap: int = 0,
    ) -> None:
        self._client, self._asker, self._work, self._note, self._lap = client, asker, work, note, lap
        self.findings = ReadStats()
        known = client.list_topics(timeout=10).topics
        self._spots = [(topic, part) for topic in topics for part in known[topic].partitions]
        self._next = self._listed(FIRST if whole else END)
        client.assign([TopicPartitionOffset(*spot, offset) for spot, offset in self._next.items()])

    def read(self, enough: Callable[[], bool], *, patience: float = PATIENCE) -> None:
        """Read until it is *enough*.

        Raises:
            KafkaException: Kafka reports an error.
            RunError: Nothing came for longer than *patience* [s].
        """
        self.findings.began = heard = time.monotonic()
        while not enough():
            if messages := self._batch():
                heard = time.monotonic()
                self._take(messages)
            elif time.monotonic() - heard > patience:
                raise RunError(f"nothing came for {patience:g} s, after {self.findings.records} records")

    def ends(self) -> dict[tuple[str, int], int]:
        """Return where the topics' partitions end now."""
        return self._listed(END)

    def left(self, ends: Mapping[tuple[str, int], int]) -> int:
        """Return how many records before *ends* are unread."""
        return sum(max(0, end - self._next[spot]) for spot, end in ends.items())

    def _batch(self) -> list[Message]:
        message = self._client.poll(0.1)
        if message is None:
            return []
        # a large `consume` alone would wait for its last message while the fetcher is stalled
        return [one for one in (message, *self._client.consume(BATCH - 1, 0)) if is_record(one)]

    def _take(self, messages: list[Message]) -> None:
        now = time.monotonic()
        for message in messages:
            topic, part, offset = str(message.topic()), message.partition() or 0, message.offset() or 0
            self._next[topic, part] = offset + 1
            self.findings.size += len(message)
            if self._note:
                self._arrived(message, topic, (part, offset), now)
        self._work(messages)
        done = self.findings
        done.first = done.first or now
        done.records += len(messages)
        done.last = time.monotonic()
        done.decoding += done.last - now
        while self._lap and done.records >= self._lap * (len(done.laps) + 1):
            done.laps.append((done.last, memory()))

    def _arrived(self, message: Message, topic: str, spot: tuple[int, int], now: float) -> None:
        """Note the arrival under the message's place in the topic of all alerts."""
        headers = dict(cast("list[tuple[str, bytes]]", message.headers() or []))
        if "offset" in headers and "partition" in headers:  # a filter's copy says where it came from
            spot = (int(headers["partition"]), int(headers["offset"]))
        self.findings.arrivals.append((topic, *spot, now))

    def _listed(self, which: OffsetSpec) -> dict[TopicPartition, int]:
        """Return where partitions begin or end; of a topic that was just made no broker may know yet."""
        found = retry_while_unavailable(
            lambda: list_offsets(self._asker, self._spots, which, timeout=PATIENCE), patience=PATIENCE
        )
        return {spot: info.offset for spot, info in found.items()}


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Do what *order* says, and return the findings, with what was ``sent`` and ``received``. [byte]

    *order* has ``bootstrap``, ``topics``, ``work_of``; and ``expect`` (read so many records), or ``note`` (note
    each arrival, and read on until standard input is closed and everything is read).  With ``whole`` it reads
    from the beginning; with ``lap`` it notes time and memory after each so many records.  The work ``tables``
    goes through our own `AlertReader`, as a consumer would.
    """
    if order["work"] == "tables":
        return vars(read_tables(order["bootstrap"], order["topics"], order["expect"]))
    client = consumer(order["bootstrap"], **(MANY if len(order["topics"]) > FEW else {}))
    note = bool(order.get("note"))
    try:
        habits = {name: order[name] for name in ("note", "whole", "lap") if name in order}
        reader = TopicReader(
            client, admin(order["bootstrap"]), order["topics"], work_of(order["work"]), **habits
        )
        emit({"ready": True})
        began = time.process_time()
        if note:
            reader.read(_until_asked(reader), patience=float("inf"))  # the engine may take its time
        else:
            reader.read(lambda: reader.findings.records >= order["expect"])
        reader.findings.cpu = time.process_time() - began
        reader.findings.left = reader.left(reader.ends())
        return vars(reader.findings) | vars(own_traffic())
    finally:
        client.close()


def read_tables(bootstrap: str, topics: Sequence[str], expect: int) -> ReadStats:
    """Read the first *expect* alerts of *topics* as tables of twenty columns."""
    from nightwire.consumers import AlertReader

    done = ReadStats()
    with AlertReader(topics, bootstrap=bootstrap, start="beginning", limit=expect, survey="sim") as reader:
        Codec(sim_alert_schema()).columns(
            [], TWENTY_COLUMNS
        )  # imports what it needs, before the clock starts
        emit({"ready": True})
        done.began = time.monotonic()
        for table in reader.tables(TWENTY_COLUMNS, size=BATCH):
            done.last = time.monotonic()
            done.first = done.first or done.last
            done.records += table.num_rows
    return done


def _until_asked(reader: TopicReader) -> Callable[[], bool]:
    """Return what is true when all is read that was there when standard input was closed."""
    asked, ends = threading.Event(), dict[tuple[str, int], int]()

    def listen() -> None:
        sys.stdin.read()
        asked.set()

    def enough() -> bool:
        if asked.is_set() and not ends:
            ends.update(reader.ends())
        return asked.is_set() and not reader.left(ends)

    threading.Thread(target=listen, daemon=True).start()
    return enough


def memory() -> int:
    """Return the resident memory of this process. [byte]"""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    emit(run(json.loads(sys.argv[1])))
