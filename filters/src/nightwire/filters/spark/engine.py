"""The filter engine on Spark: one query over all alert topics, kept running.

A query that dies is started again in this process; when the Java process dies, so does this one,
and the supervisor starts a new one.  Either way the checkpoint and the stored decisions say where
to go on.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nightwire.core.runtime import Backoff, Page, Stop
from nightwire.filters.decision.engine_state import EngineState
from nightwire.filters.engine.batch import BatchRunner
from nightwire.filters.engine.services import JavaDied, await_kafka, start_services
from nightwire.filters.engine.settings import EngineSettings
from nightwire.filters.spark.monitoring import progress_after, spark_page
from nightwire.filters.spark.session import session, start_query, warm_up
from nightwire.filters.stats.metrics import Metrics

log = logging.getLogger("nightwire.filters")


TICK = 0.2
"""How often we look whether the query lives. [s]"""


@dataclass
class SparkEngine:
    """Runs until it is stopped.

    Args:
        settings: What to run.
        metrics: What to count.
        stop: When to leave: after the running batch.
    """

    settings: EngineSettings
    metrics: Metrics
    stop: Stop
    _busy: threading.Lock = field(default_factory=threading.Lock)
    _last: int = -1
    _reported: int = -1
    _healthy: bool = False
    _spark_at: str | None = None
    _warm: Future[None] | None = None

    def __post_init__(self) -> None:
        self.state = EngineState(self.settings.state)
        self.batches = BatchRunner(self.settings, self.state, self.metrics)

    def healthy(self) -> bool:
        """Return whether the query runs, in workers that are warm."""
        return self._healthy and self._warm is not None and self._warm.done()

    def pages(self) -> dict[str, Page]:
        """Return the page on which Spark tells of itself."""
        return {"/spark": spark_page(lambda: self._spark_at)} if self.settings.page else {}

    def run(self) -> None:
        """Serve requests and judge alerts until stopped.

        Raises:
            StateError: The state belongs to another Kafka.
            JavaDied: Start the process again.
        """
        with ThreadPoolExecutor(1) as beside:  # Java starts meanwhile
            starting = beside.submit(self._session)
            await_kafka(self.settings.bootstrap, self.state, self.stop)
            if self.stop.is_set():
                return
            self.supervisor = start_services(self.settings, self.state, self.metrics, self.stop)
            try:
                spark = starting.result()
                self._spark_at = spark.sparkContext.uiWebUrl
                self._warm = beside.submit(warm_up, spark, self.settings.options())
                self._keep_running(spark)
            except (Py4JError, ConnectionError) as error:
                raise JavaDied("Spark's Java process is gone") from error
            finally:
                self._healthy, self._spark_at = False, None
                self.metrics.running.set(0)

    def _session(self) -> SparkSession:
        settings = self.settings
        return session(
            settings.state / "spark", master=settings.master, memory=settings.memory, page=settings.page
        )

    def batch(self, rows: DataFrame, number: int) -> None:
        """Decide once, send at least once; Spark commits the batch afterwards."""
        with self._busy:
            if self.stop.is_set():
                raise InterruptedError("stopping")
            decision = self.batches.run(number, rows.toArrow)
            self._last = number
            self.supervisor.observe(number, decision)

    def _keep_running(self, spark: SparkSession) -> None:
        backoff = Backoff()
        while not self.stop.is_set():
            before = self._last
            why = self._run_query(spark)
            if self.stop.is_set():
                return
            if self._last > before:
                backoff.reset()
            pause = backoff.next()
            log.warning("the query ended (%s); starting it again in %g s", why, pause)
            self.metrics.restarts.inc()
            self.stop.wait(pause)

    def _run_query(self, spark: SparkSession) -> str:
        """Run one query to its end; return why it ended."""
        self.batches.restart()
        try:
            query = start_query(spark, self.settings.options(), self.state.checkpoint, self.batch)
            self._follow(query)
        except PySparkException as error:
            return first_line(error)
        finally:
            self._healthy = False
            self.metrics.running.set(0)
        return first_line(query.exception())

    def _follow(self, query: StreamingQuery) -> None:
        """Wait until *query* ends or we are asked to stop it."""
        log.info("judging")
        while query.isActive:
            self._healthy = True
            self.metrics.running.set(1)
            if self.stop.wait(TICK):
                self._finish(query)
                return
            if self._reported < self._last:
                self._report(query)

    def _report(self, query: StreamingQuery) -> None:
        """Give the metrics Spark's progress of the batches since the last look."""
        for progress in progress_after(query, self._reported):
            self.metrics.spark_progress(progress)
            self._reported = progress["batchId"]

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
    """Return the message of an exception of Spark, without its stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    cause = next((line for line in reversed(lines) if "Error:" in line or "Exception:" in line), "")
    return " … ".join(dict.fromkeys([lines[0][:200], cause[:300]])) if lines else "no reason given"
