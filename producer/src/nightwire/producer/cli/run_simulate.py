"""`nightwire simulate`, once its options are read."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from nightwire.core.cli import progress
from nightwire.core.kafka import enter, login, retry_while_unavailable
from nightwire.core.presence import metrics_at, registered
from nightwire.core.runtime import Endpoints, MetricsPage, find_endpoints, setup_logging, stopping
from nightwire.producer.cli.table import summary
from nightwire.producer.simulation.pool import AlertSource, DrawnAlerts, PatchedAlerts, make_pool
from nightwire.producer.simulation.simulate import Clocks, Plan, PlayedVisit, Simulation
from nightwire.producer.simulation.sky import Sky, VisitLog
from nightwire.producer.visits.visit_ids import VisitIdAllocator
from nightwire.producer.visits.visit_topic import PATIENCE, utc_now
from nightwire.producer.visits.writer_id import WriterId
from nightwire.producer.writing.connect import Connection, make_topics, topic_format, writer_arguments
from nightwire.producer.writing.metrics import Metrics
from nightwire.producer.writing.writer import AlertWriter, WriterOptions
from nightwire.schemas import (
    SIM_ALERT_ID,
    RegistryAwayError,
    SchemaRegistry,
    sim_alert_schema,
    topics,
)

log = logging.getLogger("nightwire.producer")

LAST_VISITS = 1000
"""Visits kept for the final table; an endless stream has more."""
MAX_SILENCE = 15.0
"""How long Kafka may leave alerts unacknowledged while the process is healthy. [s]"""


def run_simulate(
    plan: Plan, where: tuple[str | None, str | None], *, metrics_port: int, as_json: bool
) -> dict[str, Any]:
    """Play *plan*, and return its counts.

    Args:
        plan: What to play.
        where: Kafka's address and the registry's URL, where given.
        metrics_port: Port of the metrics page; 0 = no page.
        as_json: Show no progress.

    Raises:
        NoStackError: There is no Kafka to talk to.
        DeliveryError: Kafka did not take an alert.
    """
    found = find_endpoints(*where)
    enter(found.kafka, must_answer=False)
    endless = plan.visits == 0
    if endless:
        setup_logging("nightwire.producer")
    played: list[PlayedVisit] = []
    with ExitStack() as exits:
        stop = exits.enter_context(stopping())
        if endless:
            said: dict[str, Any] = {"survey": "sim", "topic": topics.alerts("sim")}
            exits.enter_context(registered(found.kafka, "stream", **said, endpoints=metrics_at(metrics_port)))
        writers: list[AlertWriter] = []
        metrics = exits.enter_context(_page(metrics_port, lambda: _answers(writers)))
        retry_while_unavailable(lambda: make_topics(found.kafka, "sim"), patience=PATIENCE, stop=stop)
        register(found)
        writer = _writer(found.kafka)
        retry_while_unavailable(lambda: writer.tidy(found.kafka), patience=PATIENCE, stop=stop)
        writers.append(writer)
        visit_ids = exits.enter_context(
            VisitIdAllocator(found.kafka, "sim", writer.visit_topic, writer.records, WriterId.own())
        )
        source = _alert_source(plan, writer, quiet=endless or as_json)
        simulation = Simulation(plan, source, writer, visit_ids, Clocks(time.monotonic, utc_now), stop)
        total = None if endless else plan.visits * plan.alerts
        meter = exits.enter_context(progress(total, "alerts", quiet=endless or as_json))
        for one in simulation.play(meter, observe=metrics.behind("sim")):
            metrics.closed(one.counts)
            _log_visit(one)
            played = [*played, one][-LAST_VISITS:]
    return summary([(one.counts, one.lateness) for one in played], "sim")


def _writer(bootstrap: str) -> AlertWriter:
    found = Connection(bootstrap, SIM_ALERT_ID, answers=True)
    schema = sim_alert_schema()
    options = WriterOptions(message_format=topic_format("sim", schema, SIM_ALERT_ID), test=True)
    return AlertWriter(**writer_arguments(found, "sim", schema), options=options)


def _alert_source(plan: Plan, writer: AlertWriter, *, quiet: bool) -> AlertSource:
    """Return the source of the alerts; a pool is made at once."""
    start = utc_now()
    history = VisitLog(plan.seed, start)
    if plan.alerts <= plan.pool:
        return DrawnAlerts(Sky(plan.seed, plan.alerts), history, writer.encoded)
    members = []
    with progress(plan.pool, "pool", quiet=quiet) as meter:
        for member in make_pool(plan.seed, plan.pool, history, start, writer.encoded):
            members.append(member)
            meter.advance()
    return PatchedAlerts(members, history, plan.alerts)


def _answers(writers: list[AlertWriter]) -> bool:
    """Return whether Kafka was found, and acknowledges."""
    return bool(writers) and writers[0].records.silence < MAX_SILENCE


def _log_visit(one: PlayedVisit) -> None:
    log.info(
        "visit %d: %d of %d acknowledged, behind by at most %.1f s",
        one.counts.visit,
        one.counts.acknowledged,
        one.counts.offered,
        one.lateness.greatest,
    )


def register(found: Endpoints) -> None:
    """Register the schema of simulated alerts, if there is a registry; our readers know it."""
    if found.schema_registry is None:
        return
    try:
        with SchemaRegistry(found.schema_registry, login=login(found.kafka)) as registry:
            subject = f"{topics.alerts('sim')}-value"
            registry.register(subject, sim_alert_schema(), schema_id=SIM_ALERT_ID)
    except RegistryAwayError as error:
        log.warning("foreign readers will not find the schema: %s", error)


@contextmanager
def _page(port: int, healthy: Callable[[], bool]) -> Iterator[Metrics]:
    registry = CollectorRegistry()
    page = MetricsPage(registry, port=port, healthy=healthy)
    if port:
        page.start()
    yield Metrics(registry)
    page.stop()
