"""What an engine does beside judging, whichever engine it is: waits for Kafka, answers owners, measures."""

import logging
import threading

from confluent_kafka import KafkaException

from nightwire.core import kafka
from nightwire.core.kafka import ensure_topics
from nightwire.core.process import Stop
from nightwire.filters._backfill_jobs import Jobs
from nightwire.filters._backfill_keeper import BackfillKeeper
from nightwire.filters._catalog import Catalog
from nightwire.filters._lag import LagMeter
from nightwire.filters._metrics import Metrics
from nightwire.filters._publish import Publisher
from nightwire.filters._requests import Desk, Engineer
from nightwire.filters._settings import Settings
from nightwire.filters._state import State
from nightwire.filters._watch import Watch
from nightwire.filters.sandbox import OPTIONAL, SandboxError, layers
from nightwire.schemas.topics import ACCOUNTS, DEAD_LETTERS, FILTERS, VISITS
from nightwire.schemas.topics import settings as topic_settings

log = logging.getLogger("nightwire.filters")

TOPICS = (FILTERS, ACCOUNTS, DEAD_LETTERS, VISITS)
"""What an engine reads and writes beside alerts."""


class JavaDied(Exception):  # noqa: N818 - it is what happened
    """Spark's Java process is gone; nothing in this process can bring it back."""


def await_kafka(bootstrap: str, state: State, stop: Stop) -> None:
    """Wait for Kafka, or until stopped; make the topics that we need, and the state ours.

    Raises:
        StateError: The state belongs to another Kafka.
    """
    while not stop.is_set():
        try:
            ensure_topics(bootstrap, [topic_settings(name) for name in TOPICS])
            state.claim(kafka.admin(bootstrap).list_topics(timeout=10).cluster_id or "")
        except (KafkaException, TimeoutError) as error:
            log.warning("waiting for Kafka at %s: %s", bootstrap, error)
            stop.wait(1.0)
        else:
            return


def attend(settings: Settings, state: State, metrics: Metrics, stop: Stop) -> Watch:
    """Begin to answer owners and to measure the lag; return who looks after the filters."""
    catalog = Catalog(settings.bootstrap)
    engineer = Engineer(
        settings.bootstrap, settings.registry, state.schemas, catalog, settings.trial,
        "strong" if settings.sandbox == "strong" else "weak",
        computes=settings.sandbox != "none", backfills=Jobs(settings.state),
    )  # fmt: skip
    Desk(settings.bootstrap, engineer, stop).start()
    BackfillKeeper(settings, stop).start()
    threading.Thread(target=look_at_sandbox, args=(settings.sandbox,), name="sandbox", daemon=True).start()
    LagMeter(settings.bootstrap, state, metrics.lag, state.committed, stop).start()
    Publisher(settings.bootstrap, metrics.ledger, stop).start()
    return Watch(settings.bootstrap, catalog, metrics, state)


def look_at_sandbox(strength: str) -> None:
    """Say how filters that are code are contained, where that is less than could be."""
    if strength == "none":
        log.warning(
            "filters that are code run with this process's rights: accept them only from people you trust"
        )
        return
    try:
        missing = {layer for layer, why in layers().items() if why}
    except SandboxError as error:
        missing = {str(error)}
    if missing and (strength == "weak" or missing <= OPTIONAL):
        log.warning("the sandbox of this machine lacks: %s", ", ".join(sorted(missing)))
    elif missing:
        log.error(
            "filters that cannot be compiled are not judged: the sandbox lacks %s (see --sandbox weak)",
            ", ".join(sorted(missing)),
        )
