"""The topics and users of a stack, made by ``python -m nightwire.core.stack.topics``.

For stacks with a Kafka of their own: compose, or a cluster.  The number of
replicas is the cluster's ``default.replication.factor``.
"""

import os
import sys
from dataclasses import replace

from nightwire.core.kafka import admin, ensure_topics
from nightwire.core.runtime import find_endpoints, setup_logging
from nightwire.core.stack.kafka.principals import given_passwords, let_in, principal_of
from nightwire.core.stack.services import Stream
from nightwire.schemas import surveys
from nightwire.schemas.topics import (
    ACCOUNTS,
    CHANNELS,
    DEAD_LETTERS,
    DIRECTORY,
    FILTERS,
    FLOW_PROBLEMS,
    FLOWS,
    OWED,
    SCHEMAS,
    SUBSCRIPTIONS,
    VISITS,
    VOEVENTS,
    TopicSettings,
    alerts,
    settings,
)

STREAM_BYTES = 1 << 30
"""Most disk for the alerts of a test stream; with filter topics and logs below 2 GB. [byte]"""
SEGMENT_BYTES = 32 << 20
"""Size of a log segment of the test stream: old alerts leave in steps of this. [byte]"""

OTHERS_BYTES = 64 << 20
"""Most disk for each partition of other topics beside a test stream. [byte]"""


def broker_properties(stream: Stream | None) -> dict[str, object]:
    """Return Kafka's defaults for topics without limits; bounded beside a test *stream*."""
    if stream is None:
        return {}
    return {"log.retention.bytes": OTHERS_BYTES, "log.segment.bytes": OTHERS_BYTES // 4}


def stack_topics(stream: Stream | None) -> list[TopicSettings]:
    """Return the topics of an embedded stack; those of a test *stream* are bounded by size."""
    shared = [VISITS, VOEVENTS, FILTERS, ACCOUNTS, DEAD_LETTERS, SCHEMAS]
    shared += [DIRECTORY, SUBSCRIPTIONS, CHANNELS, FLOWS, FLOW_PROBLEMS, OWED]
    names = [*shared, *map(alerts, surveys())]
    bounded = alerts(stream.survey) if stream else None
    return [_bounded(settings(name)) if name == bounded else settings(name) for name in names]


def _bounded(topic: TopicSettings) -> TopicSettings:
    limits = {
        "retention.bytes": str(STREAM_BYTES // topic.partitions - SEGMENT_BYTES),
        "segment.bytes": str(SEGMENT_BYTES),
    }
    return replace(topic, config={**topic.config, **limits})


def main() -> int:
    """Make them in the Kafka of ``KAFKA_BOOTSTRAP_SERVERS``; return the exit status.

    Users are those processes whose passwords ``NIGHTWIRE_PASSWORD_<PROCESS>`` gives.
    """
    log = setup_logging("nightwire.topics")
    kafka, topics = find_endpoints().kafka, stack_topics(None)
    ensure_topics(kafka, topics)
    log.info("there are %s", ", ".join(topic.name for topic in topics))
    if passwords := given_passwords(os.environ):
        let_in(admin(kafka), passwords)
        log.info("users are %s", ", ".join(map(principal_of, passwords)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
