"""How soon the first alert is out after a crash: of the engine, its Java and its workers."""

import time
from collections.abc import Sequence

from nightwire.benchmarks.filters._moment import Moment
from nightwire.benchmarks.filters._visits import Ends
from nightwire.benchmarks.visit._services import ALERTS

MOST = 2_000
"""Alerts that wait in Kafka for the engine."""


class Start(Moment):
    """The engine was killed, alerts wait in Kafka, it is started again."""

    figure = "start_seconds"

    def _topics(self) -> Sequence[str]:
        self._it.services.kill()
        return list(self._it.services.filters.values())

    def _act(self) -> tuple[float, Ends]:
        _, ends = self._it.visits.send_at_once(ALERTS, min(MOST, self._it.context.size.alerts))
        began = time.monotonic()
        self._it.services.engine()
        return began, ends
