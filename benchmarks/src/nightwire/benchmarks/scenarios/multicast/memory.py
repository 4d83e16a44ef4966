"""Writer and reader in one process: records from memory, beside the same through Kafka alone.

Each record is handed on when Kafka has acknowledged it: nothing is read that could be lost.
"""

import secrets
import threading
import time
from collections.abc import Iterator

from confluent_kafka import Producer

from nightwire.benchmarks import Better, Experiment, Figure, Figures, Kind, Published, RunError
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.model.statistics import quantile
from nightwire.consumers.source import InProcessListener, MulticastSource, Plan, RecordSource
from nightwire.core.channels import ChannelCopies
from nightwire.core.kafka import RecordFetcher, consumer, ensure_topics, producer
from nightwire.schemas import AlertDecoder, SchemaRegistry
from nightwire.schemas.topics import TopicSettings

SIZE = 100
"""Length of a record. [byte]"""
COUNT = 200_000
"""Records that are written as fast as can be."""
CALM, RATE = 2_000, 1_000.0
"""Records whose delay is measured, and at what rate. [1/s]"""
AT_ONCE = 2_048
PATIENCE = 60.0
"""Longest wait for the last record. [s]"""
MILLI = 1e3
EIDE = "Two Athlons of 2 GHz, 2003: matched and handed on in one process, kept nowhere"


def memory_figures() -> Iterator[Figure]:
    """Yield the figures."""
    yield Figure(
        "memory_per_s", "1/s", "Records of 100 bytes, written and read in one process", Better.HIGHER,
        baseline="the same reader, from Kafka alone", headline=True,
        published=Published(115_000, "Eide et al.", EIDE),
    )  # fmt: skip
    for name, words in (("p50", "median"), ("p99", "99 %")):
        yield Figure(
            f"memory_{name}_ms", "ms", f"From writing to having in one process, 1,000 a second, {words}",
            baseline="the same reader, from Kafka alone",
        )  # fmt: skip


class InProcess(Experiment):
    """Writes and reads in this process."""

    name = "in process"

    def __init__(self, cluster: Cluster) -> None:
        self._bootstrap = cluster.bootstrap

    def run_once(self, kind: Kind) -> Figures:
        """Write all at once, then calmly."""
        began, last, _ = self._carried(kind, COUNT, None)
        _, _, delays = self._carried(kind, CALM, RATE)
        return {
            "memory_per_s": COUNT / (last - began),
            "memory_p50_ms": quantile(delays, 0.5) * MILLI,
            "memory_p99_ms": quantile(delays, 0.99) * MILLI,
        }

    def _carried(self, kind: Kind, count: int, rate: float | None) -> tuple[float, float, list[float]]:
        """Return when the first record was written and the last was had, and all delays. [s]"""
        topic = f"memory-{secrets.token_hex(4)}"
        ensure_topics(self._bootstrap, [TopicSettings(topic, 1)])
        copies = ChannelCopies(self._bootstrap, topic, "sim", None)
        source = self._source(topic, kind)
        source.open()
        copies.start()
        had: list[float] = []
        reader = threading.Thread(target=_read, args=(source, had, count), daemon=True)
        reader.start()
        try:
            written = _written(self._bootstrap, topic, copies, count, rate)
            reader.join(PATIENCE)
        finally:
            copies.close()
        if len(had) != count or source.expired:
            raise RunError(f"{len(had)} of {count} records came")
        source.close()
        return written[0], had[-1], [after - before for before, after in zip(written, had, strict=True)]

    def _source(self, topic: str, kind: Kind) -> RecordSource:
        client = consumer(self._bootstrap, enable_partition_eof=True)
        plan = Plan([topic], start="live")
        if kind is Kind.BASELINE:
            return RecordSource(client, plan)
        listener, decoder = InProcessListener(self._bootstrap, [topic]), AlertDecoder(SchemaRegistry(None))
        return MulticastSource(
            client, plan, listener=listener, repair=RecordFetcher(self._bootstrap), decoder=decoder
        )


def _written(
    bootstrap: str, topic: str, copies: ChannelCopies, count: int, rate: float | None
) -> list[float]:
    """Write so many records; return when each was written."""
    client, value, written = _connected(bootstrap, topic), secrets.token_bytes(SIZE), list[float]()
    began = time.perf_counter()
    for number in range(count):
        if rate is not None:
            client.poll(max(0.0, began + number / rate - time.perf_counter()))
        elif number % AT_ONCE == 0:
            client.poll(0)
        hand_on = copies.after(None, ())
        done = None if hand_on is None else lambda _error, message, take=hand_on: take(message)
        written.append(time.perf_counter())
        _produce(client, topic, value, done)
    if client.flush(PATIENCE):
        raise RunError("Kafka did not take all records")
    return written


def _connected(bootstrap: str, topic: str) -> Producer:
    """Return a producer that knows *topic* and has written, which takes up to a second."""
    client, other = producer(bootstrap, linger_ms=1), f"first-{secrets.token_hex(4)}"
    ensure_topics(bootstrap, [TopicSettings(other, 1)])
    client.produce(other, b"")
    if client.flush(PATIENCE):
        raise RunError("Kafka takes no record")
    client.list_topics(topic, timeout=PATIENCE)
    return client


def _produce(client: object, topic: str, value: bytes, done: object) -> None:
    while True:
        try:
            client.produce(topic, value, on_delivery=done)  # type: ignore[attr-defined]
        except BufferError:
            client.poll(0.01)  # type: ignore[attr-defined]
        else:
            return


def _read(source: RecordSource, had: list[float], count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while len(had) < count and time.monotonic() < deadline:
        now_had = source.take(AT_ONCE, 0.1)
        had += [time.perf_counter()] * len(now_had)
