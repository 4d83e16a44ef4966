"""The filter engine without Spark: one process, one batch after the other, no Java.

Planner, worker, decision, delivery and state are those of the engine on Spark; this is the loop
between them.  Its positions lie in files like those of a Spark checkpoint: what reads the one reads
the other.
"""

import logging

import pyarrow as pa
from confluent_kafka import KafkaException

from nightwire.core.kafka import DeliveryError
from nightwire.core.runtime import Page, Stop
from nightwire.filters.decision.engine_state import EngineState, LocalCheckpoint
from nightwire.filters.engine.batch import BatchRunner
from nightwire.filters.engine.planner import Planner
from nightwire.filters.engine.services import await_kafka, start_services
from nightwire.filters.engine.settings import EngineSettings
from nightwire.filters.evaluation.worker import make_task, run
from nightwire.filters.model.messages import COLUMNS
from nightwire.filters.model.offsets import Offset, share_out, to_offset, version
from nightwire.filters.stats.metrics import Metrics
from nightwire.schemas import RegistryAwayError

log = logging.getLogger("nightwire.filters")

PAUSE = 1.0
"""Pause before a batch is tried again. [s]"""


class LocalEngine:
    """Runs until it is stopped.

    Args:
        settings: What to run; what they say of Spark is of no account.
        metrics: What to count.
        stop: When to leave: after the running batch.
    """

    def __init__(self, settings: EngineSettings, metrics: Metrics, stop: Stop) -> None:
        self.settings, self.metrics, self.stop = settings, metrics, stop
        self.state = EngineState(settings.state, "light")
        self.checkpoint = LocalCheckpoint(self.state)
        self._healthy = False

    def healthy(self) -> bool:
        """Return whether alerts are judged."""
        return self._healthy

    def pages(self) -> dict[str, Page]:
        """Return no page: there is no Spark that tells of itself."""
        return {}

    def run(self) -> None:
        """Serve requests and judge alerts until stopped.

        Raises:
            StateError: The state belongs to another Kafka.
        """
        await_kafka(self.settings.bootstrap, self.state, self.stop)
        if self.stop.is_set():
            return
        self.supervisor = start_services(self.settings, self.state, self.metrics, self.stop)
        self.batches = BatchRunner(self.settings, self.state, self.metrics)
        deadline = round(1000 * self.settings.deadline)
        self.planner = Planner(self.settings.bootstrap, self.state, deadline, self.settings.tasks)
        try:
            self._judge()
        finally:
            self._healthy = False
            self.metrics.running.set(0)

    def _judge(self) -> None:
        """Do one batch after the other; one that fails is done again, as it was planned."""
        log.info("judging")
        number, start = self.state.newest_commit() + 1, self.state.committed() or to_offset({}, 0)
        self._healthy = True
        self.metrics.running.set(1)
        while not self.stop.is_set():
            end = self.checkpoint.planned(number) or self.planner.latest(start, self.settings.batch)
            if end == start:
                continue
            try:
                self._batch(number, start, end)
            except (KafkaException, DeliveryError, RegistryAwayError, TimeoutError) as error:
                log.warning("batch %d is tried again: %s", number, error)
                self.metrics.restarts.inc()
                self.batches.restart()
                self.stop.wait(PAUSE)
            else:
                number, start = number + 1, end

    def _batch(self, number: int, start: Offset, end: Offset) -> None:
        with self.metrics.phase.labels("plan").time():
            self.checkpoint.plan(number, end)
        decision = self.batches.run(number, lambda: self._rows(start, end))
        self.supervisor.observe(number, decision)
        with self.metrics.phase.labels("commit").time():
            self.checkpoint.commit(number)

    def _rows(self, start: Offset, end: Offset) -> pa.Table:
        """Return the worker's rows of the alerts between two offsets."""
        work, active = self.planner.work(start, end)
        options = self.settings.options()
        batches = [
            batch
            for part in share_out(work, 1)
            for batch in run(make_task(options, part, version(end), active))
        ]
        return pa.Table.from_batches(batches, COLUMNS)
