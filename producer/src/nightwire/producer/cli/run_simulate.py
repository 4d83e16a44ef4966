"""What the verb `simulate` does, once its options are read."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry

from nightwire.core.cli import progress
from nightwire.core.runtime import Endpoints, MetricsPage, Stop, find_endpoints, setup_logging, stopping
from nightwire.producer.cli.table import summary
from nightwire.producer.simulation.pool import Drawn, Field, Patched, make_pool
from nightwire.producer.simulation.simulate import Clocks, Plan, Played, Simulation
from nightwire.producer.simulation.sky import Sky, VisitLog
from nightwire.producer.visits.visit_ids import VisitIdAllocator
from nightwire.producer.visits.visits import PATIENCE, utc_now
from nightwire.producer.visits.writer_id import WriterId
from nightwire.producer.writing.connect import Connection, make_topics, options
from nightwire.producer.writing.metrics import Metrics
from nightwire.producer.writing.writer import AlertWriter
from nightwire.schemas import (
    SIM_ALERT_ID,
    RegistryAwayError,
    SchemaRegistry,
    sim_alert_schema,
    topics,
)

log = logging.getLogger("nightwire.producer")

T = TypeVar("T")

KEPT = 1000
"""Visits remembered for the last table; an endless stream has more."""
SILENT = 15.0
"""How long Kafka may leave alerts unacknowledged before we are not healthy. [s]"""


def run_simulate(
    plan: Plan, where: tuple[str | None, str | None], *, metrics_port: int, as_json: bool
) -> dict[str, Any]:
    """Play *plan*, and return its counts.

    Args:
        plan: What to play.
        where: Kafka's address and the registry's URL, where given.
        metrics_port: Port of the metrics page; 0 = no page.
        as_json: A program is watching: no progress.

    Raises:
        NoStackError: There is no Kafka to talk to.
        DeliveryError: Kafka did not take an alert.
    """
    found = find_endpoints(*where)
    endless = plan.visits == 0
    if endless:
        setup_logging("nightwire.producer")
    played: list[Played] = []
    with ExitStack() as exits:
        stop = exits.enter_context(stopping())
        writers: list[AlertWriter] = []
        metrics = exits.enter_context(_page(metrics_port, lambda: _answers(writers)))
        patiently(lambda: make_topics(found.kafka, "sim"), stop)
        register(found)
        writer = _writer(found.kafka)
        patiently(lambda: writer.tidy(found.kafka), stop)
        writers.append(writer)
        claims = exits.enter_context(
            VisitIdAllocator(found.kafka, "sim", writer.visit_topic, writer.records, WriterId.me())
        )
        field = _field(plan, writer, quiet=endless or as_json)
        simulation = Simulation(plan, field, writer, claims, Clocks(time.monotonic, utc_now), stop)
        total = None if endless else plan.visits * plan.alerts
        meter = exits.enter_context(progress(total, "alerts", quiet=endless or as_json))
        for one in simulation.play(meter, observe=metrics.behind("sim")):
            metrics.closed(one.ledger)
            _say(one)
            played = [*played, one][-KEPT:]
    return summary([(one.ledger, one.lateness) for one in played], "sim")


def _writer(bootstrap: str) -> AlertWriter:
    found = Connection(bootstrap, SIM_ALERT_ID, answers=True)
    return AlertWriter(**options(found, "sim", sim_alert_schema()), test=True)


def _field(plan: Plan, writer: AlertWriter, *, quiet: bool) -> Field:
    """Return who makes the alerts; a pool is made at once."""
    start = utc_now()
    history = VisitLog(plan.seed, start)
    if plan.alerts <= plan.pool:
        return Drawn(Sky(plan.seed, plan.alerts), history, writer.encoded)
    members = []
    with progress(plan.pool, "pool", quiet=quiet) as meter:
        for member in make_pool(plan.seed, plan.pool, history, start, writer.encoded):
            members.append(member)
            meter.advance()
    return Patched(members, history, plan.alerts)


def _answers(writers: list[AlertWriter]) -> bool:
    """Return whether Kafka was found, and acknowledges."""
    return bool(writers) and writers[0].records.silence < SILENT


def _say(one: Played) -> None:
    log.info(
        "visit %d: %d of %d acknowledged, behind by at most %.1f s",
        one.ledger.visit,
        one.ledger.acknowledged,
        one.ledger.offered,
        one.lateness.greatest,
    )


def register(found: Endpoints) -> None:
    """Tell the registry, where there is one, of the schema of simulated alerts (readers of ours know it)."""
    if found.schema_registry is None:
        return
    try:
        with SchemaRegistry(found.schema_registry) as registry:
            subject = f"{topics.alerts('sim')}-value"
            registry.register(subject, sim_alert_schema(), schema_id=SIM_ALERT_ID)
    except RegistryAwayError as error:
        log.warning("foreign readers will not find the schema: %s", error)


def patiently(ask: Callable[[], T], stop: Stop, *, patience: float = PATIENCE) -> T:
    """Return what *ask* returns, asking again for *patience* [s] while Kafka is away.

    Raises:
        KafkaException: Kafka is still away.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            return ask()
        except KafkaException as error:
            if time.monotonic() > deadline or stop.wait(1.0):
                raise
            log.warning("Kafka does not answer: %s", error)


@contextmanager
def _page(port: int, healthy: Callable[[], bool]) -> Iterator[Metrics]:
    registry = CollectorRegistry()
    page = MetricsPage(registry, port=port, healthy=healthy)
    if port:
        page.start()
    yield Metrics(registry)
    page.stop()
