"""Services of any engine beside judging: waiting for Kafka, answering owners, measuring lag."""

import logging
import threading
from collections.abc import Callable
from functools import partial

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from prometheus_client import Gauge

from nightwire.core import kafka
from nightwire.core.catalogues import catalogues_of
from nightwire.core.kafka import ensure_topics
from nightwire.core.runtime import Stop
from nightwire.filters.admission.advertiser import Advertiser
from nightwire.filters.admission.catalog import Catalog
from nightwire.filters.admission.requests import RequestConsumer
from nightwire.filters.admission.service import SubmissionService
from nightwire.filters.decision.backfill_jobs import BackfillJobs
from nightwire.filters.decision.engine_state import EngineState
from nightwire.filters.delivery.producers import ControlProducer
from nightwire.filters.engine.backfill_runner import BackfillSupervisor
from nightwire.filters.engine.lane_director import LaneDirector
from nightwire.filters.engine.settings import EngineSettings
from nightwire.filters.engine.slow_lane_process import SlowLaneSupervisor
from nightwire.filters.engine.supervisor import FilterSupervisor, suspend_forbidden
from nightwire.filters.model.offsets import lag, positions
from nightwire.filters.reading.fetch import partition_bounds
from nightwire.filters.sandbox import OPTIONAL_LAYERS, SandboxError, layers
from nightwire.filters.stats.metrics import Metrics
from nightwire.filters.stats.publish import StatsPublisher
from nightwire.schemas.topics import ACCOUNTS, DEAD_LETTERS, FILTERS, VISITS
from nightwire.schemas.topics import settings as topic_settings

log = logging.getLogger("nightwire.filters")

TOPICS = (FILTERS, ACCOUNTS, DEAD_LETTERS, VISITS)
"""What an engine reads and writes beside alerts."""


class JavaDied(Exception):  # noqa: N818 - it is what happened
    """Spark's Java process is gone; nothing in this process can bring it back."""


def await_kafka(bootstrap: str, state: EngineState, stop: Stop) -> None:
    """Wait for Kafka, or until stopped; make the topics that we need, and the state ours.

    Raises:
        StateError: The state belongs to another Kafka.
    """
    while not stop.is_set():
        try:
            kafka.enter(bootstrap)
            ensure_topics(bootstrap, [topic_settings(name) for name in TOPICS])
            state.claim(kafka.admin(bootstrap).list_topics(timeout=10).cluster_id or "")
        except (KafkaException, TimeoutError) as error:
            log.warning("waiting for Kafka: %s", error)
            stop.wait(1.0)
        else:
            return


def start_services(
    settings: EngineSettings, state: EngineState, metrics: Metrics, stop: Stop
) -> FilterSupervisor:
    """Start all services, most in threads of their own; return the supervisor of the filters."""
    catalog, lanes = Catalog(settings.bootstrap, catalogues_of(settings.state)), LaneDirector(settings, state)
    catalog.complete()
    service = SubmissionService(
        settings.bootstrap, settings.registry, state.schemas, catalog, settings.trial,
        "strong" if settings.sandbox == "strong" else "weak",
        computes=settings.sandbox != "none", backfills=BackfillJobs(settings.state),
        load=lanes.load, catalogues=catalogues_of(settings.state),
    )  # fmt: skip
    RequestConsumer(
        settings.bootstrap, service, stop, lambda outcome: metrics.requests.labels(outcome).inc()
    ).start()
    repeat(partial(prune_catalogues, service), stop, "prune", PRUNE_EVERY)
    BackfillSupervisor(settings, stop).start()
    threading.Thread(target=report_sandbox, args=(settings.sandbox,), name="sandbox", daemon=True).start()
    repeat(partial(measure_lag, kafka.admin(settings.bootstrap), state, metrics.lag), stop, "lag", EVERY)
    check_rights = partial(suspend_forbidden, catalog, metrics, ControlProducer(settings.bootstrap))
    check_rights()
    repeat(check_rights, stop, "rights", EVERY)
    Advertiser(settings.bootstrap, catalog, stop).start()
    StatsPublisher(settings.bootstrap, metrics.collector, stop).start()
    supervisor = FilterSupervisor(settings.bootstrap, catalog, metrics, state, lanes)
    SlowLaneSupervisor(settings, state, supervisor.observe_slow, stop).start()
    return supervisor


def repeat(step: Callable[[], object], stop: Stop, name: str, every: float) -> None:
    """Do *step* every so often [s], in a thread of its own; what fails is done the next time."""

    def run() -> None:
        while not stop.wait(every):
            try:
                step()
            except (KafkaException, TimeoutError) as error:
                log.debug("%s: Kafka is away: %s", name, error)

    threading.Thread(target=run, name=name, daemon=True).start()


def prune_catalogues(service: SubmissionService) -> None:
    """Remove the versions of catalogues that no filter needs."""
    try:
        for one in service.prune():
            log.info("catalogue %s is removed: no filter needs it", one)
    except (KafkaException, TimeoutError, OSError) as error:
        log.warning("old catalogues are not removed yet: %s", error)


def report_sandbox(strength: str) -> None:
    """Log how filters that are code are contained, where that is less than could be."""
    if strength == "none":
        log.warning(
            "filters that are code run with this process's rights: accept them only from people you trust"
        )
        return
    try:
        missing = {layer for layer, why in layers().items() if why}
    except SandboxError as error:
        missing = {str(error)}
    if missing and (strength == "weak" or missing <= OPTIONAL_LAYERS):
        log.warning("the sandbox of this machine lacks: %s", ", ".join(sorted(missing)))
    elif missing:
        log.error(
            "filters that cannot be compiled are not judged: the sandbox lacks %s (see --sandbox weak)",
            ", ".join(sorted(missing)),
        )


EVERY = 5.0
"""Pause between two looks at the lag, and at the rights of live filters. [s]"""
PRUNE_EVERY = 3600.0
"""Pause between two looks for catalogues that nobody needs. [s]"""


def measure_lag(client: AdminClient, state: EngineState, gauge: Gauge) -> None:
    """Set a gauge, labelled by topic, to the number of offsets that are not judged yet.

    Raises:
        KafkaException: Kafka does not answer.
    """
    beginnings = state.beginnings()
    ends, done = partition_bounds(client, beginnings), positions(state.committed())
    for topic, behind in lag(ends, done, beginnings).items():
        gauge.labels(topic).set(behind)
