"""What the verbs `simulate` and `replay` do, once their options are read."""

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry
from rich.console import Console
from rich.table import Table

from nightwire.core import kafka
from nightwire.core.accounts import write_account
from nightwire.core.endpoints import Endpoints, find_endpoints
from nightwire.core.process import MetricsPage, Stop, setup_logging, stopping
from nightwire.core.progress import progress
from nightwire.producer._ledger import Ledger
from nightwire.producer._metrics import Metrics
from nightwire.producer._replay import Player, Replay, by_visit, play_all
from nightwire.producer._schema_ids import SchemaIds, schemas_in
from nightwire.producer._simulate import Plan, simulate, summary
from nightwire.producer._visits import PATIENCE, VisitDesk, abandoned, close_abandoned, known_visits, utc_now
from nightwire.producer._writer import AlertWriter
from nightwire.schemas import (
    SIM_ALERT_ID,
    Codec,
    RegistryAwayError,
    SchemaRegistry,
    sim_alert_schema,
    survey,
    topics,
)

log = logging.getLogger("nightwire.producer")

T = TypeVar("T")

KEPT = 1000
"""Ledgers remembered for the last table; an endless stream has more."""


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
    ledgers: list[Ledger] = []
    with stopping() as stop, _page(metrics_port) as metrics:
        patiently(lambda: make_topics(found.kafka, "sim"), stop)
        register(found)
        writer = AlertWriter(
            kafka.producer(found.kafka), survey("sim"), Codec(sim_alert_schema()), SIM_ALERT_ID
        )
        last_visit = patiently(lambda: _tidy(found.kafka, writer), stop)
        total = None if endless else plan.visits * plan.alerts
        with progress(total, "alerts", quiet=endless or as_json) as meter:
            for ledger in simulate(
                plan, writer, clock=utc_now, stop=stop, meter=meter, last_visit=last_visit
            ):
                metrics.closed(ledger)
                log.info("visit %d: %d of %d acknowledged", ledger.visit, ledger.acknowledged, ledger.offered)
                ledgers = [*ledgers, ledger][-KEPT:]
    return summary(ledgers, "sim")


def _tidy(bootstrap: str, writer: AlertWriter) -> int:
    """Close the visits that a writer left open when it died; return the highest visit id in use."""
    known = known_visits(bootstrap, "sim")
    left = abandoned(known)
    close_abandoned(bootstrap, writer.desk, left)
    for ledger in left.values():
        log.warning("visit %d had been left open: closed with %d alerts", ledger.visit, ledger.acknowledged)
    return max(known, default=0)


def make_topics(bootstrap: str, name: str) -> None:
    """Make the topics that writing alerts of survey *name* needs.

    Raises:
        KafkaException: Kafka refused, or cannot be reached.
    """
    names = (topics.alerts(name), topics.VISITS, topics.ACCOUNTS, topics.DEAD_LETTERS)
    kafka.ensure_topics(bootstrap, [topics.settings(topic) for topic in names])


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
def _page(port: int) -> Iterator[Metrics]:
    registry = CollectorRegistry()
    page = MetricsPage(registry, port=port, healthy=lambda: True)
    if port:
        page.start()
    yield Metrics(registry)
    page.stop()


def show(counts: dict[str, Any], *, as_json: bool) -> None:
    """Print *counts* as a table, or as JSON."""
    if as_json:
        click.echo(json.dumps(counts))
        return
    table = Table("visit", box=None, pad_edge=False, header_style="bold")
    for name in ("in", "acknowledged", "refused"):
        table.add_column(name, justify="right")
    for visit in counts["visits"][-20:]:
        table.add_row(
            str(visit["visit"]), *(f"{visit[name]:,}" for name in ("in", "acknowledged", "refused"))
        )
    table.add_row("all", *(f"{counts[name]:,}" for name in ("in", "acknowledged", "refused")))
    Console().print(table)


def run_replay(job: Replay, where: tuple[str | None, str | None], *, as_json: bool) -> dict[str, Any]:
    """Play the files of *job*, and return the counts.

    Args:
        job: What to play, and how.
        where: Kafka's address and the registry's URL, where given.
        as_json: A program is watching: no progress.

    Raises:
        NoStackError: There is no Kafka to talk to.
        SchemaError: There is no such survey, or a schema of ``--schema`` cannot be used.
        DeliveryError: Kafka did not take an alert.
    """
    found = find_endpoints(*where)
    described = survey(job.survey)
    with stopping() as stop, SchemaRegistry(found.schema_registry) as registry:
        patiently(lambda: make_topics(found.kafka, job.survey), stop)
        for schema in schemas_in(job.schemas) if job.schemas else ():
            SchemaIds(registry, job.survey).id(schema)
        writer = kafka.Writer(kafka.producer(found.kafka))
        desk = VisitDesk(writer, job.survey)
        batch = Ledger(job.survey, time.time_ns() // 1_000_000, utc_now())
        player = Player(described, writer, registry, batch, desk, as_is=job.as_is)
        with progress(None, "alerts", quiet=as_json) as meter:
            try:
                play_all(player, job, described, stop=stop, meter=meter)
            finally:  # what was written counts, even where the registry went away
                writer.flush()
                close_replay(desk, writer, player)
    return replayed(player)


def close_replay(desk: VisitDesk, writer: kafka.Writer, player: Player) -> None:
    """Write the account of a replay, then the end of the visits that it met.

    The account is the whole replay's: visits that are played twice count twice, as they lie in the topic.

    Raises:
        DeliveryError: Kafka did not take them.
    """
    write_account(writer, player.batch.account())
    writer.flush()
    for ledger in by_visit(player.visits) or [player.batch]:
        desk.announce(ledger)
    writer.flush()


def replayed(player: Player) -> dict[str, Any]:
    """Return the counts of a replay: the whole batch's, and those of the visits that were met."""
    whole = summary([player.batch], player.batch.survey)
    return whole | {"visits": summary(by_visit(player.visits), player.batch.survey)["visits"]}
