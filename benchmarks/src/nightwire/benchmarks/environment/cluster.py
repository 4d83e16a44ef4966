"""The Kafka that a scenario runs against, and topics of its own on it."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property

import confluent_kafka
import psutil

from nightwire.benchmarks import Closeable, Context, Experiment
from nightwire.core.kafka import TopicPartition, admin, ensure_topics
from nightwire.core.stack import Broker, free_port
from nightwire.schemas import topics
from nightwire.schemas.topics import TopicSettings

PARTITIONS = 4
RETENTION = {"log.retention.check.interval.ms": 1000}
"""What a topic holds beyond its retention is what comes in between two checks."""


class Cluster(Closeable):
    """Kafka, started when it is first asked for where none was named; `close` ends it.

    Args:
        context: Says where, and whether there is one already.
        heap: Of a Kafka that is started.
    """

    def __init__(self, context: Context, heap: str = "768m") -> None:
        self._context, self._heap = context, heap
        self._broker: Broker | None = None
        self._process: psutil.Process | None = None

    @cached_property
    def bootstrap(self) -> str:
        """Kafka's address.

        Raises:
            BrokerError: It did not start.
        """
        return self._context.bootstrap or self._start()

    @property
    def own(self) -> bool:
        """Whether Kafka is ours, so that all that is in it is of this benchmark."""
        return self._context.bootstrap is None

    @contextmanager
    def topic(
        self, purpose: str, *, partitions: int = PARTITIONS, config: Mapping[str, str] | None = None
    ) -> Iterator[str]:
        """Yield a new topic with the settings of alerts' topics; it is deleted afterwards."""
        name = f"bench.{purpose}.{secrets.token_hex(4)}"
        settings = {"max.message.bytes": str(topics.MAX_MESSAGE), "file.delete.delay.ms": "1000"}
        ensure_topics(self.bootstrap, [TopicSettings(name, partitions, settings | dict(config or {}))])
        try:
            yield name
        finally:
            client = admin(self.bootstrap)  # it must outlive its futures
            for future in client.delete_topics([name]).values():
                future.result(30)

    def delete_before(self, ends: Mapping[TopicPartition, int]) -> None:
        """Let Kafka delete the records before *ends*: the disk is bounded."""
        client = admin(self.bootstrap)  # it must outlive its futures
        offsets = [confluent_kafka.TopicPartition(*partition, end) for partition, end in ends.items()]
        for future in client.delete_records(offsets).values():
            future.result(30)

    def stored(self, topic: str) -> int | None:
        """Return what the records of *topic* take on disk [byte]; None where Kafka is not ours."""
        if self._process is None:
            return None
        total = 0
        for segment in (self._context.folder / "kafka" / "data").glob(f"{topic}-*/*.log"):
            with suppress(FileNotFoundError):  # retention was quicker
                total += segment.stat().st_size
        return total

    def memory(self) -> int | None:
        """Return Kafka's resident memory without file pages [byte]; None where it is not ours."""
        return None if self._process is None else int(self._process.memory_info().rss)

    def cpu(self) -> float:
        """Return the CPU time that Kafka took so far [s]; 0 where it is not ours."""
        times = None if self._process is None else self._process.cpu_times()
        return 0.0 if times is None else float(times.user + times.system)

    def kill_broker(self) -> None:
        """Kill Kafka with -9, where it is ours."""
        if self._broker is not None:
            self._broker.kill()

    def start_broker(self) -> None:
        """Start Kafka on the data that it has, where it is ours."""
        if self._broker is None:
            return
        before = {child.pid for child in psutil.Process().children()}
        self._broker.start()
        for child in psutil.Process().children():
            if child.pid not in before:
                self._process = child
                self._context.role(child.pid, "kafka")

    def _start(self) -> str:
        self._context.say("starting Kafka")
        self._broker = Broker(
            self._context.folder / "kafka",
            port=free_port(),
            controller=free_port(),
            heap=self._heap,
            properties=RETENTION,
        )
        self.exits.callback(self._broker.stop)
        self.start_broker()
        return self._broker.bootstrap


class KafkaExperiment(Experiment):
    """An experiment on a Kafka.

    Args:
        context: What the harness gives.
        cluster: Kafka.
    """

    def __init__(self, context: Context, cluster: Cluster) -> None:
        self._context, self._cluster = context, cluster
