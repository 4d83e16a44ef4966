"""The process of the filter engine: logs, metrics page, signals, exit status."""

import logging

from prometheus_client import CollectorRegistry

from nightwire.core.process import MetricsPage, setup_logging, stopping
from nightwire.filters._engine import Engine, JavaDied
from nightwire.filters._metrics import Metrics
from nightwire.filters._settings import Settings
from nightwire.filters._state import StateError


def serve(settings: Settings, metrics_port: int) -> int:
    """Run an engine until it is stopped; return the exit status: 1 asks to be started again."""
    log = setup_logging("nightwire.filters")
    logging.getLogger("py4j").setLevel("WARNING")
    registry = CollectorRegistry()
    with stopping() as stop:
        engine = Engine(settings, Metrics(registry), stop)
        page = MetricsPage(registry, port=metrics_port, healthy=engine.healthy)
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
