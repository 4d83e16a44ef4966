"""The exporter: looks at Kafka and the accounts again and again, and tells Prometheus."""

import logging
import threading
from collections.abc import Iterable

from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry

from nightwire.core.runtime import MetricsPage, Stop
from nightwire.monitoring.exporter.cluster import AccountsFollower, ClusterObserver
from nightwire.monitoring.exporter.metrics import now, register
from nightwire.monitoring.exporter.pipeline_state import PipelineState, pipeline_state

log = logging.getLogger("nightwire.exporter")

STALE = 6
"""After so many intervals without a look the exporter is not healthy."""


class Exporter:
    """Keeps the latest look at the night.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``
        interval: Time between looks. [s]
    """

    def __init__(self, bootstrap: str, *, interval: float = 5.0) -> None:
        self._watcher, self._follower = ClusterObserver(bootstrap), AccountsFollower(bootstrap)
        self._interval = interval
        self._latest: tuple[PipelineState, float] = (PipelineState(), 0.0)
        self._said: set[str] = set()
        self.ready = threading.Event()

    def latest(self) -> tuple[PipelineState, float]:
        """Return the last look, and when it was. [s since 1970]"""
        return self._latest

    def healthy(self) -> bool:
        """Whether there was a look lately."""
        return now() - self._latest[1] < STALE * self._interval + 10.0

    def look(self) -> None:
        """Look once.

        Raises:
            KafkaException: Kafka did not answer.
        """
        seen = pipeline_state(self._watcher.look(), self._follower.follow())
        self._latest = (seen, now())
        self._tell(seen.wrong)
        self.ready.set()

    def run(self, stop: Stop) -> None:
        """Look until *stop*; while Kafka is away, say so and go on."""
        while not stop.is_set():
            try:
                self.look()
            except KafkaException as error:
                log.warning("Kafka does not answer: %s", error.args[0].str())
            stop.wait(self._interval)
        self._follower.close()

    def _tell(self, wrong: Iterable[str]) -> None:
        for line in set(wrong) - self._said:
            log.error("in is not out: %s", line)
        self._said = set(wrong)


def export(bootstrap: str, port: int, stop: Stop, *, interval: float) -> None:
    """Serve the night's metrics on *port* until *stop*.

    Raises:
        OSError: The port is taken.
    """
    exporter = Exporter(bootstrap, interval=interval)
    registry = CollectorRegistry()
    register(registry, exporter.latest)
    page = MetricsPage(registry, port=port, healthy=exporter.healthy)
    log.info("metrics of %s on port %d", bootstrap, page.start())
    try:
        exporter.run(stop)
    finally:
        page.stop()
