"""The Spark session: small, quiet, and warm; on this machine, or on a cluster."""

import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nightwire.core.runtime import Page, java_classes, java_home
from nightwire.filters.spark.class_archive import spark_archive
from nightwire.filters.spark.filter_source import FORMAT, FilterSource

log = logging.getLogger("nightwire.filters")

JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+IgnoreUnrecognizedVMOptions"
"""Spark only plans here, the work is in Python: one collector thread and the quick compiler suffice."""


ALONE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""Nobody from outside needs to reach a driver that has no executors but itself."""


def session(
    scratch: Path,
    *,
    master: str = "local[2,4]",
    memory: str = "768m",
    java: Sequence[str] | None = None,
    page: bool = False,
) -> SparkSession:
    """Return a session with our data source.

    Args:
        scratch: Folder for what Spark writes in passing.
        master: Where it runs; four attempts, for with one a dead worker ends the query.
        memory: Heap of each Java process.
        java: More options of the driver's Java; by default those that start it from its archive of classes.
        page: Whether it tells Prometheus about itself.
    """
    local = master.startswith("local")
    prepare(local=local)
    more = java_classes.options(spark_archive()) if java is None else java
    settings = {
        **(ALONE if local else {}),
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": " ".join([JVM, *more]),
        "spark.executor.memory": memory,
        "spark.executor.extraJavaOptions": JVM,
        "spark.python.daemon.module": "nightwire.filters.spark.daemon",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.python.authenticate.socketTimeout": "60s",  # 15 is too short on a very busy machine
        "spark.sql.execution.arrow.maxRecordsPerBatch": "2500",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        **(SETTINGS if page else {}),
    }
    builder = SparkSession.builder.master(master).appName("nightwire-filters")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(FilterSource)
    return spark


def prepare(*, local: bool) -> None:
    """Say in the environment which Java and which Python Spark takes; on a cluster its operator may say so.

    Args:
        local: Whether all of Spark runs in this machine's one process.
    """
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if local or "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    if local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"


def warm_up(spark: SparkSession, options: dict[str, str]) -> None:
    """Run a batch of nothing, so that workers are there, with all they import, before the first alert."""
    began = time.monotonic()
    spark.read.format(FORMAT).options(**options).load().toArrow()
    log.info("warm after %.1f s", time.monotonic() - began)


def start(spark: SparkSession, options: dict[str, str], checkpoint: Path, batch: Any) -> StreamingQuery:
    """Start the query that calls *batch* (data frame, batch id) back to back while there are alerts."""
    alerts: DataFrame = spark.readStream.format(FORMAT).options(**options).load()
    writer = alerts.writeStream.foreachBatch(batch).queryName("filters")
    return writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime="0 seconds").start()


def progress_after(query: StreamingQuery, batch: int) -> list[dict[str, Any]]:
    """Return Spark's progress of each batch after *batch*, in order; it remembers the last hundred.

    Asked for as JSON, from the newest on: ``query.recentProgress`` takes a hundred calls into Java for each.

    Raises:
        Py4JError: Java is gone.
    """
    return list(reversed([*_newest(query, batch)]))


def _newest(query: StreamingQuery, batch: int) -> Iterator[dict[str, Any]]:
    known = query._jsq.recentProgress()  # noqa: SLF001 - see above
    for at in range(len(known) - 1, -1, -1):
        progress: dict[str, Any] = json.loads(known[at].json())
        if progress["batchId"] <= batch:
            return
        if "addBatch" in progress.get("durationMs", {}):  # else it says that nothing happens
            yield progress


SETTINGS = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.ui.killEnabled": "false",
    "spark.ui.prometheus.enabled": "true",
    "spark.sql.streaming.metricsEnabled": "true",
    "spark.sql.streaming.ui.enabled": "false",  # pictures of the last hundred batches, for nobody
    "spark.metrics.namespace": "filters",
    "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
}
"""Of a session that tells Prometheus about itself."""

DRIVER = "metrics_filters_driver_"
WATCHED = re.compile(
    rf"spark_info|metrics_executor_|{DRIVER}"
    r"(spark_streaming_\w+_Value|appStatus_jobs_\w+_Count|JVMCPU_jvmCpuTime_Value)"
)
"""Of four hundred lines some fifty."""
PAGES = ("/metrics/prometheus/", "/metrics/executors/prometheus")
PATIENCE = 4.0
"""Longest wait for Spark's answer. [s]  Prometheus asks every five seconds."""


def watched(text: str) -> str:
    """Return the lines of Spark's pages that are watched."""
    return "".join(f"{line}\n" for line in text.splitlines() if WATCHED.match(line))


def spark_page(url: Callable[[], str | None]) -> Page:
    """Return a page that passes on what Spark says; it is empty while there is no Spark.

    Args:
        url: Returns the address of Spark's own pages; None while there are none.
    """

    def page() -> tuple[str, bytes]:
        at = url()
        try:
            said = [httpx.get(at + path, timeout=PATIENCE).text for path in PAGES] if at else []
        except httpx.HTTPError:
            said = []
        return "text/plain; version=0.0.4; charset=utf-8", watched("".join(said)).encode()

    return page
