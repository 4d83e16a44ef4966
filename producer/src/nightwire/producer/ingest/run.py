"""What `nightwire ingest` does, once its options are read."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from nightwire.core.cli import Meter, progress
from nightwire.core.runtime import Endpoints, MetricsPage, Stop, setup_logging, stopping
from nightwire.producer.cli.run_simulate import patiently
from nightwire.producer.ingest.batch import Batcher
from nightwire.producer.ingest.items import Counts, Item
from nightwire.producer.ingest.metrics import Metrics
from nightwire.producer.ingest.plan import Plan
from nightwire.producer.ingest.schemas import SchemaPatience, Schemas, source_registry
from nightwire.producer.ingest.sink import TransactionalSink, read_marks, read_visits, transactional
from nightwire.producer.ingest.source import Source, connect
from nightwire.producer.ingest.transform import Transformer
from nightwire.producer.ingest.visits import MirroredVisits
from nightwire.producer.writing.connect import make_topics
from nightwire.schemas import SchemaRegistry, survey

log = logging.getLogger("nightwire.ingest")

ASK_AGAIN = 1.0
"""Time between questions for a schema that is not there. [s]"""
LOOK = 1.0
"""Time between looks at the lag. [s]"""


@dataclass(frozen=True)
class IngestSettings:
    """The two sides.

    Attributes:
        source: Address of the survey's Kafka.
        group: Name under which it sees us.
        registry: URL of its schema registry, where it has one.
        target: Our Kafka and our registry.
    """

    source: str
    group: str
    registry: str | None
    target: Endpoints


@dataclass
class Ingest:
    """The loop: read, turn into ours, write, count.

    Attributes:
        counts: What was done so far.
    """

    plan: Plan
    source: Source
    batcher: Batcher
    target: TransactionalSink
    metrics: Metrics
    meter: Meter
    stop: Stop
    counts: Counts = field(default_factory=Counts)
    _looked: float = float("-inf")
    _said: str | None = None

    def run(self) -> None:
        """Mirror until it is time to stop or, where the plan says so, the end is reached."""
        while not self.stop.is_set():
            if not self.batcher.pending:
                self.batcher.pending.extend(self.source.take())
            ready = self.batcher.take()
            if ready or self.target.due():
                self._deliver(ready)
            elif self.batcher.pending:
                self.stop.wait(ASK_AGAIN)
            elif self.plan.until_end and self.source.at_end:
                self.target.close_visits()
                return
            self._show()

    def _deliver(self, ready: list[Item]) -> None:
        written = self.target.deliver(ready)
        self.counts.add(written)
        self.metrics.delivered(written)
        self.meter.advance(sum(len(item.outputs) for item in written))
        for item in written:
            if item.dead is not None:
                log.warning("%s went to dead-letters: %s", item.where, item.dead)

    def _show(self) -> None:
        self.metrics.turned()
        waits_for = self.batcher.waits_for
        if waits_for != self._said:
            self._said = waits_for
            if waits_for is not None:
                log.warning("waiting: %s", waits_for)
        if time.monotonic() - self._looked >= LOOK:
            self._looked = time.monotonic()
            self.metrics.state(self.source.lag(), waiting=waits_for is not None)


def run_ingest(plan: Plan, where: IngestSettings, *, metrics_port: int, quiet: bool) -> Counts:
    """Mirror as *plan* says until somebody says stop or, if it says so, the end; return the counts.

    Args:
        plan: What to mirror.
        where: The two sides.
        metrics_port: Port of the metrics page; 0 = no page.
        quiet: Show no progress.

    Raises:
        SourceError: The source cannot be read, or is not as the marks say.
        KafkaException: One of the clusters refuses us.
        DeliveryError: Ours does; nothing is lost, the next run goes on from the mark.
        SchemaError: There is no such survey.
    """
    setup_logging("nightwire.ingest")
    described = survey(plan.survey)
    with (
        stopping() as stop,
        _page(metrics_port, plan.survey) as metrics,
        SchemaRegistry(where.target.schema_registry) as ours,
        source_registry(where.registry) as theirs,
    ):
        schemas = Schemas(ours, theirs, plan.survey)
        mirror = Transformer(described, schemas, plan.source, as_is=plan.as_is)
        batcher = Batcher(mirror, SchemaPatience(plan.patience), time.monotonic)
        target = _target(plan, where.target.kafka, stop)
        with _source(plan, where, target) as source, progress(None, "alerts", quiet=quiet) as meter:
            ingest = Ingest(plan, source, batcher, target, metrics, meter, stop)
            ingest.run()
    log.info("mirrored %d records as %d alerts", ingest.counts.delivered, ingest.counts.alerts)
    return ingest.counts


def _target(plan: Plan, bootstrap: str, stop: Stop) -> TransactionalSink:
    """Return the target, its topics made, with the marks and visits that were last written."""
    patiently(lambda: make_topics(bootstrap, plan.survey), stop)
    target = TransactionalSink(transactional(bootstrap, plan.survey), plan.survey, plan.source, stop)
    target.open()
    target.marks = patiently(lambda: read_marks(bootstrap, plan.prefix), stop)
    visits = patiently(lambda: read_visits(bootstrap, plan.survey), stop)
    target.book = MirroredVisits(plan.survey, visits, quiet=plan.quiet, now=time.monotonic())
    return target


@contextmanager
def _source(plan: Plan, where: IngestSettings, target: TransactionalSink) -> Iterator[Source]:
    consumer = connect(where.source, where.group)
    source = Source(consumer, plan, target.marks.position, target.marks.topics)
    try:
        yield source
    finally:
        source.close()


@contextmanager
def _page(port: int, survey: str) -> Iterator[Metrics]:
    registry = CollectorRegistry()
    metrics = Metrics(registry, survey)
    page = MetricsPage(registry, port=port, healthy=metrics.healthy)
    if port:
        page.start()
    yield metrics
    page.stop()
