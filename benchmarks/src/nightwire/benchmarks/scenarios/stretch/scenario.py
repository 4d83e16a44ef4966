"""The scenario `stretch`: its size, its figures, and what they have to show."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from nightwire.benchmarks import Context, Experiment, Figure, Needs, Outcome, Scenario, Size
from nightwire.benchmarks.environment.alert_pool import (
    ON_DISK,
    POOL,
    Alert,
    ReadyMessage,
    make_pool,
    patched,
    pool_memory,
    ready_messages,
)
from nightwire.benchmarks.environment.cluster import PARTITIONS, Cluster
from nightwire.benchmarks.model.sample import Figures, Kind, Sample
from nightwire.benchmarks.workers.alerts.feed import RawProducer, alert_writer, cycled
from nightwire.benchmarks.workers.alerts.reader import memory
from nightwire.benchmarks.workers.client import reader_process

VISITS = 3
KEPT = 0.8
"""Share of a visit that retention keeps; a check every second, and open segments, come on top."""
SEGMENT = 64
"""A visit fills so many segments in each partition."""
SMALLEST = 1 << 20
"""Kafka's smallest segment that is worth a file. [byte]"""
POLL = 0.5
"""Time between two looks at the topic's disk. [s]"""


class ThreeVisits(Experiment):
    """Dictionaries → Kafka → twenty columns, three visits; against ready-made bytes."""

    name = "three"

    def __init__(
        self, context: Context, cluster: Cluster, pool: list[Alert], ready: list[ReadyMessage]
    ) -> None:
        self._context, self._cluster = context, cluster
        self._pool, self._ready = pool, ready
        self._visit_bytes = 0

    def prepare(self) -> None:
        """Find out what one visit takes on the disk."""
        sample = min(len(self._ready), self._context.size.alerts)
        with self._cluster.topic("sample") as topic:
            RawProducer(self._cluster.bootstrap, topic).send_all(cycled(self._ready, sample))
            size = self._cluster.stored(topic) or sum(len(one.value) for one in self._ready[:sample])
        self._visit_bytes = int(size / sample * self._context.size.alerts)

    def run_once(self, kind: Kind) -> Figures:
        """Move three visits."""
        config = bounds(self._visit_bytes)
        with self._cluster.topic("three", config=config) as topic, self._disk(topic) as most:
            return self._figures(*self._move(kind, topic), max(most))

    def _move(self, kind: Kind, topic: str) -> tuple[list[tuple[float, int]], Mapping[str, Any]]:
        """Return each visit's beginning, our memory at its end, and the reader's stats."""
        count, bootstrap = self._context.size.alerts, self._cluster.bootstrap
        work = "columns" if kind is Kind.SUBJECT else "bytes"
        reading = {"expect": VISITS * count, "lap": count}
        ours: list[tuple[float, int]] = []
        with reader_process(self._context, bootstrap, [topic], work, **reading) as reader:
            send = self._sender(kind, topic)
            for visit in range(VISITS):
                began = time.monotonic()
                send(visit)
                ours.append((began, memory()))
            return ours, reader.findings()

    def _sender(self, kind: Kind, topic: str) -> Callable[[int], None]:
        """Return what sends a visit, by its number from 0."""
        count = self._context.size.alerts
        if kind is Kind.BASELINE:
            raw = RawProducer(self._cluster.bootstrap, topic)
            return lambda visit: raw.send_all(cycled(self._ready, count, visit * count))
        writer, _codec, _client = alert_writer(self._cluster.bootstrap, topic)

        def write(visit: int) -> None:
            number = 2026_0104_00000 + visit
            for alert in patched(self._pool, count, visit=number, first=visit * count):
                writer.write(alert, visit=number)
            writer.flush()

        return write

    def _figures(self, ours: list[tuple[float, int]], found: Mapping[str, Any], most: int) -> Figures:
        laps = found["laps"]
        seconds = [through - began for (began, _), (through, _) in zip(ours, laps, strict=True)]
        figures = {
            "three_visits_slowest_seconds": max(seconds),
            "three_visits_seconds": laps[-1][0] - ours[0][0],
            "producer_rss_growth": ours[-1][1] / ours[0][1],
            "consumer_rss_growth": laps[-1][1] / laps[0][1],
        }
        return figures | ({"topic_disk_visits": most / self._visit_bytes} if most else {})

    @contextmanager
    def _disk(self, topic: str) -> Iterator[list[int]]:
        """Note what *topic* takes on disk in the block; nothing where Kafka is elsewhere."""
        sizes, stop = [0], threading.Event()

        def look() -> None:
            while not stop.wait(POLL):
                sizes.append(self._cluster.stored(topic) or 0)

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield sizes
        finally:
            stop.set()
            thread.join()


