"""The Kafka that a scenario runs against, and topics of its own on it."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path

import psutil

from nightwire.benchmarks.model.scenario import Context
from nightwire.core.kafka import admin, ensure_topics
from nightwire.core.stack import Broker, free_port
from nightwire.schemas import topics
from nightwire.schemas.topics import TopicSettings

PARTITIONS = 4
RETENTION = {"log.retention.check.interval.ms": 1000}
"""What a topic holds beyond its retention is what comes in between two checks."""


class Cluster:
    """Kafka, started when it is first asked for where none was named; `close` ends it.

    Args:
        context: Says where, and whether there is one already.
    """

    def __init__(self, context: Context) -> None:
        self._context, self._exits = context, ExitStack()
        self._broker: psutil.Process | None = None

    @cached_property
    def bootstrap(self) -> str:
        """Kafka's address.

        Raises:
            BrokerError: It did not start.
        """
        return self._context.bootstrap or self._start()

    @contextmanager
    def topic(
        self, purpose: str, *, partitions: int = PARTITIONS, config: Mapping[str, str] | None = None
    ) -> Iterator[str]:
        """Yield a new topic, made as those of alerts are; it is deleted afterwards: the disk is bounded."""
        name = f"bench.{purpose}.{secrets.token_hex(4)}"
        settings = {"max.message.bytes": str(topics.MAX_MESSAGE), "file.delete.delay.ms": "1000"}
        ensure_topics(self.bootstrap, [TopicSettings(name, partitions, settings | dict(config or {}))])
        try:
            yield name
        finally:
            client = admin(self.bootstrap)  # it must outlive its futures
            for future in client.delete_topics([name]).values():
                future.result(30)

    def stored(self, topic: str) -> int | None:
        """Return what the records of *topic* take on Kafka's disk [byte]; None where Kafka is not ours."""
        if self._broker is None:
            return None
        total = 0
        for segment in self._data.glob(f"{topic}-*/*.log"):
            with suppress(FileNotFoundError):  # retention was quicker
                total += segment.stat().st_size
        return total

    def memory(self) -> int | None:
        """Return Kafka's resident memory [byte], without its files' pages; None where it is not ours."""
        return None if self._broker is None else int(self._broker.memory_info().rss)

    def cpu(self) -> float:
        """Return what CPU time Kafka took so far [s]; nothing where it is not ours."""
        times = None if self._broker is None else self._broker.cpu_times()
        return 0.0 if times is None else float(times.user + times.system)

    def close(self) -> None:
        """End what was started."""
        self._exits.close()

    @property
    def _data(self) -> Path:
        return self._context.folder / "kafka" / "data"

    def _start(self) -> str:
        self._context.say("starting Kafka")
        before = {child.pid for child in psutil.Process().children()}
        broker = Broker(
            self._context.folder / "kafka",
            port=free_port(),
            controller=free_port(),
            heap="768m",
            properties=RETENTION,
        )
        self._exits.callback(broker.stop)
        broker.start()
        for child in psutil.Process().children():
            if child.pid not in before:
                self._broker = child
                self._context.role(child.pid, "kafka")
        return broker.bootstrap
