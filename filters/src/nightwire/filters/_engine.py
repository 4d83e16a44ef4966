"""The filter engine: one query over all alert topics, kept running.

A query that dies is started again in this process; when the Java process dies, so does this one, and the
supervisor starts a new one.  Either way the checkpoint and the stored decisions say where to go on.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nightwire.core import kafka
from nightwire.core.kafka import DeliveryError, ensure_topics
from nightwire.core.process import Stop
from nightwire.filters import _decision, _spark
from nightwire.filters._catalog import Catalog, Strikes
from nightwire.filters._decision import Decision
from nightwire.filters._delivery import Delivery
from nightwire.filters._judge import BUDGET
from nightwire.filters._lag import LagMeter
from nightwire.filters._metrics import Metrics
from nightwire.filters._requests import Desk, Engineer
from nightwire.filters._source import BATCH, TASKS
from nightwire.filters._state import State
from nightwire.schemas.topics import ACCOUNTS, DEAD_LETTERS, FILTERS, settings

log = logging.getLogger("nightwire.filters")

PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Pauses before the query is started again; the last one repeats. [s]"""

TICK = 0.2
"""How often we look whether the query lives. [s]"""


@dataclass(frozen=True)
class Settings:
    """What an engine is told.

    Attributes:
        bootstrap: Kafka's address.
        registry: URL of the schema registry.
        state: Directory; see `State`.
        master: Spark master.
        memory: Heap of Spark's Java process.
        batch: Most records in a batch.
        tasks: Tasks per batch.
        budget: CPU time of one filter in one task. [s]
    """

    bootstrap: str
    registry: str
    state: Path
    master: str = "local[2,4]"
    memory: str = "768m"
    batch: int = BATCH
    tasks: int = TASKS
    budget: float = BUDGET

    def options(self) -> dict[str, str]:
        """Return them as options of the data source."""
        names = ("bootstrap", "registry", "state", "batch", "tasks", "budget")
        return {name: str(getattr(self, name)) for name in names}


class JavaDied(Exception):  # noqa: N818 - it is what happened
    """Spark's Java process is gone; nothing in this process can bring it back."""