def bounds(visit: int) -> dict[str, str]:
    """Return the settings of a topic that keeps less than one visit of *visit* bytes."""
    return {
        "retention.bytes": str(int(visit * KEPT / PARTITIONS)),
        "segment.bytes": str(max(SMALLEST, visit // PARTITIONS // SEGMENT)),
    }


RAW = "ready-made bytes of the same sizes through raw librdkafka"
INTERVAL = 39.0
"""From one visit of LSST to the next, as DMTN-028 has it. [s]"""
PER_ALERT = 0.0012
"""An alert of a pair of runs. [s]  Two shared cores."""


class StretchScenario(Scenario):
    """Three visits of 100,000 alerts, back to back, through a topic that cannot hold two."""

    name = "stretch"
    title = "Three visits of 100,000 alerts in a row"
    measures = (
        "Alerts of real sizes (a pool of 2,000 distinct simulated ones, made before the clock starts; ids, "
        "times and positions are new in each) go from dictionaries through the encoder into Kafka (acks=all, "
        "idempotent, lz4, 4 partitions) and into twenty columns in a second process; three visits, one "
        "right after the other. A visit lasts from its first dictionary to the columns of its last alert. "
        "Retention keeps less than one visit in the topic; a record that was not read fails the run."
    )
    figures = (
        Figure(
            "three_visits_slowest_seconds",
            "s",
            "The slowest of three visits, to twenty columns",
            baseline=RAW,
            headline=True,
        ),
        Figure("three_visits_seconds", "s", "All three of them", baseline=RAW, headline=True),
        Figure(
            "producer_rss_growth",
            "1",
            "The producer's memory after the third visit, over after the first",
            headline=True,
        ),
        Figure(
            "consumer_rss_growth",
            "1",
            "The consumer's memory after the third visit, over after the first",
            headline=True,
        ),
        Figure(
            "topic_disk_visits", "1", "The most that the topic took on the disk, in visits", headline=True
        ),
    )
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=2_000, pairs=3, rate=1.0, profile="quick"),
        "full": Size(alerts=100_000, pairs=3, rate=1.0, profile="full"),
    }

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""
        return Needs(
            disk=VISITS * size.alerts * ON_DISK,
            memory=pool_memory(size.alerts) + 3 * 10**9,
            seconds=15 + size.pairs * VISITS * size.alerts * PER_ALERT,
        )

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Make the pool; return the one experiment."""
        context.say("making the pool of alerts")
        self._size, pool = context.size, make_pool(context.size.alerts)
        cluster = self.closing(Cluster(context))
        return [ThreeVisits(context, cluster, pool, ready_messages(pool))]

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Say how much was moved, and what LSST asks for."""
        alerts = self._size.alerts
        notes = [
            f"{VISITS} visits of {alerts:,} alerts a run, {min(alerts, POOL):,} distinct ones.",
            f"LSST visits the sky every {INTERVAL:g} s.",
        ]
        if alerts < self.standard["full"].alerts:
            notes.append("Reduced: the goal is 100,000 alerts a visit; retention only matters there.")
        return Outcome(notes=notes)
