"""`nightwire ingest`, once its options are read."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from nightwire.core.channels import ChannelCopies
from nightwire.core.cli import Meter, progress
from nightwire.core.kafka import login, retry_while_unavailable
from nightwire.core.presence import metrics_at, registered
from nightwire.core.runtime import Endpoints, MetricsPage, Stop, setup_logging, stopping
from nightwire.producer.ingest.batch import Batcher
from nightwire.producer.ingest.items import Counts, Item
from nightwire.producer.ingest.metrics import Metrics
from nightwire.producer.ingest.plan import Plan
from nightwire.producer.ingest.schemas import SchemaPatience, Schemas, source_registry
from nightwire.producer.ingest.source import Source, connect
from nightwire.producer.ingest.transactional_sink import (
    TransactionalSink,
    read_positions,
    read_visits,
    transactional_producer,
)
from nightwire.producer.ingest.transform import Transformer
from nightwire.producer.ingest.visits import MirroredVisits
from nightwire.producer.visits.visit_topic import PATIENCE
from nightwire.producer.writing.connect import make_topics
from nightwire.schemas import SchemaRegistry, survey
from nightwire.schemas.topics import alerts

Answer = TypeVar("Answer")

log = logging.getLogger("nightwire.ingest")

SCHEMA_RETRY = 1.0
"""Time between two requests for a missing schema. [s]"""
LAG_INTERVAL = 1.0
"""Time between two updates of the lag. [s]"""


@dataclass(frozen=True)
class IngestSettings:
    """The Kafka that is mirrored, and ours.

    Attributes:
        source: Address of the survey's Kafka.
        group: Our consumer group there.
        registry: URL of the survey's schema registry, where it has one.
        target: Our Kafka and our registry.
    """

    source: str
    group: str
    registry: str | None
    target: Endpoints


@dataclass
class Ingest:
    """The loop that reads, transforms, writes and counts.

    Attributes:
        counts: The counts so far.
    """

    plan: Plan
    source: Source
    batcher: Batcher
    sink: TransactionalSink
    metrics: Metrics
    meter: Meter
    stop: Stop
    counts: Counts = field(default_factory=Counts)
    _lag_shown: float = float("-inf")
    _logged: str | None = None

    def run(self) -> None:
        """Mirror until it is time to stop or, where the plan says so, the end is reached."""
        while not self.stop.is_set():
            if not self.batcher.pending:
                self.batcher.pending.extend(self.source.take())
            ready = self.batcher.take()
            if ready or self.sink.due():
                self._deliver(ready)
            elif self.batcher.pending:
                self.stop.wait(SCHEMA_RETRY)
            elif self.plan.until_end and self.source.at_end:
                self.sink.close_visits()
                return
            self._show()

    def _deliver(self, ready: list[Item]) -> None:
        written = self.sink.deliver(ready)
        self.counts.add(written)
        self.metrics.delivered(written)
        self.meter.advance(sum(len(item.outputs) for item in written))
        for item in written:
            if item.dead_letter_reason is not None:
                log.warning("%s went to dead-letters: %s", item.where, item.dead_letter_reason)

    def _show(self) -> None:
        self.metrics.round_done()
        waits_for = self.batcher.waits_for
        if waits_for != self._logged:
            self._logged = waits_for
            if waits_for is not None:
                log.warning("waiting: %s", waits_for)
        if time.monotonic() - self._lag_shown >= LAG_INTERVAL:
            self._lag_shown = time.monotonic()
            self.metrics.state(self.source.lag(), waiting=waits_for is not None)


def run_ingest(plan: Plan, where: IngestSettings, *, metrics_port: int, quiet: bool) -> Counts:
    """Mirror as *plan* says until the process is stopped, or to the end; return the counts.

    Args:
        plan: What to mirror.
        where: The Kafka that is mirrored, and ours.
        metrics_port: Port of the metrics page; 0 = no page.
        quiet: Show no progress.

    Raises:
        SourceError: The source cannot be read, or does not fit our accounts.
        KafkaException: One of the clusters refuses us.
        DeliveryError: Ours refuses a batch; the next run begins with that.
        SchemaError: There is no such survey.
    """
    setup_logging("nightwire.ingest")
    described = survey(plan.survey)
    with (
        stopping() as stop,
        registered(where.target.kafka, f"ingest-{plan.survey}", **_presence(plan.survey, metrics_port)),
        _page(metrics_port, plan.survey) as metrics,
        SchemaRegistry(where.target.schema_registry, login=login(where.target.kafka)) as ours,
        source_registry(where.registry) as theirs,
    ):
        schemas = Schemas(ours, theirs, plan.survey)
        transformer = Transformer(described, schemas, plan.source, as_is=plan.as_is)
        batcher = Batcher(transformer, SchemaPatience(plan.patience), time.monotonic)
        sink = _sink(plan, where.target.kafka, stop)
        sink.channels = channels = ChannelCopies(where.target.kafka, alerts(plan.survey), plan.survey, ours)
        with (
            _source(plan, where, sink) as source,
            closing(channels),
            progress(None, "alerts", quiet=quiet) as meter,
        ):
            channels.start()
            ingest = Ingest(plan, source, batcher, sink, metrics, meter, stop)
            ingest.run()
    log.info("mirrored %d records as %d alerts", ingest.counts.delivered, ingest.counts.alerts)
    return ingest.counts


def _sink(plan: Plan, bootstrap: str, stop: Stop) -> TransactionalSink:
    """Return the sink, its topics made, with the positions and visits that were last written."""

    def answer(request: Callable[[], Answer]) -> Answer:
        return retry_while_unavailable(request, patience=PATIENCE, stop=stop)

    answer(lambda: make_topics(bootstrap, plan.survey))
    client = transactional_producer(bootstrap, plan.survey)
    sink = TransactionalSink(client, plan.survey, plan.source, stop)
    sink.open()
    sink.positions = answer(lambda: read_positions(bootstrap, plan.prefix))
    records = answer(lambda: read_visits(bootstrap, plan.survey))
    sink.visits = MirroredVisits(plan.survey, records, quiet=plan.quiet, now=time.monotonic())
    return sink


@contextmanager
def _source(plan: Plan, where: IngestSettings, sink: TransactionalSink) -> Iterator[Source]:
    consumer = connect(where.source, where.group)
    source = Source(consumer, plan, sink.positions.position, sink.positions.topics)
    try:
        yield source
    finally:
        source.close()


def _presence(name: str, metrics_port: int) -> dict[str, Any]:
    return {"survey": name, "topic": alerts(name), "endpoints": metrics_at(metrics_port)}


@contextmanager
def _page(port: int, survey: str) -> Iterator[Metrics]:
    registry = CollectorRegistry()
    metrics = Metrics(registry, survey)
    page = MetricsPage(registry, port=port, healthy=metrics.healthy)
    if port:
        page.start()
    yield metrics
    page.stop()
