"""Spark's own metrics, for Prometheus, and the progress of its batches.

Spark serves metrics of the query, its jobs and its workers at any port of this machine.  Our page
passes on the few lines that are watched, so that who may ask is decided in one place.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
from pyspark.sql.streaming.query import StreamingQuery

from nightwire.core.runtime import Page

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
"""Settings of a session whose metrics are served."""

DRIVER = "metrics_filters_driver_"
WATCHED = re.compile(
    rf"spark_info|metrics_executor_|{DRIVER}"
    r"(spark_streaming_\w+_Value|appStatus_jobs_\w+_Count|JVMCPU_jvmCpuTime_Value)"
)
"""Of four hundred lines some fifty."""

PATHS = ("/metrics/prometheus/", "/metrics/executors/prometheus")
TIMEOUT = 4.0
"""Longest wait for Spark's answer. [s]  Prometheus asks every five seconds."""


def watched_lines(text: str) -> str:
    """Return the lines of Spark's pages that are watched."""
    return "".join(f"{line}\n" for line in text.splitlines() if WATCHED.match(line))


def spark_page(url: Callable[[], str | None]) -> Page:
    """Return a page that passes on Spark's metrics; it is empty while there is no Spark.

    Args:
        url: Returns the address of Spark's own pages; None while there are none.
    """

    client = httpx.Client(timeout=TIMEOUT)  # one for all: to make it reads all certificates

    def page() -> tuple[str, bytes]:
        at = url()
        try:
            texts = [client.get(at + path).text for path in PATHS] if at else []
        except httpx.HTTPError:
            texts = []
        return "text/plain; version=0.0.4; charset=utf-8", watched_lines("".join(texts)).encode()

    return page


def progress_after(query: StreamingQuery, batch: int) -> list[dict[str, Any]]:
    """Return Spark's progress of each batch after *batch*, in order; it remembers the last hundred.

    Asked for as JSON, from the newest on: ``query.recentProgress`` takes a hundred calls into Java
    for each batch.

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
