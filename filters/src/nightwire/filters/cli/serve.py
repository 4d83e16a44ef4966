"""The process of the filter engine: logs, metrics page, signals, exit status."""

import logging
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from nightwire.core.presence import metrics_at, registered
from nightwire.core.runtime import MetricsPage, StateError, Stop, setup_logging, stopping
from nightwire.filters.engine.local import LocalEngine
from nightwire.filters.engine.services import JavaDied
from nightwire.filters.engine.settings import EngineSettings
from nightwire.filters.stats.metrics import Metrics

if TYPE_CHECKING:
    from nightwire.filters.spark.engine import SparkEngine

LONGEST_STOP = 25.0
"""Time after which a stop waits no longer for the running batch, whose delivery may wait for a
Kafka that stopped too: the next engine does the batch again.  Less than `down` and compose give
us. [s]"""


def serve(settings: EngineSettings, metrics_port: int, *, light: bool = False) -> int:
    """Run an engine until it is stopped; return the exit status: 1 asks to be started again.

    Args:
        settings: Its settings.
        metrics_port: Port of its metrics page; 0 = none.
        light: Whether it runs without Spark.
    """
    log = setup_logging("nightwire.filters")
    logging.getLogger("py4j").setLevel("WARNING")
    registry = CollectorRegistry()
    pages = metrics_at(metrics_port, **({} if light else {"spark": "/spark"}))
    with stopping(LONGEST_STOP) as stop, registered(settings.bootstrap, "filters", endpoints=pages):
        engine = engine_of(settings, Metrics(registry), stop, light=light)
        page = MetricsPage(registry, port=metrics_port, healthy=engine.healthy, pages=engine.pages())
        if metrics_port:
            page.start()
        try:
            engine.run()
        except (JavaDied, StateError) as error:
            log.error("%s", error)  # noqa: TRY400 - the reason is the message
            return 1
        finally:
            stop.set()
            page.stop()
    log.info("stopped")
    return 0


def engine_of(
    settings: EngineSettings, metrics: Metrics, stop: Stop, *, light: bool
) -> "LocalEngine | SparkEngine":
    """Return an engine; the light one needs neither pyspark nor Java."""
    if light:
        return LocalEngine(settings, metrics, stop)
    from nightwire.filters.spark.engine import SparkEngine

    return SparkEngine(settings, metrics, stop)
