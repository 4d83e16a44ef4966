"""What Spark says of itself, for Prometheus: the query, its jobs, and who works on them.

Spark says it on a page of its own, at any port of this machine; ours passes on the few lines of it that are
watched, so that who may ask is decided in one place.
"""

import re
from collections.abc import Callable

import httpx

from nightwire.core.process import Page

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