@dataclass
class Engine:
    """Runs until it is stopped.

    Args:
        settings: What to run.
        metrics: What to count.
        stop: When to leave: after the running batch.
    """

    settings: Settings
    metrics: Metrics
    stop: Stop
    faults: set[tuple[str, int]] = field(default_factory=set)
    _query: StreamingQuery | None = None
    _busy: threading.Lock = field(default_factory=threading.Lock)
    _last: int = -1
    _healthy: bool = False

    def __post_init__(self) -> None:
        self.state = State(self.settings.state)
        self.delivery = Delivery(self.settings.bootstrap, self.metrics.acknowledged)

    def healthy(self) -> bool:
        """Return whether the query runs."""
        return self._healthy

    def run(self) -> None:
        """Serve requests and judge alerts until stopped.

        Raises:
            StateError: The state belongs to another Kafka.
            JavaDied: Start the process again.
        """
        self._await_kafka()
        if self.stop.is_set():
            return
        catalog = Catalog(self.settings.bootstrap)
        self.strikes = Strikes(catalog)
        engineer = Engineer(self.settings.bootstrap, self.settings.registry, self.state.schemas, catalog)
        Desk(self.settings.bootstrap, engineer, self.stop).start()
        log.warning("filters run with this process's rights: accept them only from people you trust")
        LagMeter(self.settings.bootstrap, self.state, self.metrics.lag, self.done, self.stop).start()
        try:
            spark = _spark.session(
                self.settings.state / "spark", master=self.settings.master, memory=self.settings.memory
            )
            _spark.warm_up(spark, self.settings.options())
            self._keep_running(spark)
        except (Py4JError, ConnectionError) as error:
            raise JavaDied("Spark's Java process is gone") from error
        finally:
            self._healthy = False
            self.metrics.running.set(0)

    def batch(self, rows: DataFrame, number: int) -> None:
        """Decide once, send at least once; Spark calls this for each batch and commits it afterwards."""
        with self._busy:
            if self.stop.is_set():
                raise InterruptedError("stopping")
            began = time.monotonic()
            decision = self._decided(rows, number)
            self.delivery.deliver(decision)
            self.metrics.batch_done(decision, time.monotonic() - began)
            self._last = number
            self._look_at_faults(decision)

    def done(self) -> dict[str, Any]:
        """Return Spark's offset after the last batch; empty when there was none yet."""
        return self.state.committed()

    def _decided(self, rows: DataFrame, number: int) -> Decision:
        if (text := self.state.decision(number)) is not None:
            log.info("batch %d was decided before: sending it again", number)
            return _decision.load(text)
        decision = _decision.decide(rows.toArrow().to_pylist())
        self.state.keep_decision(number, _decision.dump(decision))
        return decision

    def _look_at_faults(self, decision: Decision) -> None:
        """Log a filter's first fault, and suspend the slow; trouble here stops nothing."""
        for one in decision.counts:
            for key, tally in one.filters.items():
                if tally["fault"] and (key, tally["version"]) not in self.faults:
                    self.faults.add((key, tally["version"]))
                    log.warning("filter %s version %d failed: %s", key, tally["version"], tally["fault"])
        late = {
            (key, tally["version"]): tally["fault"]
            for one in decision.counts
            for key, tally in one.filters.items()
            if tally["late"]
        }
        try:
            for (key, version), fault in late.items():
                if self.strikes.count(key, version, fault):
                    self.metrics.suspended.labels(key).inc()
        except (KafkaException, DeliveryError, TimeoutError) as error:
            log.warning("a slow filter could not be suspended yet: %s", error)

    def _await_kafka(self) -> None:
        """Wait for Kafka; make the topics that we need and the state ours."""
        while not self.stop.is_set():
            try:
                ensure_topics(
                    self.settings.bootstrap, [settings(name) for name in (FILTERS, ACCOUNTS, DEAD_LETTERS)]
                )
                self.state.claim(
                    kafka.admin(self.settings.bootstrap).list_topics(timeout=10).cluster_id or ""
                )
            except (KafkaException, TimeoutError) as error:
                log.warning("waiting for Kafka at %s: %s", self.settings.bootstrap, error)
                self.stop.wait(1.0)
            else:
                return

    def _keep_running(self, spark: SparkSession) -> None:
        deaths = 0
        while not self.stop.is_set():
            before = self._last
            why = self._run_query(spark)
            if self.stop.is_set():
                return
            deaths = 1 if self._last > before else deaths + 1
            pause = PAUSES[min(deaths, len(PAUSES)) - 1]
            log.warning("the query ended (%s); starting it again in %g s", why, pause)
            self.metrics.restarts.inc()
            self.stop.wait(pause)

    def _run_query(self, spark: SparkSession) -> str:
        """Run one query to its end; return why it ended."""
        self.delivery = Delivery(self.settings.bootstrap, self.metrics.acknowledged)
        try:
            query = _spark.start(spark, self.settings.options(), self.state.checkpoint, self.batch)
            self._watch(query)
        except PySparkException as error:
            return first_line(error)
        finally:
            self._healthy = False
            self.metrics.running.set(0)
        return first_line(query.exception())

    def _watch(self, query: StreamingQuery) -> None:
        """Wait until *query* ends or we are asked to stop it."""
        log.info("judging")
        while query.isActive:
            self._healthy = True
            self.metrics.running.set(1)
            if self.stop.wait(TICK):
                self._finish(query)
                return

    def _finish(self, query: StreamingQuery) -> None:
        """Let the running batch end and be committed, then stop."""
        with self._busy:
            pass
        wait_for(lambda: self._last < 0 or self.state.is_committed(self._last), 3.0)
        try:
            query.stop()
        except Py4JError:
            log.debug("the query ended by itself")


def wait_for(true: Callable[[], bool], timeout: float) -> bool:
    """Wait at most *timeout* [s] until *true*; return whether it is."""
    deadline = time.monotonic() + timeout
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def first_line(error: Any) -> str:
    """Return what an exception of Spark says, without its stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    cause = next((line for line in reversed(lines) if "Error:" in line or "Exception:" in line), "")
    return " … ".join(dict.fromkeys([lines[0][:200], cause[:300]])) if lines else "no reason given"
