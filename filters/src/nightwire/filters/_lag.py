"""How far the engine is behind the alert topics, looked at every few seconds in a thread of its own."""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaException
from prometheus_client import Gauge

from nightwire.core import kafka
from nightwire.core.process import Stop
from nightwire.filters._fetch import bounds
from nightwire.filters._offsets import lag, positions
from nightwire.filters._state import State

log = logging.getLogger("nightwire.filters")

EVERY = 5.0
"""Pause between two looks. [s]"""


class LagMeter:
    """Sets a gauge to what is not judged yet, per topic.

    Args:
        bootstrap: Kafka's address.
        state: Knows where partitions began.
        gauge: To set; labelled by topic.
        done: Returns Spark's offset up to which everything is accounted.
        stop: When to end.
    """

    def __init__(
        self, bootstrap: str, state: State, gauge: Gauge, done: Callable[[], Mapping[str, Any]], stop: Stop
    ) -> None:
        self._state, self._gauge, self._done, self._stop = state, gauge, done, stop
        self._admin = kafka.admin(bootstrap)

    def start(self) -> None:
        """Measure in a thread of its own."""
        threading.Thread(target=self._run, name="lag", daemon=True).start()

    def _run(self) -> None:
        while not self._stop.wait(EVERY):
            try:
                self.measure()
            except (KafkaException, TimeoutError):
                log.debug("no lag while Kafka is away")

    def measure(self) -> None:
        """Look once.

        Raises:
            KafkaException: Kafka does not answer.
        """
        beginnings = self._state.beginnings()
        for topic, behind in lag(
            bounds(self._admin, beginnings), positions(self._done()), beginnings
        ).items():
            self._gauge.labels(topic).set(behind)
