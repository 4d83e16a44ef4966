"""The exporter: observes Kafka and the accounts again and again, and serves them to Prometheus."""

import logging
import time
from collections.abc import Iterable

from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry

from nightwire.core.kafka import enter, error_text
from nightwire.core.runtime import MetricsPage, Stop
from nightwire.monitoring.exporter.cluster import AccountsFollower, ClusterObserver
from nightwire.monitoring.exporter.metrics import register
from nightwire.monitoring.exporter.pipeline_state import PipelineState, pipeline_state

log = logging.getLogger("nightwire.exporter")

STALE = 6
"""After so many intervals without an answer of Kafka the exporter is not healthy."""


class Exporter:
    """Keeps the latest state of the pipeline.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``
        interval: Time between observations. [s]
    """

    def __init__(self, bootstrap: str, *, interval: float = 5.0) -> None:
        self._bootstrap = bootstrap
        self._observer, self._follower = ClusterObserver(bootstrap), AccountsFollower(bootstrap)
        self._interval = interval
        self._latest: tuple[PipelineState, float] = (PipelineState(), 0.0)
        self._logged: set[str] = set()

    def latest(self) -> tuple[PipelineState, float]:
        """Return the latest state, and when it was observed. [s since 1970]"""
        return self._latest

    def healthy(self) -> bool:
        """Whether Kafka was observed lately."""
        return time.time() - self._latest[1] < STALE * self._interval + 10.0

    def observe(self) -> None:
        """Observe Kafka and the accounts once.

        Raises:
            KafkaException: Kafka did not answer.
        """
        state = pipeline_state(self._observer.observe(), self._follower.follow())
        self._latest = (state, time.time())
        self._log_new(state.discrepancies)

    def run(self, stop: Stop) -> None:
        """Observe until *stop*; while Kafka does not answer, log it and go on."""
        while not stop.is_set():
            try:
                self.observe()
            except KafkaException as error:
                log.warning("nothing observed: %s", self._why(error))
            stop.wait(self._interval)
        self._follower.close()

    def _why(self, error: KafkaException) -> str:
        """Return what hinders us: librdkafka's own error names neither address nor user."""
        try:
            enter(self._bootstrap)
        except KafkaException as plainer:
            error = plainer
        return error_text(error)

    def _log_new(self, discrepancies: Iterable[str]) -> None:
        for line in set(discrepancies) - self._logged:
            log.error("in is not out: %s", line)
        self._logged = set(discrepancies)


def export(bootstrap: str, port: int, stop: Stop, *, interval: float) -> None:
    """Serve the metrics of the pipeline on *port* until *stop*.

    Raises:
        OSError: The port is taken.
        KafkaException: Kafka refuses our name or password.
    """
    enter(bootstrap, must_answer=False)
    exporter = Exporter(bootstrap, interval=interval)
    registry = CollectorRegistry()
    register(registry, exporter.latest)
    page = MetricsPage(registry, port=port, healthy=exporter.healthy)
    log.info("metrics of %s on port %d", bootstrap, page.start())
    try:
        exporter.run(stop)
    finally:
        page.stop()
